"""Other engines read the same rows from every version of a table, and can't write to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

from lakesplice.formats.log.actions import DOMAIN, OUR_PROTOCOL
from lakesplice.model.change import Op
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.spark.jars import DELTA
from lakesplice.storage.system import SystemClock
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.intents import Evolve, IndexMerge, Redirect
from lakesplice.table.protocol.layout import base_path, commit_path
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot, read_log
from lakesplice.table.reading.table import Table
from tests.conformance.conftest import SomeOf
from tests.support import machine
from tests.support.delta_spark import run_delta_spark
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable
from tests.support.readers import READERS
from tests.support.tables import SCHEMA, TableUnderTest, local_table, rows
from tests.support.trino import LocalTrino, in_milliseconds

SCORE = Column(3, "score", "score", ColumnType(Primitive.DOUBLE), "double")
EVOLVED = SCHEMA.with_columns([SCORE], SCHEMA.key)
ONE = [(1, "a"), (2, None), (3, "c")]
TWO = [(4, "d"), (5, "é\n'\"")]
SPLICED = [(1, "changed"), (2, None), (3, None)]
# What a reader is to see in each version: nothing yet, one file, two, then the first one spliced.
EXPECTED: tuple[list[tuple[int, str | None]], ...] = (
    [],
    ONE,
    [*ONE, *TWO],
    [*SPLICED, *TWO],
    [*SPLICED, *TWO],
    [*SPLICED, *TWO],
    [*SPLICED, *TWO],
)
REFUSED = (
    "insert into {table} select * from {table}",
    "delete from {table} where id = 1",
    "update {table} set name = 'x'",
    "merge into {table} t using (select 1 as id) s on t.id = s.id when matched then delete",
    "optimize {table}",
    "vacuum {table} retain 10000 hours",
    "alter table {table} add columns (more int)",
    "restore table {table} to version as of 1",
)


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    """A table that has seen each kind of commit; its versions are `EXPECTED`."""
    table = local_table(tmp_path)
    # Spark with Delta opens no version beyond the retention, by the machine's clock.
    table.clock.jump_to(SystemClock().now_ms())
    table.create()
    first = table.real_file(1, ONE)
    table.committed(table.ingest(files=(first,), runs=(table.run(),)))
    second = table.real_file(2, TWO)
    table.committed(table.ingest(files=(second,), runs=(table.run(),), deltas=(table.delta(1),)))
    path = base_path(1, 1, table.entropy)
    written = table.written(path, 1, SPLICED)
    new = replace(written, base=replace(written.base, splices=1))
    table.committed(replace(table.splice(first.base.path), replaced={first.base.path: new}))
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    table.committed(IndexMerge(1, inputs, table.run()))
    table.committed(Evolve.of(1, table.now().manifest, EVOLVED))
    table.committed(Redirect(1, 5))
    return table


def _root(tmp_path: Path) -> Path:
    return tmp_path / "shop" / "orders"


def _seen(found: pa.Table) -> list[tuple[Any, Any]]:
    seen = found.select(["id", "name"]).sort_by("id").to_pydict()
    return list(zip(seen["id"], seen["name"], strict=True))


@pytest.mark.parametrize("engine", READERS)
def test_every_version_reads_the_same_elsewhere(
    table: TableUnderTest, tmp_path: Path, engine: str
) -> None:
    for version, expected in enumerate(EXPECTED):
        found = READERS[engine](_root(tmp_path), version)
        assert _seen(found) == expected
        schema = SCHEMA if version < 5 else EVOLVED
        assert found.schema.names == schema.arrow.names


@pytest.mark.parametrize("engine", READERS)
def test_a_table_parked_without_columns_opens_elsewhere(tmp_path: Path, engine: str) -> None:
    local_table(tmp_path).create(schema=TableSchema())
    assert READERS[engine](_root(tmp_path), 0).num_rows == 0


def test_statistics_let_a_reader_skip_files_and_lose_nothing(
    table: TableUnderTest, tmp_path: Path
) -> None:
    for value in range(7):
        expected = [row for row in EXPECTED[-1] if row[0] == value]
        scan = pl.scan_delta(str(_root(tmp_path)), version=4).filter(pl.col("id") == value)
        assert _seen(scan.collect().to_arrow()) == expected


def test_spark_with_delta_reads_each_version_and_writes_none(
    table: TableUnderTest, tmp_path: Path, some_of: SomeOf
) -> None:
    before, versions = table.now(), some_of(len(EXPECTED))
    tried = [REFUSED[at] for at in some_of(len(REFUSED))]
    found = run_delta_spark(
        machine.jars(DELTA), _root(tmp_path), tmp_path, versions, ("id", "name"), tried
    )
    for version in versions:
        assert [tuple(row) for row in found.versions[version]] == EXPECTED[version], version
    for statement, outcome in found.outcomes.items():
        assert "lakesplice" in outcome, f"{statement}: {outcome or 'went through'}"
    assert table.now() == before
    _require_all_base_files(table, before)


@pytest.mark.nightly
def test_trino_reads_values_at_the_limits_of_every_type(tmp_path: Path, trino: LocalTrino) -> None:
    """Before a compaction and after it, with moments rounded to milliseconds."""
    high = (*HIGH[:-1], HIGH[-1] - timedelta(microseconds=500))
    table = MadeTable(tmp_path, EVERY_TYPE)
    table.insert([row(key, values) for key, values in enumerate((LOW, high, None, LOW))])
    table.change([(Op.UPDATE, row(3, high)), (Op.DELETE, row(0, LOW))])
    table.compact()
    theirs = Table(table.store)
    for version in range(theirs.version + 1):
        ours = theirs.read("read_optimised", version=version, include_deleted=True)
        found = trino.read(tmp_path, version).select(ours.column_names).cast(ours.schema)
        assert found.sort_by("c_long_0") == in_milliseconds(ours.sort_by("c_long_0")), version


def test_deltalake_refuses_to_write(table: TableUnderTest, tmp_path: Path) -> None:
    before = table.now()
    theirs = deltalake.DeltaTable(str(_root(tmp_path)))
    added = rows([(9, "z")]).append_column("score", pa.array([1.0]))
    attempts = (
        lambda: deltalake.write_deltalake(theirs, added, mode="append", schema_mode="merge"),
        lambda: deltalake.write_deltalake(theirs, added, mode="overwrite", schema_mode="overwrite"),
        lambda: theirs.delete("id = 1"),
        lambda: theirs.update({"name": "'x'"}),
        theirs.optimize.compact,
        lambda: theirs.alter.set_table_properties({"delta.appendOnly": "true"}),
        lambda: theirs.restore(1),
    )
    for attempt in attempts:
        with pytest.raises(deltalake.exceptions.DeltaError):
            attempt()
    assert table.now() == before
    _require_all_base_files(table, before)


def test_a_checkpoint_by_deltalake_keeps_what_we_need(
    table: TableUnderTest, tmp_path: Path
) -> None:
    newest = table.now()
    deltalake.DeltaTable(str(_root(tmp_path))).create_checkpoint()
    for version in range(newest.version):
        table.store.delete(commit_path(version))
    assert open_snapshot(table.store) == newest
    assert read_log(table.store).domains.keys() == {DOMAIN}
    assert read_log(table.store).protocol == OUR_PROTOCOL
    later = table.committed(table.ingest())
    assert open_snapshot(table.store) == later
    assert _seen(READERS["DuckDB"](_root(tmp_path), later.version)) == EXPECTED[-1]


def test_deltalake_tells_our_history(table: TableUnderTest, tmp_path: Path) -> None:
    theirs = deltalake.DeltaTable(str(_root(tmp_path))).history()
    ours = list(history(table.store))
    assert [entry["operation"] for entry in theirs] == [entry.info.operation for entry in ours]
    assert [entry["timestamp"] for entry in theirs] == [entry.info.timestamp_ms for entry in ours]


def _require_all_base_files(table: TableUnderTest, snapshot: Snapshot) -> None:
    for path, file in snapshot.manifest.files.items():
        assert table.store.size(path) == file.bytes
