"""Settings of a service that never reaches a broker."""

from __future__ import annotations

from pathlib import Path

from lakesplice.config import Settings


def settings_of(root: Path | str, *, topic_pattern: str = ".*", **sections: object) -> Settings:
    """Settings of a service over this lake, its sections as a file would spell them."""
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": topic_pattern}
    return Settings.model_validate({"kafka": kafka, "lake": {"root": str(root)}, **sections})
