"""A lake of two tables, one of them parked; another fixture of the name takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.indexed import IndexedTable
from tests.support.lake_of_two import items_of, parked_of


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def items(lake: Path) -> IndexedTable:
    return items_of(lake)


@pytest.fixture
def parked(lake: Path) -> IndexedTable:
    return parked_of(lake)
