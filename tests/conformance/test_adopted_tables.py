"""Adoption of other writers' tables: every reader sees the same rows, and upserts change them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.errors import UsageError
from lakesplice.spark.jars import DELTA
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.index_check import check
from tests.support import adopting, machine
from tests.support.adopting import ROWS, WRITERS, Rows, files_of, live_elsewhere, some_rows
from tests.support.delta_spark import run_delta_spark
from tests.support.readers import READERS

COLUMNS = some_rows(0, 0).column_names


def by_key(table: pa.Table) -> Rows:
    return adopting.by_key(table, COLUMNS)


def elsewhere(path: Path, version: int, engine: str) -> Rows:
    return by_key(live_elsewhere(path, version, engine))


def changed(truth: Rows, table: Table) -> Rows:
    """Rows changed, added and deleted, in the table and in what it has to hold."""
    after = {key: dict(row) for key, row in truth.items()}
    fresh = some_rows(ROWS, ROWS + 2).to_pylist()
    table.upsert(
        pa.table({"id": [3, 1500], "name": ["changed", None], "at": some_rows(7, 9)["at"]}),
        delete=pa.table({"id": [4, 2999]}),
    )
    table.upsert(some_rows(ROWS, ROWS + 2))
    after[3] |= {"name": "changed", "at": some_rows(7, 8)["at"][0].as_py()}
    after[1500] |= {"name": None, "at": some_rows(8, 9)["at"][0].as_py()}
    del after[4], after[2999]
    return after | {row["id"]: row for row in fresh}


@pytest.mark.parametrize("writer", WRITERS)
def test_an_adopted_table_holds_its_rows_and_takes_upserts(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    WRITERS[writer](path)
    before, truth = files_of(path), by_key(some_rows())
    would = Table.adoption(path, key=["id"])
    assert files_of(path) == before
    assert would.rows == ROWS
    assert not would.rewritten

    table = Table.adopt(path, key=["id"])
    assert files_of(path) == before
    assert table.version == would.version
    for view in View:
        assert by_key(table.read(view)) == truth
    for engine in READERS:
        assert elsewhere(path, table.version, engine) == truth

    after = changed(truth, table)
    assert by_key(table.read()) == after
    table.compact()
    assert by_key(table.read(View.READ_OPTIMISED)) == after
    for engine in READERS:
        assert elsewhere(path, table.version, engine) == after
    report = check(LocalStore(path), table.snapshot)
    assert report.sound
    assert not report.duplicates

    again = changed({**after, 4: truth[4], 2999: truth[2999]}, _revived(table, truth))
    table.compact()
    assert by_key(table.refresh().read(View.READ_OPTIMISED)) == again
    with pytest.raises(UsageError, match="already"):
        Table.adopt(path, key=["id"])


def _revived(table: Table, truth: Rows) -> Table:
    rows = [truth[4], truth[2999]]
    table.upsert(pa.Table.from_pylist(rows, schema=some_rows().schema))
    return table


@pytest.mark.parametrize("writer", ["pyarrow with INT96", "DuckDB", "deltalake"])
def test_statistics_of_adopted_files_lose_no_row(writer: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    WRITERS[writer](path)
    table = Table.adopt(path, key=["id"])
    wanted = (pa.compute.field("n") == 3) & (pa.compute.field("small") > 90)
    expected = by_key(some_rows().filter(wanted))
    assert by_key(table.read(filter=wanted)) == expected
    found = DeltaTable(str(path)).to_pyarrow_table(filters=[("n", "=", 3), ("small", ">", 90)])
    assert by_key(pa.table(found)) == expected
    late = pa.compute.field("at") > some_rows(2000, 2001)["at"][0]
    assert by_key(table.read(filter=late)).keys() == set(range(2001, ROWS))


def test_deltalake_writes_no_more_but_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "table"
    WRITERS["deltalake"](path)
    table = Table.adopt(path, key=["id"])
    theirs = DeltaTable(str(path))
    with pytest.raises(Exception, match="lakesplice"):
        theirs.delete("id = 1")
    theirs.create_checkpoint()
    table.upsert(pa.table({"id": [1], "name": ["x"]}))
    assert Table.open(path).read(filter=pa.compute.field("id") == 1)["name"].to_pylist() == ["x"]


SPARK_ROWS = (
    "select cast(id as bigint) id, concat('n', id) name, cast(id % 7 as int) n,"
    " cast(id as decimal(12,2)) price, timestamp_micros(id * 1000003) at,"
    " date_add(date'2020-01-01', cast(id % 900 as int)) day from range({first}, {last})"
)


def spark_rows(first: int, last: int) -> str:
    return SPARK_ROWS.format(first=first, last=last)


def test_a_table_that_spark_wrote_is_adopted_and_read_by_spark(tmp_path: Path) -> None:
    delta, folder = tmp_path / "delta", tmp_path / "folder"
    made = [
        f"create table {{table}} using delta as {spark_rows(0, 500)}",
        f"insert into {{table}} {spark_rows(500, 1000)}",
        f"insert overwrite directory '{folder}' using parquet {spark_rows(0, 1000)}",
    ]
    found = run_delta_spark(machine.jars(DELTA), delta, tmp_path, (), (), made)
    assert set(found.outcomes.values()) == {""}
    expected = [[n, f"n{n}"] for n in range(1000)]
    expected[3] = [3, "changed"]
    for path in (delta, folder):
        assert not Table.adoption(path, key=["id"]).rewritten
        table = Table.adopt(path, key=["id"])
        seconds = table.read(columns=["id", "at"]).sort_by("id")["at"].cast(pa.int64())
        assert seconds.to_pylist() == [n * 1000003 for n in range(1000)]
        table.upsert(pa.table({"id": [3], "name": ["changed"]}))
        table.compact()
        again = run_delta_spark(
            machine.jars(DELTA), path, tmp_path, [table.version], ("id", "name"), ()
        )
        assert again.versions[table.version] == expected
