"""The search of services' output finds secrets and values that must not be there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice import Table
from tests.support.privacy import SECRET, require_private

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
