"""Insert-only tables fed by hand: new rows alone, each once, and no other change."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import manifest_ref


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "name": [name for _, name in pairs]})


@pytest.fixture
def events(tmp_path: Path) -> Table:
    return Table.create(tmp_path, rows((1, "a"), (2, "b")), key=["id"], insert_only=True)


def test_known_and_repeated_keys_are_skipped_and_counted(events: Table) -> None:
    done = events.upsert(rows((2, "x"), (3, "first"), (4, "d"), (3, "second")))
    assert (done.inserted, done.updated, done.skipped) == (2, 0, 2)
    found = dict(zip(*(events.read()[name].to_pylist() for name in ("id", "name")), strict=True))
    assert found == {1: "a", 2: "b", 3: "first", 4: "d"}
    assert not events.snapshot.manifest.deltas


def test_giving_it_all_again_makes_no_version(events: Table) -> None:
    given = rows((3, "c"), (4, "d"))
    first = events.upsert(given)
    again = events.upsert(given)
    assert again.version == first.version
    assert (again.inserted, again.skipped) == (0, 2)
    told = events.upsert(given, transaction=("nightly", 1))
    assert told.version == first.version + 1
    assert told.skipped == 2
    assert events.read().num_rows == 4


def test_a_delete_is_refused(events: Table) -> None:
    with pytest.raises(UsageError, match="insert-only"):
        events.upsert(delete=pa.table({"id": [1]}))


def test_new_rows_need_all_columns_and_skipped_ones_do_not(events: Table) -> None:
    assert events.upsert(pa.table({"id": [1]})).skipped == 1
    with pytest.raises(UsageError, match="all columns"):
        events.upsert(pa.table({"id": [1, 9]}))


def test_an_adopted_table_may_be_one(tmp_path: Path) -> None:
    pq.write_table(rows((1, "a"), (2, "b")), tmp_path / "a.parquet")
    table = Table.adopt(tmp_path, key=["id"], insert_only=True)
    done = table.upsert(rows((2, "x"), (3, "c")))
    assert (done.inserted, done.skipped) == (1, 1)
    assert sorted(table.read()["name"].to_pylist()) == ["a", "b", "c"]


def test_the_table_remembers_what_it_is(events: Table, tmp_path: Path) -> None:
    assert Table.open(tmp_path).upsert(rows((1, "x"))).skipped == 1
    stored = json.loads(LocalStore(tmp_path).read(manifest_ref(events.snapshot).path))
    assert stored["format"] == 3
    assert stored["upserts"]["insert_only"] is True
