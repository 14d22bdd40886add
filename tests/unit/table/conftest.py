"""Tables fed by hand that several tests begin with; another fixture of the name takes its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from tests.support.by_hand import goods_store, three_goods


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return goods_store(tmp_path)


@pytest.fixture
def table(store: LocalStore) -> HandFedTable:
    return three_goods(store)
