"""Maintenance of the log: checkpoints when due, and a clean-up that never affects a retained
version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import VersionNotFoundError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.protocol.layout import MANIFESTS
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.log_maintenance import Maintenance, clean_up
from lakesplice.testing.faulty_store import Crash, Fault, FaultyStore, How
from tests.support.tables import TableUnderTest, local_table

HOUR = 3_600_000


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    """Versions 0 to 9, an hour apart, with checkpoints of 3 and 6."""
    table = local_table(tmp_path)
    table.create()
    for number in range(9):
        table.clock.advance(3600)
        table.committed(table.ingest(files=(table.file(number),)))
    for version in (3, 6):
        _keeper(tmp_path).checkpoint(version)
    return table


def _keeper(tmp_path: Path) -> DeltaLogKeeper:
    return DeltaLogKeeper(tmp_path / "shop/orders")


def _readable(table: TableUnderTest, newest: int = 9) -> list[int]:
    found = []
    for version in range(newest + 1):
        try:
            assert open_snapshot(table.store, version).version == version
        except VersionNotFoundError:
            continue
        found.append(version)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hours_kept", "oldest"), [(0, 6), (1, 6), (2, 6), (3, 6), (4, 3), (7, 0), (100, 0)]
)
def test_versions_current_within_the_retention_stay_readable(
    table: TableUnderTest, hours_kept: int, oldest: int
) -> None:
    newest, before = table.now(), [*table.store.list("")]
    deleted = clean_up(table.store, EpochMs(newest.timestamp_ms - hours_kept * HOUR + 1))
    assert deleted == len(before) - len([*table.store.list("")])
    assert _readable(table) == list(range(oldest, 10))
    assert table.now() == newest
    manifests = list(table.store.list(MANIFESTS))
    assert len(manifests) == 10 - oldest


@pytest.mark.slow
def test_a_clean_up_that_dies_half_way_leaves_versions_that_read_right_or_are_refused(
    tmp_path: Path,
) -> None:
    deleted = 0
    while True:
        table = local_table(tmp_path / str(deleted))
        table.create()
        for number in range(5):
            table.clock.advance(3600)
            table.committed(table.ingest(files=(table.file(number),)))
        keeper = _keeper(tmp_path / str(deleted))
        keeper.checkpoint(1)
        keeper.checkpoint(3)
        newest = table.now()
        seen = [deleted]

        def dies(call: object, seen: list[int] = seen) -> bool:
            seen[0] -= "delete" in str(call)
            return seen[0] < 0

        store = FaultyStore(table.store, [Fault(dies, How.CRASH_BEFORE)])
        try:
            clean_up(store, newest.timestamp_ms)
        except Crash:
            pass
        else:
            break
        readable = _readable(table, 5)
        assert readable == list(range(readable[0], 6))
        assert table.now() == newest
        clean_up(table.store, newest.timestamp_ms)
        assert _readable(table, 5) == [3, 4, 5]
        deleted += 1
    assert deleted >= 7


@pytest.mark.slow
def test_log_entries_below_an_unreadable_checkpoint_are_kept(
    table: TableUnderTest, tmp_path: Path
) -> None:
    damaged = tmp_path / "shop/orders/_delta_log" / f"{6:020d}.checkpoint.parquet"
    damaged.write_bytes(damaged.read_bytes()[:100])
    clean_up(table.store, EpochMs(table.now().timestamp_ms + 1))
    assert _readable(table) == list(range(3, 10))


@pytest.mark.slow
def test_a_checkpoint_is_written_when_enough_was_committed_and_clean_ups_follow(
    tmp_path: Path,
) -> None:
    table = local_table(tmp_path)
    snapshot = table.create()
    maintenance = Maintenance(
        table.store,
        _keeper(tmp_path),
        table.clock,
        checkpoint_every=2,
        retention_seconds=5 * 3600,
    )
    checkpointed, deleted = [], 0
    for number in range(45):
        table.clock.advance(3600)
        snapshot = table.committed(table.ingest(files=(table.file(number),)))
        done = maintenance.care(snapshot)
        if done is not None:
            checkpointed.append(done.checkpoint_version)
            deleted += done.files_deleted
    assert checkpointed == list(range(2, 45, 2))
    assert deleted > 50
    assert _readable(table, 45)[0] == 34
    assert table.now() == snapshot


def test_maintenance_after_a_restart_continues_from_the_last_checkpoint(
    table: TableUnderTest, tmp_path: Path
) -> None:
    maintenance = Maintenance(
        table.store,
        _keeper(tmp_path),
        table.clock,
        checkpoint_every=4,
        retention_seconds=HOUR,
    )
    assert maintenance.care(table.now()) is None
    done = maintenance.care(table.committed(table.ingest()))
    assert done is not None
    assert done.checkpoint_version == 10
