"""A table with an Iceberg mirror that followed each of its versions, for readers to compare."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa

from lakesplice.model.names import IS_DELETED
from lakesplice.storage.system import SystemClock
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorState
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import SeededEntropy
from tests.support.altered import event
from tests.support.mirrors import mirror_of
from tests.support.partitioned import INT, MORE, Life, begun, row

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


def mirrored_life(folder: Path, properties: dict[str, str]) -> Mirrored:
    """Make a table and let its mirror follow through updates, deletes, moves between partitions,
    one more column, a merge of files, and a restored version.
    """
    life = begun(folder / "lake", SystemClock())
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


def duckdb_reads(mirrored: Mirrored, snapshot: int) -> pa.Table:
    """The rows that DuckDB finds in a snapshot, from the Iceberg table's metadata."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        for name in ("avro", "iceberg"):
            folder = files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}"
            database.execute(f"load '{folder / f'{name}.duckdb_extension'}'")
        scan = f"iceberg_scan('{mirrored.metadata}', snapshot_from_id => {snapshot})"
        return database.sql(f"select * from {scan}").to_arrow_table()
