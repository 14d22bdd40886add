"""Settings: of a service that never reaches a broker, or read from a text as from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.config import Settings, load
from lakesplice.errors import ConfigurationError


def settings_of(root: Path | str, *, topic_pattern: str = ".*", **sections: object) -> Settings:
    """Settings of a service over this lake, its sections as a file would spell them."""
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": topic_pattern}
    return Settings.model_validate({"kafka": kafka, "lake": {"root": str(root)}, **sections})


SMALLEST = """\
kafka: {bootstrap_servers: "127.0.0.1:9092", topic_pattern: "shop\\\\..*"}
lake: {root: ./lake}
"""


def read(tmp_path: Path, text: str = SMALLEST, **environment: str) -> Settings:
    file = tmp_path / "lakesplice.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment)


def refusal(tmp_path: Path, text: str = SMALLEST, **environment: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text, **environment)
    assert caught.value.__cause__ is None
    return str(caught.value)
