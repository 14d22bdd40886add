"""The time by which old files are deleted: the store's, if this machine's clock is ahead."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.table.protocol.layout import LOG
from lakesplice.table.upkeep.vacuum import time_for_deletion
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.clocked import ClockedStore


@pytest.mark.parametrize("ahead", [-86_400, -61, -1, 0, 1, 59, 61, 86_400])
def test_the_earlier_of_two_clocks_counts_if_they_differ_by_more_than_a_minute(
    tmp_path: Path, ahead: int
) -> None:
    """`ahead` is how many seconds this machine's clock is ahead."""
    own, stores = FixedClock(), FixedClock()
    own.advance(ahead)
    store = ClockedStore(tmp_path, stores)
    found = time_for_deletion(store, own, SeededEntropy(1))
    assert found == (stores.now_ms() if ahead > 60 else own.now_ms())
    assert list(store.list(f"{LOG}/")) == []
