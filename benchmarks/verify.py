"""`lakesplice verify` of a table that is equal: its part at the database and its part at the lake.

Run: python -m benchmarks.verify [--rows N] [--repeats N]. Needs a MariaDB (`lakesplice.testing`),
which it starts by itself. The table has 12 columns of usual types. The floors, in the same run and
in turn: one statement that reads every column of every row in the database, and one scan of the
same rows' real-time view. Then one value is changed in the database, and finding it is measured.
Medians; compare ratios, not seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from lakesplice.apps.library.table import Table as HandFed
from lakesplice.apps.verifying.catch_up import CatchUp
from lakesplice.apps.verifying.compared_sides import ComparedSides
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.differences import differing_keys
from lakesplice.apps.verifying.lake_rows import lake_sums
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.source_sums import SourceSums, add_source_sums
from lakesplice.model.names import TableName
from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.checksums import BucketSums, Compared
from lakesplice.planning.source_rows.columns import ReadColumn, read_column
from lakesplice.planning.source_rows.key_ranges import KeyColumn, KeyRange, key_columns
from lakesplice.spark.jars import ensure_jars
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import Snapshot, SourceConnection, TableChanged
from lakesplice.storage.source.tables import SourceTable
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.storage.system import SystemClock
from lakesplice.table.protocol.ports import UNWATCHED
from lakesplice.table.reading.table import Table
from lakesplice.testing.servers.mariadb import MARIADB, PASSWORD, USER, LocalMariaDB, unpacked

DATABASE = "bench"
TYPES = {
    "id": ("bigint primary key", "long", "seq"),
    "c1": ("bigint", "long", "crc32(seq)"),
    "c2": ("int", "integer", "seq % 99991"),
    "c3": ("varchar(40)", "string", "md5(seq)"),
    "c4": ("varchar(100)", "string", "concat('customer number ', seq, ' é')"),
    "c5": ("decimal(12,2)", "decimal(12,2)", "seq / 7"),
    "c6": ("datetime(3)", "timestamp", "'2020-01-01' + interval seq second"),
    "c7": ("double", "double", "seq / 3"),
    "c8": ("int unsigned", "long", "crc32(seq + 1)"),
    "c9": ("char(10)", "string", "left(md5(seq + 1), 8)"),
    "c10": ("date", "date", "'2000-01-01' + interval (seq % 9000) day"),
    "c11": ("tinyint", "short", "seq % 100"),
}
_ROWS_AT_ONCE = 500_000


def fill(connection: SourceConnection, rows: int, tables: Sequence[str] = ("t",)) -> None:
    """Make the tables, each with so many rows."""
    columns = ", ".join(f"{name} {ddl}" for name, (ddl, _, _) in TYPES.items())
    values = ", ".join(value for _, _, value in TYPES.values())
    ask = connection._execute  # noqa: SLF001  # a benchmark writes, the product never does
    ask(f"create database {DATABASE}")
    for table in tables:
        ask(f"create table {DATABASE}.{table} ({columns})")
        for first in range(1, rows + 1, _ROWS_AT_ONCE):
            numbers = f"{DATABASE}.seq_{first}_to_{min(rows, first + _ROWS_AT_ONCE - 1)}"
            ask(f"insert into {DATABASE}.{table} select {values} from {numbers}")


def _columns(table: SourceTable) -> tuple[ReadColumn, ...]:
    found = []
    for column in table.columns:
        read = read_column(column, ColumnType.parse(TYPES[column.name][1]), "")
        assert isinstance(read, ReadColumn)
        found.append(read)
    return tuple(found)


def _compared(table: SourceTable, *, quick: bool) -> ComparedTable:
    columns = _columns(table)
    key = key_columns(table.key, {column.name: column for column in table.columns})
    assert isinstance(key, tuple)
    return ComparedTable(
        source=table,
        compared=Compared(columns, columns[:1], quick),
        stored={name: name for name in TYPES},
        range_key=key,
        lake_key=key,
        not_compared={},
    )


def _copy(connection: SourceConnection, table: ComparedTable, store: AnyStore) -> None:
    """Let a table of the lake have the same rows; it is fed by hand, which reading doesn't see."""
    columns, key = table.compared.columns, table.range_key
    fields = [(column.name, column.type.arrow) for column in columns]
    hand = HandFed.create(str(store), pa.schema(fields), key=["id"])
    after = None
    while True:
        part, after = _read(connection, table, columns, key, after)
        hand.upsert(part)
        if after is None:
            break


def _read(
    connection: SourceConnection,
    table: ComparedTable,
    columns: tuple[ReadColumn, ...],
    key: tuple[KeyColumn, ...],
    after: tuple[str, ...] | None,
) -> tuple[pa.Table, tuple[str, ...] | None]:
    def work(snapshot: Snapshot) -> tuple[pa.Table, tuple[str, ...] | None]:
        tables, bound = [], after
        for _ in range(25):
            start, bound = bound, snapshot.bound(key, bound, 20_000)
            parts = snapshot.rows(columns, key, KeyRange(start, bound))
            tables += [pa.table({n: c.values for n, c in p.columns.items()}) for p in parts]
            if bound is None:
                break
        return pa.concat_tables(tables), bound

    found = connection.in_snapshot(table.source, work)
    assert not isinstance(found, TableChanged)
    return found


def processor_seconds(pid: int) -> float:
    """Return the seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _timed(work: Callable[[], object], pid: int) -> tuple[float, float]:
    """Return the seconds that passed, and those of the processor, here and in the server."""
    begun, here, there = time.perf_counter(), time.process_time(), processor_seconds(pid)
    work()
    used = time.process_time() - here + processor_seconds(pid) - there
    return time.perf_counter() - begun, used


class Measured:
    """One database and one lake with the same rows."""

    def __init__(self, connection: SourceConnection, source: SourceTable, store: AnyStore) -> None:
        self.connection, self.store = connection, store
        self.tables = {quick: _compared(source, quick=quick) for quick in (False, True)}
        self.sums: dict[bool, SourceSums] = {}

    def database_scan(self) -> None:
        """Read every column of every row in the database."""
        some = ",".join(f"max({name})" for name in TYPES)
        table = self.tables[False].source
        self.connection.in_snapshot(table, lambda snapshot: snapshot.answer(some, "1"))

    def database_part(self, *, quick: bool) -> None:
        """Add up the database's sums."""
        sums = SourceSums(BucketSums(quick))
        read_limit = ReadLimit(SystemClock(), 1e9, 1_000)
        table = self.tables[quick]
        add_source_sums(self.connection, table, sums, read_limit, lambda _: None, UNWATCHED)
        self.sums[quick] = sums

    def lake_scan(self) -> None:
        """Read every column of every row of the real-time view."""
        for _ in Table(self.store).scan("real_time", list(TYPES)):
            pass

    def lake_part(self, *, quick: bool) -> list[int]:
        """Add up the lake's sums; return the buckets that differ."""
        ours, _ = lake_sums(Table(self.store), self.tables[quick], None, UNWATCHED)
        return self.sums[quick].sums.differing(ours)

    def find(self, buckets: list[int]) -> int:
        """Open buckets; return how many keys differ."""
        clock = SystemClock()
        sides = ComparedSides(
            connection=self.connection,
            store=self.store,
            topic="",
            table=self.tables[False],
            read_limit=ReadLimit(clock, 1e9, 1_000),
            catch_up=CatchUp(self.store, clock, 0.0, TableName("bench", "rows")),
        )
        keys = differing_keys(sides, self.sums[False], Table(self.store), buckets)
        return int(keys.num_rows)


def _measure(measured: Measured, rows: int, repeats: int, pid: int) -> dict[str, list[float]]:
    """Return medians: seconds that passed, and seconds of the processor."""
    works: dict[str, Callable[[], object]] = {
        "database: one scan": measured.database_scan,
        "database: SHA-1": lambda: measured.database_part(quick=False),
        "database: CRC32": lambda: measured.database_part(quick=True),
        "lake: one real-time scan": measured.lake_scan,
        "lake: SHA-1": lambda: measured.lake_part(quick=False),
        "lake: CRC32": lambda: measured.lake_part(quick=True),
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            seconds[name].append(_timed(work, pid))
            print(f"{name}: {seconds[name][-1][0]:.2f} s", flush=True)
    for quick in (False, True):
        assert measured.lake_part(quick=quick) == [], "the same rows have other sums"
    ask = measured.connection._execute  # noqa: SLF001  # as above
    ask(f"update {DATABASE}.t set c4 = 'another' where id = {rows // 2}")
    measured.database_part(quick=False)
    buckets = measured.lake_part(quick=False)
    assert len(buckets) == 1
    found: list[int] = []
    seconds["finding one value"] = [_timed(lambda: found.append(measured.find(buckets)), pid)]
    assert found == [1]
    return {
        name: [round(statistics.median(values), 3) for values in zip(*runs, strict=True)]
        for name, runs in seconds.items()
    }


def main() -> None:
    """Measure, and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    (archive,) = ensure_jars(MARIADB)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "db").mkdir()
        store = open_store(folder / "lake")
        with LocalMariaDB(unpacked(archive), folder / "db") as server:
            address = DatabaseAddress(server.host, server.port, USER, "", PASSWORD)
            with SourceConnection(address, SystemClock()) as connection:
                fill(connection, given.rows)
                source = connection.table(DATABASE, "t")
                assert source is not None
                measured = Measured(connection, source, store)
                _copy(connection, measured.tables[False], store)
                medians = _measure(measured, given.rows, given.repeats, server.pid or 0)
    cpu = {name: used for name, (_, used) in medians.items()}
    figures = {
        "rows": given.rows,
        "seconds": {name: passed for name, (passed, _) in medians.items()},
        "processor_seconds": cpu,
        "processor_ratios": {
            "database: SHA-1": cpu["database: SHA-1"] / cpu["database: one scan"],
            "database: CRC32": cpu["database: CRC32"] / cpu["database: one scan"],
            "lake: SHA-1": cpu["lake: SHA-1"] / cpu["lake: one real-time scan"],
            "lake: CRC32": cpu["lake: CRC32"] / cpu["lake: one real-time scan"],
            "finding one value": cpu["finding one value"]
            / (cpu["database: SHA-1"] + cpu["lake: SHA-1"]),
        },
    }
    print(json.dumps(figures, indent=2))
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
