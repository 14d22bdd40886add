"""`Table.vacuum` of a table fed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.testing.doubles import FixedClock
from tests.support.by_hand import COLUMNS, Row, clock_of, created, given, require_rows, rows_of
from tests.support.clocked import ClockedStore
from tests.support.tables import local_table

DAY = 86_400


def row(key: int, n: int) -> Row:
    return {"id": key, "name": f"name {key}", "n": n, "price": None}


@pytest.fixture
def table(tmp_path: Path) -> HandFedTable:
    """Rows changed and compacted on each of three days."""
    table = created(LocalStore(tmp_path), [row(key, 0) for key in range(4)])
    for day in range(3):
        clock_of(table).advance(DAY)
        table.upsert(given([row(1, day + 1)], COLUMNS.names))
        table.compact()
    return table


@pytest.mark.slow
def test_a_dry_run_names_what_a_vacuum_then_deletes(table: HandFedTable, tmp_path: Path) -> None:
    clock_of(table).advance(DAY)
    version, before = table.version, rows_of(table)
    planned = table.vacuum(retention_hours=36, dry_run=True)
    assert planned.files == len(planned.expired) > 0
    assert all((tmp_path / path).exists() for path in planned.expired)
    assert table.version == version
    done = table.vacuum(retention_hours=36)
    assert done == planned
    assert done.bytes > 0
    assert not any((tmp_path / path).exists() for path in done.expired)
    require_rows(table, before)
    assert table.vacuum(retention_hours=36, dry_run=True).files == 0
    with pytest.raises(VersionNotFoundError, match="past its retention"):
        table.read(version=1)


def test_orphans_go_and_who_writes_meanwhile_writes_again(tmp_path: Path) -> None:
    clock = FixedClock()
    table = created(ClockedStore(tmp_path, clock), [row(1, 0)])
    orphan = tmp_path / "base" / "00000000000000aa-0-00000000000000aa.parquet"
    orphan.write_bytes(b"left by a crash")
    now = table._writer.tools.clock
    assert isinstance(now, FixedClock)
    for both in (now, clock):
        both.advance(400 * DAY)
    done = table.vacuum()
    assert done.orphans == {f"base/{orphan.name}": 15}
    assert not orphan.exists()
    table.upsert(given([row(2, 1)], COLUMNS.names))
    require_rows(table, {1: row(1, 0), 2: row(2, 1)})


def test_files_of_a_table_within_the_folder_are_left_alone(tmp_path: Path) -> None:
    clock = FixedClock()
    store = ClockedStore(tmp_path, clock)
    outer = created(store, [row(1, 0)])
    inner = created(store.within("base/inner"), [row(2, 0)])
    for path in ("iceberg/data/a.parquet", "iceberg/metadata/v1.metadata.json", "left.parquet"):
        store.put_new(path, b"another's")
    clock_of(outer).advance(30 * DAY)
    clock.advance(30 * DAY)
    assert [*outer.vacuum(retention_hours=36).orphans] == ["left.parquet"]
    assert rows_of(inner) == {2: row(2, 0)}
    assert store.size("iceberg/data/a.parquet")


@pytest.mark.slow
def test_less_than_an_hour_has_to_be_asked_for_by_what_it_risks(table: HandFedTable) -> None:
    with pytest.raises(UsageError, match="readers may fail"):
        table.vacuum(retention_hours=0.5)
    assert table.vacuum(retention_hours=0, readers_may_fail=True).files > 0
    assert len(rows_of(table)) == 4


def test_a_table_that_a_source_feeds_is_left_to_its_service(tmp_path: Path) -> None:
    fed = local_table(tmp_path)
    fed.create()
    table = HandFedTable(fed.store, created(LocalStore(tmp_path / "other"))._writer.tools)
    assert table.vacuum(dry_run=True).files == 0
    with pytest.raises(UsageError, match="fed by a source"):
        table.vacuum()
