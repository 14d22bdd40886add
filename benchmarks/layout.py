"""Laying a table out by two columns, beside Delta Lake's OPTIMIZE ZORDER BY of the same rows.

Run: python -m benchmarks.layout [--rows 2000000] [--repeats 5] [--out FILE]

Both tables hold the same rows of store_sales (TPC-DS), shuffled, in 32 files. Each turn lays out a
copy of each, ours by `Table.optimize`, Delta's by OPTIMIZE in a Spark session of all cores that has
warmed up; both make files of the same size. Then DuckDB and Spark ask both for a sum over 1 % of
one column, of the other, and of both, all tables in turn. The files and row groups are counted
whose bounds fit, and the bytes that the engine's process read. Seconds are those of the clock and
those of the processor, of all threads; on a machine with other work the latter say more.

Our pages are compressed with zstd, and those of Spark with Snappy unless it is told otherwise. So
the same is asked of tables with the other codec: of what OPTIMIZE wrote with zstd, and, in DuckDB
alone, of our files written again with Snappy, in the same row groups, pages and encodings.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, SEED, copied, store_sales
from benchmarks.verify import processor_seconds
from lakesplice import Table
from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.planning.upkeep.clustering import ClusterPolicy

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "layout.json"
BY = ("ss_sold_date_sk", "ss_item_sk")
QUERIES = ((BY[0],), (BY[1],), BY)
OTHER_CODEC = ("copy-ours-snappy", "copy-delta-zstd")
TABLES = ("ours", "delta", "copy-ours", "copy-delta", *OTHER_CODEC)
_FILES, _FILE_BYTES, _SHARE = 32, 4 * 2**20, 0.01
_SCANS = 20  # of DuckDB in a row: one takes some ten milliseconds
_WHERE = ("lake", "s", "sales")
_SETTINGS = {"spark.databricks.delta.optimize.maxFileSize": str(_FILE_BYTES)}
_CODEC = "spark.sql.parquet.compression.codec"


@dataclass
class Used:
    """What some turns of one thing used: each list has a number per turn."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    def add(
        self,
        work: Callable[[], Any],
        pids: Sequence[int],
        *,
        keep: bool = True,
        times: int = 1,
    ) -> Any:
        """Do work in the processes `pids` so many times, and note what it used each time, unless it
        only warms up.
        """
        began, busy, read = time.monotonic(), _busy(pids), _read(pids)
        for _ in range(times):
            result = work()
        if keep:
            self.seconds.append((time.monotonic() - began) / times)
            self.processor.append((_busy(pids) - busy) / times)
            self.bytes.append((_read(pids) - read) // times)
        return result

    @property
    def medians(self) -> tuple[float, float, float]:
        """Seconds, seconds of the processor, and MiB read."""
        mib = statistics.median(self.bytes) / 2**20
        clock, processor = statistics.median(self.seconds), statistics.median(self.processor)
        return round(clock, 4), round(processor, 4), round(mib, 2)


class Bench:
    """Tables of ours and of Delta with the same rows in as many files."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self._folder = folder
        self.spark: SparkSession = delta_session(settings=_SETTINGS)
        gateway = self.spark.sparkContext._gateway
        assert gateway is not None
        self.jvm: int = gateway.proc.pid
        self.ranges = {name: _middle(rows.column(name)) for name in BY}
        size = -(-rows.num_rows // _FILES)
        table, source = None, folder / "rows.parquet"
        for at in range(0, rows.num_rows, size):
            part = rows.slice(at, size)
            if table is None:
                table = Table.create(folder.joinpath("ours", *_WHERE), part, key=KEY)
            else:
                table.upsert(part)
        pq.write_table(rows, source)
        frame = self.spark.read.parquet(str(source)).repartition(_FILES)
        frame.write.format("delta").save(str(folder / "delta"))

    def laid_out(self, repeats: int) -> dict[str, Used]:
        """Lay out copies of both tables in turn, once more than `repeats`; the first warms up."""
        used = {"lakesplice": Used(), "delta": Used()}
        for turn in range(repeats + 1):
            works: dict[str, Callable[[], Any]] = {
                "lakesplice": self._ours(),
                "delta": self._delta(),
            }
            for name in [*works][:: 1 if turn % 2 else -1]:
                used[name].add(works[name], (os.getpid(), self.jvm), keep=turn > 0)
        return used

    def add_other_codec(self) -> None:
        """Lay Delta's table out with zstd; write the files of ours again with Snappy."""
        self.spark.conf.set(_CODEC, "zstd")
        work = self._delta()
        work()
        self.spark.conf.unset(_CODEC)
        zstd = self._folder / "copy-delta-zstd"
        (self._folder / "copy-delta").rename(zstd)
        self._delta()()
        root = self._folder / "copy-ours"
        for path in map(Path, DeltaTable(str(root.joinpath(*_WHERE))).file_uris()):
            _write_in_snappy(path, self._folder / "copy-ours-snappy" / path.relative_to(root))

    def _ours(self) -> Callable[[], Any]:
        table = Table.open(copied(self._folder / "ours").joinpath(*_WHERE))
        return lambda: table.optimize(BY, policy=ClusterPolicy(file_bytes=_FILE_BYTES))

    def _delta(self) -> Callable[[], Any]:
        command = f"optimize delta.`{copied(self._folder / 'delta')}` zorder by ({', '.join(BY)})"
        return lambda: self.spark.sql(command).collect()

    def query(self, columns: tuple[str, ...], repeats: int) -> list[dict[str, Any]]:
        """Ask each table for a sum, in turn; returns for each what it used, and counts."""
        asked = [_Asked(self, self._folder, name, columns) for name in TABLES]
        answers = set()
        for turn in range(repeats + 1):
            for one in asked[:: 1 if turn % 2 else -1]:
                answers |= one.turn(keep=turn > 0)
        assert len(answers) == 1, answers
        return [one.found for one in asked]


class _Asked:
    """One table that is asked for the rows in a range of some columns."""

    def __init__(self, bench: Bench, folder: Path, name: str, columns: tuple[str, ...]) -> None:
        self._name, self._columns, self._jvm = name, columns, bench.jvm
        wanted = [(column, bench.ranges[column]) for column in columns]
        live = " and not _is_deleted" if "ours" in name else ""
        within = " and ".join(f"{one} between {low} and {high}" for one, (low, high) in wanted)
        asked = f"select count(*), sum(ss_net_profit) from {{}} where {within}{live}"
        # The files in Snappy have no log, so they are found by that of the table they are of.
        of = name.removesuffix("-snappy")
        root = folder.joinpath(of, *_WHERE) if "ours" in name else folder / of
        table = DeltaTable(str(root))
        paths = [path.replace(f"/{of}/", f"/{name}/") for path in table.file_uris()]
        adds = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        footers = [pq.read_metadata(path) for path in paths]
        groups = [(one, at) for one in footers for at in range(one.num_row_groups)]
        self._counts = {
            "files": len(paths),
            "bytes": sum(Path(path).stat().st_size for path in paths),
            "files_opened": sum(all(_fits(add, *one) for one in wanted) for add in adds),
            "row_groups": len(groups),
            "row_groups_read": sum(all(_holds(*group, *one) for one in wanted) for group in groups),
        }
        self._engines: dict[str, tuple[Callable[[], Any], int, Used]] = {
            "duckdb": (
                lambda: duckdb.sql(asked.format(f"read_parquet({paths})")).fetchall(),
                os.getpid(),
                Used(),
            ),
        }
        if of == name:
            self._engines["spark"] = (
                lambda: bench.spark.sql(asked.format(f"delta.`{root}`")).collect(),
                bench.jvm,
                Used(),
            )

    def turn(self, *, keep: bool) -> set[tuple[int, str]]:
        """Ask by each engine; returns the answers."""
        answers = set()
        for engine, (ask, pid, used) in self._engines.items():
            times = _SCANS if engine == "duckdb" else 1
            ((rows, profit),) = used.add(ask, (pid,), keep=keep, times=times)
            answers.add((rows, str(profit)))
        return answers

    @property
    def found(self) -> dict[str, Any]:
        """The counts, and what each engine used."""
        engines = {engine: vars(used) for engine, (_, _, used) in self._engines.items()}
        medians = {engine: used.medians for engine, (_, _, used) in self._engines.items()}
        print(self._columns, self._name, self._counts, medians, flush=True)
        return {"table": self._name, "columns": self._columns, **self._counts, **engines}


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = store_sales(Path(folder), args.rows)
        shuffled = rows.take(pa.array(np.random.default_rng(SEED).permutation(rows.num_rows)))
        bench = Bench(Path(folder), shuffled)
        laid_out = bench.laid_out(args.repeats)
        print({name: used.medians for name, used in laid_out.items()}, flush=True)
        bench.add_other_codec()
        queries = [one for columns in QUERIES for one in bench.query(columns, args.repeats)]
        bench.spark.stop()
    used = {name: vars(one) for name, one in laid_out.items()}
    found = {"rows": args.rows, "by": BY, "laid_out": used, "queries": queries}
    args.out.write_text(json.dumps(found, indent=1) + "\n")


def _busy(pids: Sequence[int]) -> float:
    """The seconds of the processor that processes have used; of this one to the microsecond."""
    return sum(
        time.process_time() if pid == os.getpid() else processor_seconds(pid) for pid in pids
    )


def _read(pids: Sequence[int]) -> int:
    """The bytes that processes have read by system calls, from files or their cache."""
    lines = [Path(f"/proc/{pid}/io").read_text().splitlines()[0] for pid in pids]
    return sum(int(line.removeprefix("rchar: ")) for line in lines)


def _fits(add: dict[str, Any], column: str, wanted: tuple[int, int]) -> bool:
    return bool(add[f"min.{column}"] <= wanted[1] and add[f"max.{column}"] >= wanted[0])


def _holds(footer: pq.FileMetaData, group: int, column: str, wanted: tuple[int, int]) -> bool:
    """Whether a row group's bounds of a column meet what is wanted."""
    at = footer.schema.names.index(column)
    bounds = footer.row_group(group).column(at).statistics
    return bool(bounds.min <= wanted[1] and bounds.max >= wanted[0])


def _write_in_snappy(source: Path, to: Path) -> None:
    """Write a file of ours again, with another codec and else as it is."""
    file = pq.ParquetFile(source)
    chunks = [file.metadata.row_group(0).column(at) for at in range(file.metadata.num_columns)]
    packed = [chunk for chunk in chunks if "DELTA_BINARY_PACKED" in chunk.encodings]
    to.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        to,
        file.schema_arrow,
        compression="snappy",
        use_dictionary=[one.path_in_schema for one in chunks if one.has_dictionary_page],
        column_encoding={one.path_in_schema: "DELTA_BINARY_PACKED" for one in packed},
        store_decimal_as_integer=True,
        store_schema=False,
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=ROWS_PER_PAGE,
        write_batch_size=ROWS_PER_PAGE,
        data_page_size=1 << 30,
    ) as writer:
        for at in range(file.num_row_groups):
            rows = file.read_row_group(at)
            writer.write_table(rows, row_group_size=rows.num_rows)


def _middle(column: pa.ChunkedArray) -> tuple[int, int]:
    """The range of 1 % of a column's values, from its middle up."""
    low, high = np.quantile(column.drop_null().to_numpy(), [0.5, 0.5 + _SHARE])
    return int(low), int(high)


if __name__ == "__main__":
    main()
