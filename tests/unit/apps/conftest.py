"""A lake of two tables, one of them parked; another fixture of the name takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from tests.support.indexed import IndexedTable
from tests.support.lake_of_two import items_of, parked_of

# The usual renderer draws frames of values around every line of a traceback, for longer than the
# test of a failing thread lasts.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def items(lake: Path) -> IndexedTable:
    return items_of(lake)


@pytest.fixture
def parked(lake: Path) -> IndexedTable:
    return parked_of(lake)
