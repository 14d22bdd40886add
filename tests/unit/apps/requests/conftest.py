"""A parked table of an empty lake, for which commands make requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.config import Settings
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from tests.support.commanding import park
from tests.support.made import MadeTable
from tests.support.service_settings import settings_of


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake")


@pytest.fixture
def table(lake: LocalStore) -> MadeTable:
    made = MadeTable(lake.root / "shop" / "orders", TableSchema())
    park(made)
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path / "lake", topic_pattern="a.*")
