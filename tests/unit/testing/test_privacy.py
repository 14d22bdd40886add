"""The search of services' output finds secrets and values that must not be there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import PlainSerializer

from lakesplice import Table
from lakesplice.config import Settings
from lakesplice.config.options import Options
from lakesplice.config.printing import as_values
from lakesplice.config.sections.section import Section
from tests.support.privacy import NOT_PLANTED, PLANTED, SECRET, require_private

NAME = "Rosalind Franklin"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    rows = pa.table({"id": [1, 2], "name": [NAME, "Ada"], "kind": ["person", "person"]})
    Table.create(tmp_path / "lake" / "shop" / "customers", rows, key=["id"])
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("batch done for shop.customers, kind person", None),
        (f"password={SECRET}", "a secret"),
        (f"the value {NAME!r} is no number", "values of rows"),
    ],
)
def test_secrets_and_texts_of_rows_are_found(lake: Path, line: str, found: str | None) -> None:
    log = lake.with_name("service.log")
    log.write_text(f"started\n{line}\n")
    if found is None:
        require_private(log, lake)
    else:
        with pytest.raises(AssertionError, match=found):
            require_private(log, lake)


def _that_can_hold_secrets(section: type[Section], path: str = "") -> Iterator[str]:
    """Settings that are secrets, and those with options for others, below a section."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _that_can_hold_secrets(kind, f"{path}{name}.")
        elif kind is Options or any(isinstance(one, PlainSerializer) for one in field.metadata):
            yield f"{path}{name}"


def test_a_secret_is_planted_in_every_setting_that_can_hold_one() -> None:
    planted = {f"{name}.{key}" for name, section in PLANTED.items() for key in section}
    assert planted | NOT_PLANTED.keys() == set(_that_can_hold_secrets(Settings))
    needed = {"kafka": {"bootstrap_servers": "a:1", "topic_pattern": "b"}, "lake": {"root": "/c"}}
    given = {name: {**needed.get(name, {}), **PLANTED.get(name, {})} for name in needed | PLANTED}
    settings = Settings.model_validate(given)
    assert (
        SECRET not in f"{settings!r} {settings.model_dump_json()} {json.dumps(as_values(settings))}"
    )
