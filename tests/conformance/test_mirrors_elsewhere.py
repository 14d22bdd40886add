"""DuckDB and Spark read an Iceberg mirror: each snapshot has the rows of its version.

DuckDB opens the metadata, Spark the catalog, which is the same SQLite file for it and for us.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.model.names import IS_DELETED
from lakesplice.spark.jars import DELTA, JarSet, Module
from lakesplice.storage.system import SystemClock
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorState
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import SeededEntropy
from tests.support import machine
from tests.support.altered import event
from tests.support.delta_spark import run_delta_spark
from tests.support.mirrors import mirror_of, sqlite_catalog
from tests.support.partitioned import INT, MORE, Life, begun, row

ICEBERG = JarSet(
    "iceberg-spark",
    (
        Module("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
        Module("org.xerial", "sqlite-jdbc", "3.49.1.0"),
    ),
)
# Both have the name of the catalog beside each table, so both must use the same.
_CATALOG = "spark.sql.catalog.lakesplice"
ORDER = [("id", "ascending"), (IS_DELETED, "ascending")]


@dataclass(frozen=True)
class Mirrored:
    """A table with a mirror that followed each of its versions; `catalog` are the properties of the
    mirror's catalog, and `state` is what it has.
    """

    life: Life
    catalog: dict[str, str]
    state: MirrorState

    @property
    def metadata(self) -> str:
        """The address of the Iceberg table's newest metadata."""
        return str(self.state.handle.metadata_location)

    def require(self, found: pa.Table, version: int) -> None:
        """What a reader sees is our read-optimised view, deleted rows included."""
        ours = Table(self.life.store).read(
            "read_optimised", version=version, include_deleted=True, include_system=True
        )
        ours = ours.select([name for name in MORE if name in ours.column_names] + [IS_DELETED])
        found = found.select(ours.column_names).cast(ours.schema).sort_by(ORDER)
        assert found.to_pylist() == ours.sort_by(ORDER).to_pylist(), version


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Mirrored:
    """Updates, deletes, moves between partitions, one more column, a merge of files, and a restored
    version.
    """
    folder = tmp_path_factory.mktemp("lake")
    life = begun(folder / "lake", SystemClock())
    properties = sqlite_catalog(folder)
    catalog = mirror_of(properties, life.store, life.driver.name)
    mirror = Mirror(life.store, catalog, SeededEntropy(5))
    table = life.driver.table

    def follow() -> None:
        assert table.snapshot is not None
        assert mirror.follow(table.snapshot).is_current

    follow()
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    follow()
    life.take(event(INT, 21, None, row(2, 2, "a")), event(INT, 22, row(3, 8, "b"), row(3, 3, "b")))
    life.driver.compact()
    follow()
    life.take(event(MORE, 30, {**row(6, 6, "c d/e"), "c": 1}))
    life.take(event(MORE, 31, {**row(3, 7, "b"), "c": 2}, {**row(3, 8, "b"), "c": 5}))
    life.driver.compact()
    follow()
    kept = table.version
    life.driver.merge_files(2)
    follow()
    assert table.snapshot is not None
    restore(table.store, table.snapshot, kept, table.commit, 1, retries=table.retries())
    follow()
    life.take(event(MORE, 40, {**row(7, 7, None), "c": 7}))
    follow()
    state = catalog.load()
    assert state is not None
    return Mirrored(life, properties, state)


def test_duckdb_reads_the_rows_of_each_version_from_a_mirror(mirrored: Mirrored) -> None:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        for name in ("avro", "iceberg"):
            folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            database.execute(f"load '{folder / f'{name}.duckdb_extension'}'")
        for one in mirrored.state.snapshots:
            scan = f"iceberg_scan('{mirrored.metadata}', snapshot_from_id => {one.id})"
            found = database.sql(f"select * from {scan}").to_arrow_table()
            mirrored.require(found, one.version)
    assert len(mirrored.state.snapshots) == 7


@pytest.mark.nightly
def test_spark_reads_the_rows_of_each_version_from_a_mirror(
    mirrored: Mirrored, tmp_path: Path
) -> None:
    statements: list[str] = [
        f"set `{_CATALOG}` = org.apache.iceberg.spark.SparkCatalog",
        f"set `{_CATALOG}.type` = jdbc",
        f"set `{_CATALOG}.uri` = {mirrored.catalog['uri'].replace('sqlite:///', 'jdbc:sqlite:')}",
        f"set `{_CATALOG}.warehouse` = {tmp_path}",
        *(_export(tmp_path, one.id) for one in mirrored.state.snapshots),
    ]
    jars: Sequence[Path] = (*machine.jars(DELTA), *machine.jars(ICEBERG))
    found = run_delta_spark(jars, mirrored.life.root, tmp_path, 0, ("id",), statements)
    assert set(found.outcomes.values()) == {""}, found.outcomes
    for one in mirrored.state.snapshots:
        mirrored.require(pq.read_table(tmp_path / str(one.id)), one.version)


def _export(folder: Path, snapshot: int) -> str:
    to = f"insert overwrite directory '{folder / str(snapshot)}' using parquet"
    return f"{to} select * from lakesplice.s.t version as of {snapshot}"
