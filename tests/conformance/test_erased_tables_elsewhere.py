"""After an erasure every engine reads the table, from a checkpoint that names no removed file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.model.names import IS_DELETED
from lakesplice.spark.jars import DELTA
from tests.support import machine
from tests.support.delta_spark import run_delta_spark
from tests.support.readers import READERS

ROWS, GONE = 200, (3, 77)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Of its rows two are erased; some others changed before, and others after."""
    ids = list(range(ROWS))
    rows = pa.table({"id": ids, "name": [f"name {one}" for one in ids]})
    table = Table.create(tmp_path / "lake" / "s" / "t", rows, key=["id"], change_feed=True)
    table.upsert(pa.table({"id": [1, 3], "name": ["one", "three"]}))
    table.upsert(delete=pa.table({"id": [*GONE, 9]}))
    table.compact()
    table.erase(GONE)
    table.upsert(pa.table({"id": [2], "name": ["two"]}), merge=True)
    return table


def test_every_reader_reads_what_is_left(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "lake" / "s" / "t"
    expected = table.read(include_deleted=True).sort_by("id")
    assert expected.num_rows == ROWS - len(GONE)
    for version in (table.version - 1, table.version):
        for name, read in READERS.items():
            found = read(path, version).sort_by("id")
            assert found["id"].equals(expected["id"]), name
    for name, read in READERS.items():
        found = read(path, table.version).sort_by("id").select(["id", "name", IS_DELETED])
        live = found.filter(pa.compute.invert(found[IS_DELETED])).select(["id", "name"])
        assert live.cast(table.schema).equals(table.read().sort_by("id")), name
    (checkpoint,) = path.glob("_delta_log/*.checkpoint.parquet")
    assert pq.read_table(checkpoint)["remove"].null_count == pq.read_metadata(checkpoint).num_rows


def test_spark_reads_it_and_its_change_feed_from_the_erasure_on(
    table: Table, tmp_path: Path
) -> None:
    jars = machine.jars(DELTA)
    live, feed = table.read().num_rows, f"'{tmp_path}/lake/s/t', {table.version}"
    asked = {
        "rows": f"(select count(*) from {{table}} where not _is_deleted) = {live}",
        "erased": f"(select count(*) from {{table}} where id in {GONE}) = 0",
        "changed": "(select name from {table} where id = 2) = 'two'",
        "fed": f"(select count(*) from table_changes_by_path({feed})) = 2",
    }
    statements = [f"select assert_true({claim})" for claim in asked.values()]
    found = run_delta_spark(jars, tmp_path / "lake" / "s" / "t", tmp_path, (), ["id"], statements)
    assert set(found.outcomes.values()) == {""}, found.outcomes
