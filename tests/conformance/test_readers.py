"""Every engine reads every version of a table with every kind of commit.

The service's own steps make it: snapshot, inserts, updates, deletes and key changes in several
batches, compactions, an added column, a merge of index runs, a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import lakesplice
from lakesplice.spark.jars import DELTA
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.storage.system import SystemClock
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.compare import compare
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.shop import ORDERS, Shop
from lakesplice.testing.shop.columns import double, varchar
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.conformance.conftest import SomeOf
from tests.support import machine
from tests.support.delta_spark import exported, run_delta_spark
from tests.support.readers import READERS
from tests.support.trino import LocalTrino, TrinoError

# `test_tables_elsewhere.py` tries every other kind.
FOREIGN_STATEMENTS = ("update {table} set status = 'lost' where id = 1",)
# Trino inserts, updates and deletes in no local folder, whatever the table.
STATEMENTS_IN_TRINO = (
    "alter table {schema}.{table} execute optimize",
    "alter table {schema}.{table} add column more integer",
    "call system.vacuum('{schema}', '{table}', '8d')",
)


@dataclass(frozen=True)
class Lived:
    """The table's folder, its number of versions, and what it must hold at the end, and at versions
    for which no change waits.
    """

    path: Path
    versions: int
    truth: pa.Table
    truths: dict[int, pa.Table]

    def at(self, version: int) -> pa.Table:
        """The read-optimised view as we read it, deleted rows and system columns included."""
        table = lakesplice.Table.open(self.path).read(
            "read_optimised", version=version, include_deleted=True, include_system=True
        )
        return table.sort_by("id")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    lake = tmp_path_factory.mktemp("lake")
    shop = Shop(7, (ORDERS,), rows=300)
    topic = SimulatedTopic(shop.topics[0])
    # Spark with Delta opens no version beyond the retention, by the machine's clock.
    driver = SimulatedDriver(LocalStore(lake), topic, SystemClock(), SeededEntropy(7))

    truths = {}

    def take(events: int) -> None:
        topic.append(0, shop.step(events))
        assert driver.batch() is CommitOutcome.DONE

    def compact() -> None:
        driver.compact()
        assert not driver.table.manifest.deltas
        truths[driver.table.version] = shop.truth("orders")

    topic.append(0, shop.snapshot())
    for _ in range(3):
        take(120)
    compact()
    take(80)
    DeltaLogKeeper(lake / driver.name.path).checkpoint(driver.table.version)
    shop.add_column("orders", varchar("channel"))
    take(80)
    take(60)
    compact()
    shop.add_column("orders", double("weight"))
    take(60)
    driver.merge_runs(2)
    compact()
    path = lake / driver.name.path
    versions = lakesplice.Table.open(path).version + 1
    return Lived(path, versions, shop.truth("orders"), truths)


def same(found: pa.Table, ours: pa.Table) -> bool:
    """Whether another engine's rows are ours, whatever widths of types it prefers."""
    assert found.schema.names == ours.schema.names
    return bool(
        found.cast(ours.schema).sort_by("id").combine_chunks().equals(ours.combine_chunks())
    )


def require_true(found: pa.Table, lived: Lived, version: int) -> None:
    """What another engine reads is what the source held, if no change waits for a compaction."""
    if version in lived.truths:
        live = found.cast(lived.at(version).schema)
        live = live.filter(pc.invert(live["_is_deleted"]))
        assert compare(lived.truths[version], live, ORDERS.key) is None, version


def test_the_table_has_seen_everything(lived: Lived) -> None:
    table = lakesplice.Table.open(lived.path)
    assert compare(lived.truth, table.read(), ORDERS.key) is None
    operations = {entry.info.operation for entry in table.history()}
    assert {"INGEST", "SPLICE", "CHANGE SCHEMA", "INDEX MERGE"} <= operations
    assert lived.at(lived.versions - 1).column("_is_deleted").to_pylist().count(True) > 0
    assert any(lived.path.glob("_delta_log/*.checkpoint.parquet"))
    assert check(LocalStore(lived.path), open_snapshot(LocalStore(lived.path))).sound


@pytest.mark.parametrize("engine", READERS)
def test_every_version_is_the_same_elsewhere(lived: Lived, engine: str) -> None:
    for version in range(lived.versions):
        found = READERS[engine](lived.path, version)
        assert same(found, lived.at(version)), version
        require_true(found, lived, version)


def test_spark_with_delta_reads_each_version_and_writes_none(
    lived: Lived, tmp_path: Path, some_of: SomeOf
) -> None:
    before, versions = files_of(lived.path), some_of(lived.versions)
    found = run_delta_spark(
        machine.jars(DELTA),
        lived.path,
        tmp_path,
        versions,
        ("id",),
        FOREIGN_STATEMENTS,
        export=True,
    )
    for version in versions:
        theirs = pq.read_table(exported(tmp_path, version))
        assert same(theirs, lived.at(version)), version
        require_true(theirs, lived, version)
    for statement, outcome in found.outcomes.items():
        assert "lakesplice" in outcome, f"{statement}: {outcome or 'went through'}"
    assert before.items() <= files_of(lived.path).items()
    assert compare(lived.truth, lakesplice.Table.open(lived.path).read(), ORDERS.key) is None


@pytest.mark.nightly
def test_trino_reads_every_version_and_writes_none(lived: Lived, trino: LocalTrino) -> None:
    before = files_of(lived.path)
    for version in range(lived.versions):
        theirs = trino.read(lived.path, version)
        assert same(theirs, lived.at(version)), version
        require_true(theirs, lived, version)
    schema, table = trino.registered(lived.path).split(".")
    for statement in STATEMENTS_IN_TRINO:
        with pytest.raises(TrinoError, match="lakesplice"):
            trino.run(statement.format(schema=schema, table=table))
    assert files_of(lived.path) == before
    assert compare(lived.truth, lakesplice.Table.open(lived.path).read(), ORDERS.key) is None


def test_deltalake_writes_nothing(lived: Lived) -> None:
    before = files_of(lived.path)
    theirs = deltalake.DeltaTable(str(lived.path))
    rows = theirs.to_pyarrow_table()
    attempts = (
        lambda: deltalake.write_deltalake(theirs, rows, mode="append"),
        lambda: theirs.delete("id = 1"),
        theirs.optimize.compact,
        lambda: theirs.vacuum(0, dry_run=False, enforce_retention_duration=False),
    )
    for attempt in attempts:
        with pytest.raises(deltalake.exceptions.DeltaError):
            attempt()
    assert before.items() <= files_of(lived.path).items()
    assert lakesplice.Table.open(lived.path).version == lived.versions - 1


@pytest.mark.parametrize(
    "condition",
    [
        ds.field("_is_deleted") == False,  # noqa: E712  # as people write it
        ~ds.field("_is_deleted"),
        ds.field("_position_offset") > 0,
        ds.field("status") == "paid",
        ds.field("total") > pa.scalar(Decimal("100.00"), pa.decimal128(12, 2)),
        ds.field("remark") >= "a",
        ds.field("placed_at") > pa.scalar(0, pa.timestamp("us", "UTC")),
        ds.field("weight") > 0.0,
        (ds.field("id") > 50) & (ds.field("id") <= 200),
    ],
    ids=str,
)
def test_filters_lose_no_row_elsewhere(lived: Lived, condition: ds.Expression) -> None:
    ours = lived.at(lived.versions - 1).filter(condition)
    dataset = deltalake.DeltaTable(str(lived.path)).to_pyarrow_dataset()
    assert same(dataset.to_table(filter=condition), ours)


def test_the_one_line_filter_hides_deleted_rows_in_polars(lived: Lived) -> None:
    hidden = ~pl.col("_is_deleted")
    found = pl.scan_delta(str(lived.path)).filter(hidden).collect().to_arrow()
    assert compare(lived.truth, found.select(lived.truth.schema.names), ORDERS.key) is None


def files_of(path: Path) -> dict[str, int]:
    """Every file of the table with its size."""
    files = (file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file.stat().st_size for file in files}
