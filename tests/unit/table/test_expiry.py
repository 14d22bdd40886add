"""Expiry: which files are deleted with versions past their retention, and which are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.errors import VersionNotFoundError
from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.retention import files_by_path
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.layout import MIRRORS
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expired, Expiry, plan_expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance, clean_up
from lakesplice.testing.faulty_store import FaultyStore
from tests.support.tables import TableUnderTest, local_table

HOUR_MS = 3_600_000
OURS = ("base/", "_lakesplice/deltas/", "_lakesplice/index/", "_lakesplice/dead_letters/")


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    """Version 0 is empty, 1 has a row; 2 to 6 each bring the row's next file, an hour apart."""
    table = local_table(tmp_path)
    table.create()
    table.committed(table.ingest(files=(table.real_file(1, [(1, "a")]),)))
    for _ in range(5):
        table.clock.advance(3600)
        rewrite(table)
    return table


def rewrite(table: TableUnderTest) -> None:
    """Give each file its next version, written; what waited for it is in."""
    intent = table.splice()
    for new in intent.replaced.values():
        table.written(new.base.path, new.base.segments[0].group, [(1, "a")])
    sizes = {old: table.written_as(new) for old, new in intent.replaced.items()}
    table.committed(replace(intent, replaced=sizes))


def expire(table: TableUnderTest, hours: float, expiry: Expiry | None = None) -> Expired:
    expiry = expiry or Expiry(table.store, table.commit)
    outcome = expiry.run(table.now(), EpochMs(table.clock.now_ms() - int(hours * HOUR_MS)))
    assert not isinstance(outcome, Conflict)
    return outcome


def there(table: TableUnderTest) -> set[str]:
    return {path for path in table.store.list("") if path.startswith(OURS)}


def readable(table: TableUnderTest) -> list[int]:
    found = []
    for version in range(table.now().version + 1):
        try:
            Table(table.store, version).read()
        except VersionNotFoundError:
            continue
        found.append(version)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("hours", "oldest"), [(-1, 6), (0, 5), (1, 4), (3, 2), (4, 1), (9, 0)])
def test_versions_current_within_the_retention_stay_whole(
    table: TableUnderTest, hours: float, oldest: int
) -> None:
    rows = Table(table.store).read()
    done = expire(table, hours)
    assert done.retained_from == oldest
    # The first version has no files to lose, and the one that says so is new.
    newest = table.now().version
    assert readable(table) == [0, *range(max(oldest, 1), newest + 1)]
    assert there(table) == {
        path
        for version in range(oldest, newest + 1)
        for path in files_by_path(open_snapshot(table.store, version).manifest)
    }
    assert Table(table.store).read() == rows


def test_deleted_files_and_bytes_are_counted(table: TableUnderTest) -> None:
    before = there(table)
    done = expire(table, 1)
    assert set(done.files) == before - there(table)
    assert len(done.files) == 3
    assert all(size > 0 for size in done.files.values())


@pytest.mark.slow
def test_if_no_file_is_to_be_deleted_nothing_is_committed(
    table: TableUnderTest,
) -> None:
    expiry = Expiry(table.store, table.commit)
    expire(table, 9, expiry)
    assert table.now().version == 6
    expire(table, 0, expiry)
    assert table.now().version == 7
    table.clock.advance(36_000)
    expire(table, 1, expiry)
    expire(table, 1, expiry)
    assert table.now().version == 8, "the splice's source goes, and nothing after it"


@pytest.mark.slow
def test_a_second_run_reads_only_what_is_new_and_lists_nothing(table: TableUnderTest) -> None:
    store = FaultyStore(table.store)
    expiry = Expiry(store, table.commit)
    expire(table, 0, expiry)
    calls = len(store.calls)
    expire(table, 0, expiry)
    listed = [call for call in store.calls if call.method == "list"]
    assert [call.path for call in listed] == [f"{MIRRORS}/"], "once, as long as something expires"
    assert {call.method for call in store.calls} <= {"size", "read", "delete", "list"}
    assert "list" not in {call.method for call in store.calls[calls:]}
    assert len(store.calls) - calls <= 5


@pytest.mark.slow
def test_a_new_process_continues_where_the_last_one_announced(table: TableUnderTest) -> None:
    for hours, vacuumed, retained_from in ((3, 0, 2), (2, 2, 3), (0, 3, 5)):
        done = expire(table, hours)
        retention = table.now().manifest.retention
        assert (retention.vacuumed, retention.retained_from) == (vacuumed, retained_from)
        assert len(done.files) == retained_from - max(vacuumed, 1)


def test_a_file_that_an_earlier_run_left_is_deleted_without_a_commit(
    table: TableUnderTest,
) -> None:
    left = expire(table, 1).files
    version = table.now().version
    path = sorted(left)[0]
    with table.store.writer(path) as sink:
        sink.write(b"left")
    assert set(expire(table, 1).files) == {path}
    assert table.store.size(path) is None
    assert table.now().version == version


def test_many_expired_versions_are_looked_at_in_rounds(table: TableUnderTest) -> None:
    plan = plan_expiry(table.store, table.now(), EpochMs(table.clock.now_ms() + 1), versions_max=2)
    assert (plan.first, plan.retained_from, plan.is_last) == (0, 2, False)
    assert len(plan.files) == 1
    plan = plan_expiry(
        table.store, table.now(), EpochMs(table.clock.now_ms() + 1), 2, versions_max=9
    )
    assert (plan.retained_from, plan.is_last, len(plan.files)) == (6, True, 4)


def test_a_log_that_was_cleaned_up_before_is_taken_up_where_it_begins(
    table: TableUnderTest, tmp_path: Path
) -> None:
    DeltaLogKeeper(tmp_path / "shop/orders").checkpoint(3)
    clean_up(table.store, EpochMs(table.clock.now_ms() - HOUR_MS))
    plan = plan_expiry(table.store, table.now(), table.clock.now_ms())
    assert plan.first == 3
    assert len(plan.files) == 2


def test_a_version_whose_files_are_deleted_is_refused_by_name(table: TableUnderTest) -> None:
    open_before = Table(table.store, 2)
    expire(table, 0)
    with pytest.raises(VersionNotFoundError, match="past its retention"):
        open_before.read()
    with pytest.raises(VersionNotFoundError, match="past its retention"):
        Table(table.store).read(version=2)


@pytest.mark.slow
def test_the_log_goes_only_after_the_files_and_as_far(
    table: TableUnderTest, tmp_path: Path
) -> None:
    expiry = Expiry(table.store, table.commit)
    log = Maintenance(
        table.store,
        DeltaLogKeeper(tmp_path / "shop/orders"),
        table.clock,
        checkpoint_every=1,
        retention_seconds=3600,
        expiry=expiry,
    )
    for _ in range(30):
        table.clock.advance(3600)
        rewrite(table)
        log.care(table.now())
    log.expire(table.now())
    kept = table.now().manifest.retention.retained_from
    assert there(table) == {
        path
        for version in range(kept, table.now().version + 1)
        for path in files_by_path(open_snapshot(table.store, version).manifest)
    }
    assert len(there(table)) <= 4
    assert len([*table.store.list("_delta_log/")]) < 40


@pytest.mark.slow
def test_two_simultaneous_vacuums_do_no_harm(table: TableUnderTest) -> None:
    known, expired_ms = table.now(), table.clock.now_ms()
    first, second = Expiry(table.store, table.commit), Expiry(table.store, table.commit)
    assert not isinstance(first.run(known, expired_ms), Conflict)
    assert isinstance(second.run(known, expired_ms), Conflict)
    expire(table, 0, second)
    assert readable(table) == [0, *range(5, table.now().version + 1)]
