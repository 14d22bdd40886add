"""`lakesplice bootstrap` of one table beside Spark's `jdbc` source, which writes it to Parquet.

Run: python -m benchmarks.bootstrap [--rows N] [--repeats N] [--connections N] [--out FILE]. Needs a
MariaDB (`lakesplice.testing`), which it starts by itself. The table has 12 columns of usual types.
Both read over as many connections, in turn, in the same run. Ours reads every type exactly, and
makes a table of this lake with its row index, in a shadow, without a topic; Spark's makes plain
Parquet files, with FLOAT, TIME and others wrong where a table has them. Medians; compare ratios: of
the seconds that passed, and of those of the processor, the server's included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.verify import DATABASE, TYPES, fill, processor_seconds
from lakesplice.apps.bootstrap.source_chunks import LoadBounds, ReadPlan, key_bounds, read_plan
from lakesplice.apps.bootstrap.table_filling import TableFilling
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.shadow_plan import ShadowPlan
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.intake.line import RecordReading
from lakesplice.spark.jars import ensure_jars
from lakesplice.spark.session import build_session
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.ingest.shadow import begin_shadow, shadow_table
from lakesplice.table.protocol.ports import UNWATCHED
from lakesplice.testing.servers.connect import DEBEZIUM
from lakesplice.testing.servers.mariadb import MARIADB, PASSWORD, USER, LocalMariaDB, unpacked

_NAME = TableName(DATABASE, "t")


class Bootstrap:
    """Fills the table in a lake of its own."""

    def __init__(self, address: DatabaseAddress, bounds: LoadBounds) -> None:
        self._address, self._bounds, self._clock = address, bounds, SystemClock()

    def fill(self, folder: Path) -> int:
        """Return how many rows the shadow has."""
        read, plan = self._planned()
        store = open_store(folder).within(_NAME.path)
        begin_shadow(store, plan)
        entropy = SystemEntropy()
        table = shadow_table(store, plan, self._clock, entropy)
        filling = TableFilling(
            name=_NAME,
            table=table,
            plan=plan,
            read_plan=read,
            reading=lambda: RecordReading(table=_NAME),
            feed=lambda: None,
            look_again=lambda: read,
            connect=self._connect,
            bounds=self._bounds,
            clock=self._clock,
            entropy=entropy,
            progress=UNWATCHED,
        )
        filling.fill()
        backfill = table.manifest.backfill
        return 0 if backfill is None else backfill.rows

    def _connect(self) -> SourceConnection:
        return SourceConnection(self._address, self._clock)

    def _planned(self) -> tuple[ReadPlan, ShadowPlan]:
        fields = [
            SourceField(name, ColumnType.parse(type_), "") for name, (_, type_, _) in TYPES.items()
        ]
        with self._connect() as connection:
            source = connection.table(DATABASE, "t")
            assert source is not None
            read = read_plan(source, SourceSchema(tuple(fields), ("id",)))
            assert isinstance(read, ReadPlan), read
            found = key_bounds(connection, read, self._bounds.chunk_rows)
            assert isinstance(found, tuple)
            start, bounds = found
            plan = ShadowPlan(
                shadow="1",
                topic=f"bench.{_NAME}",
                topic_id="1",
                server=connection.identity(),
                database=DATABASE,
                table="t",
                start=start,
                created_ms=self._clock.now_ms(),
                ends={0: Offset(0)},
                bounds=bounds,
            )
        return read, plan


class SparkJdbc:
    """Reads the table by Spark's own source and writes Parquet."""

    def __init__(self, session: SparkSession, address: DatabaseAddress, count: int) -> None:
        self._session, self._address, self._count = session, address, count
        self.pid: int = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # the JVM's

    def fill(self, folder: Path, rows: int) -> None:
        """Write the rows, in as many partitions as there are connections."""
        address = self._address
        # Only for this scheme does Spark quote names as MariaDB reads them.
        url = f"jdbc:mysql://{address.host}:{address.port}/{DATABASE}?permitMysqlScheme"
        frame = self._session.read.format("jdbc").options(
            url=url,
            driver="org.mariadb.jdbc.Driver",
            user=USER,
            password=PASSWORD,
            dbtable="t",
            partitionColumn="id",
            lowerBound="1",
            upperBound=str(rows + 1),
            numPartitions=str(self._count),
            fetchsize="10000",
        )
        frame.load().write.parquet(str(folder))


def _timed(work: Callable[[Path], object], folder: Path, pids: list[int]) -> tuple[float, float]:
    """Return the seconds that passed, and those of the processor, in these processes."""
    begun, used = time.perf_counter(), sum(map(processor_seconds, pids))
    work(folder)
    passed, used = time.perf_counter() - begun, sum(map(processor_seconds, pids)) - used
    shutil.rmtree(folder)
    return passed, used


def _measure(
    ours: Bootstrap, spark: SparkJdbc, rows: int, repeats: int, folder: Path, server: int
) -> dict[str, list[float]]:
    """Return the medians of what passed and of the processor's seconds."""
    seconds: dict[str, list[tuple[float, float]]] = {"jdbc": [], "bootstrap": []}
    spark.fill(folder / "warm", rows)  # its first job compiles code
    found: list[int] = []
    for number in range(repeats):
        works: dict[str, tuple[Callable[[Path], object], int]] = {
            "jdbc": (lambda at: spark.fill(at, rows), spark.pid),
            "bootstrap": (lambda at: found.append(ours.fill(at)), os.getpid()),
        }
        for name, (work, pid) in works.items():
            seconds[name].append(_timed(work, folder / f"{name}{number}", [pid, server]))
        print({name: values[-1] for name, values in seconds.items()}, flush=True)
    assert found == [rows] * repeats
    return {
        name: [round(statistics.median(values), 2) for values in zip(*runs, strict=True)]
        for name, runs in seconds.items()
    }


def main() -> None:
    """Measure, and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--connections", type=int, default=2)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    (archive,) = ensure_jars(MARIADB)
    drivers = [jar for jar in ensure_jars(DEBEZIUM) if jar.name.startswith("mariadb-java-client")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "db").mkdir()
        session = build_session(f"local[{given.connections}]", "2g", drivers, {})
        with LocalMariaDB(unpacked(archive), folder / "db") as server:
            address = DatabaseAddress(server.host, server.port, USER, "", PASSWORD)
            with SourceConnection(address, SystemClock()) as connection:
                fill(connection, given.rows)
            ours = Bootstrap(address, LoadBounds(connections=given.connections))
            spark = SparkJdbc(session, address, given.connections)
            pid = server.pid or 0
            medians = _measure(ours, spark, given.rows, given.repeats, folder, pid)
        session.stop()
    passed, used = ({name: both[at] for name, both in medians.items()} for at in (0, 1))
    figures = {
        "rows": given.rows,
        "connections": given.connections,
        "seconds": passed,
        "processor_seconds": used,
        "rows_per_second": {name: round(given.rows / value) for name, value in passed.items()},
        "ratio": round(passed["jdbc"] / passed["bootstrap"], 2),
        "processor_ratio": round(used["jdbc"] / used["bootstrap"], 2),
    }
    print(json.dumps(figures, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
