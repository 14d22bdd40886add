"""The splice compared with its peers: changes of TPC-DS store_sales reach every reader.

Run: python -m benchmarks.splice [--scale 1] [--parts grid,rows,peers,…] [--repeats 3]

Every contender starts from the same Parquet file of changes and ends when a reader of the plain
table sees them. `grid`: we and Delta Lake's MERGE, copy-on-write and with deletion vectors, over 5,
20 and 50 % of the rows, 1, 3 and all 23 columns, uniform and newest rows. `rows`: we and delta-rs,
whole rows of which few values are new. `peers`: six cells of the grid for all. `large`: three cells
at ten times the size. `files`: one file, and fifty splices. `memory`: the most memory that splices
of a file of some 2 GB take. Figures go to docs/benchmarks/figures/splice.json, a part at a time;
`python -m benchmarks.splice.report` makes the table and the plot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.splice.data import (
    GRID,
    KEY,
    LARGE,
    SIX,
    WHOLE_ROWS,
    Cell,
    changed_columns,
    make_changes,
    make_store_sales,
)
from benchmarks.splice.jars import HUDI, HUDI_PYSPARK, ICEBERG
from benchmarks.splice.turns import ContenderProcess, Figures, in_turn
from lakesplice.spark.jars import DELTA, JarSet, ensure_jars

FIGURES = Path(__file__).parents[2] / "docs" / "benchmarks" / "figures" / "splice.json"
ROOT = Path(__file__).parents[2]
MAIN = ("lakesplice", "delta", "delta-vectors")
ROWS = ("lakesplice", "lakesplice-merged", "delta-rs")
PEERS = ("delta-rs", "iceberg-cow", "iceberg-mor", "hudi", "pyarrow", "copying")
JARS: dict[str, JarSet] = {
    "delta": DELTA,
    "delta-vectors": DELTA,
    "iceberg-cow": ICEBERG,
    "iceberg-mor": ICEBERG,
    "hudi": HUDI,
}
ROWS_PER_PART = 786_432
PARTS_MIN = 4
_SECONDS_MAX = 6 * 3600


class Bench:
    """One run: its folder, its settings, and the figures found so far."""

    def __init__(self, work: Path, args: argparse.Namespace) -> None:
        self.work = work
        self.args = args
        known: Path = args.out
        self.figures: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {}
        self.figures["machine"] = {"cores": os.cpu_count(), "python": platform.python_version()}

    def main(
        self,
        part: str,
        contenders: Sequence[str],
        cells: Sequence[Cell],
        scale: float,
        repeats: int,
    ) -> None:
        """Measure contenders at some cells, in turn, and keep what was found."""
        data, made = self._data(cells, scale)
        rows = self._rows(part, data)

        def keep(found: Mapping[str, list[Figures]]) -> None:
            rows["contenders"].update(found)
            self.keep()

        self._in_turn(self._wanted(contenders), data, made, repeats, keep)

    def peers(self, part: str, cells: Sequence[Cell], scale: float, repeats: int) -> None:
        """Measure each of the other peers, in turn with us: `beside` is what we took then."""
        data, made = self._data(cells, scale)
        rows = self._rows(part, data)
        beside = rows.setdefault("beside", {})
        for peer in self._wanted(PEERS):

            def keep(found: Mapping[str, list[Figures]], peer: str = peer) -> None:
                rows["contenders"][peer], beside[peer] = found[peer], found["lakesplice"]
                self.keep()

            self._in_turn(("lakesplice", peer), data, made, repeats, keep)

    def files(self, scale: float, repeats: int) -> None:
        """Measure the splice of one file, and what fifty leave."""
        data = Data(self.work / f"scale-{scale:g}", scale)
        out = self.work / "files.json"
        task = {
            "work": str(self.work), "parts": data.parts, "megabytes": self.args.megabytes,
            "repeats": repeats, "splices": self.args.splices, "out": str(out),
        }  # fmt: skip
        self._python(sys.executable, "one_file", task, "files")
        self.figures["files"] = json.loads(out.read_text())
        self.keep()

    def memory(self) -> None:
        """Measure the most memory that splices of a large file take."""
        out = self.work / "memory.json"
        task = {"work": str(self.work), "megabytes": 2048, "threads": 2, "out": str(out)}
        self._python(sys.executable, "memory", task, "memory")
        self.figures["memory"] = json.loads(out.read_text())
        self.keep()

    def keep(self) -> None:
        """Write the figures found so far."""
        self.args.out.parent.mkdir(parents=True, exist_ok=True)
        self.args.out.write_text(json.dumps(self.figures, indent=1) + "\n")

    def _wanted(self, contenders: Sequence[str]) -> list[str]:
        chosen = self.args.contenders.split(",") if self.args.contenders else contenders
        return [name for name in contenders if name in chosen]

    def _data(self, cells: Sequence[Cell], scale: float) -> tuple[Data, list[Figures]]:
        data = Data(self.work / f"scale-{scale:g}", scale)
        only = self.args.cells.split(",") if self.args.cells else [cell.name for cell in cells]
        return data, [data.cell(cell) for cell in cells if cell.name in only]

    def _rows(self, part: str, data: Data) -> Figures:
        """A part's figures: begun anew, unless only some of it is measured."""
        if part not in self.figures or not (self.args.contenders or self.args.cells):
            self.figures[part] = {
                "scale": data.scale, "rows": data.rows, "in_turn": True, "contenders": {},
            }  # fmt: skip
        rows: Figures = self.figures[part]
        return rows

    def _in_turn(
        self,
        names: Sequence[str],
        data: Data,
        cells: list[Figures],
        repeats: int,
        keep: Callable[[Mapping[str, list[Figures]]], None],
    ) -> None:
        print(f"-- {', '.join(names)} at scale {data.scale:g}", flush=True)
        with ExitStack() as stack:
            started = {}
            for name in names:
                folder = stack.enter_context(tempfile.TemporaryDirectory(dir=data.folder))
                started[name] = stack.enter_context(closing(self._start(name, folder, data, cells)))
                # One after the other: preparing is work, too.
                started[name].ready()
            in_turn(started, cells, repeats, keep)

    def _start(self, name: str, folder: str, data: Data, cells: list[Figures]) -> ContenderProcess:
        jars = [str(jar) for jar in ensure_jars(JARS[name])] if name in JARS else []
        task = {
            "contender": name, "work": folder, "parts": data.parts, "cells": cells,
            "jars": jars, "memory": self.args.memory,
        }  # fmt: skip
        python = sys.executable if name != "hudi" else self._hudi_python()
        module = "spark_contenders" if name in JARS else "python_contenders"
        command = [python, "-m", f"benchmarks.splice.{module}", json.dumps(task)]
        return ContenderProcess(name, command, self.work / f"{name}.log", ROOT)

    def _python(self, python: str, module: str, task: dict[str, Any], name: str) -> None:
        log = self.work / f"{name}.log"
        print(f"-- {name}", flush=True)
        with log.open("w") as sink:
            done = subprocess.run(
                [python, "-m", f"benchmarks.splice.{module}", json.dumps(task)],
                check=False, stdout=sink, stderr=sink, timeout=_SECONDS_MAX, cwd=ROOT,
            )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{log.read_text()[-4000:]}")

    def _hudi_python(self) -> str:
        """The Python of an environment with the PySpark that Hudi needs, made if need be."""
        folder = Path(self.args.hudi) if self.args.hudi else self.work / "hudi-environment"
        python = folder / "bin" / "python"
        if not python.exists():
            uv = str(Path(sys.executable).with_name("uv"))
            subprocess.run([uv, "venv", "-q", str(folder)], check=True)
            command = [uv, "pip", "install", "-q", "--python", str(python), HUDI_PYSPARK]
            subprocess.run(command, check=True)
        return str(python)


class Data:
    """store_sales at one scale, in parts, and the changes of cells; made once."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.folder, self.scale = folder, scale
        folder.mkdir(parents=True, exist_ok=True)
        self._whole = folder / "store_sales.parquet"
        if not self._whole.exists():
            print(f"-- store_sales at scale {scale:g}", flush=True)
            make_store_sales(folder / "new", scale)
            (folder / "new").rename(self._whole)
        self.rows: int = pq.read_metadata(self._whole).num_rows
        self.parts = self._split()

    def cell(self, cell: Cell) -> dict[str, Any]:
        """Return a cell as contenders need it: its changes, and what they must come to."""
        changes = self.folder / f"changes-{cell.name}.parquet"
        if not changes.exists():
            make_changes(self._whole, cell, changes)
        names = changed_columns(pq.read_schema(self._whole), cell.columns)
        picked = ", ".join(f"sum(if(c.{KEY[0]} is null, s.{n}, c.{n}))" for n in names)
        row = duckdb.sql(
            f"select {picked} from '{self._whole}' s left join '{changes}' c "
            f"on s.{KEY[0]} = c.{KEY[0]} and s.{KEY[1]} = c.{KEY[1]}"
        ).fetchone()
        assert row is not None
        sums = {name: str(value) for name, value in zip(names, row, strict=True)}
        return {"name": cell.name, "changes": str(changes), "names": names, "sums": sums}

    def _split(self) -> list[str]:
        size = min(ROWS_PER_PART, -(-self.rows // PARTS_MIN))
        paths = [self.folder / f"part-{at:03d}.parquet" for at in range(-(-self.rows // size))]
        if not paths[-1].exists():
            batches = pq.ParquetFile(self._whole).iter_batches()
            tables = (pa.Table.from_batches([batch]) for batch in batches)
            for path, rows in zip(paths, _cut(tables, size), strict=True):
                pq.write_table(rows, path, compression="zstd")
        return [str(path) for path in paths]


def _cut(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Gather tables into such of `size` rows; the last has what is left."""
    held = None
    for table in tables:
        held = table if held is None else pa.concat_tables([held, table])
        while held.num_rows >= size:
            yield held.slice(0, size)
            held = held.slice(size)
    if held is not None and held.num_rows:
        yield held


def main() -> None:
    """Read the arguments, measure, and keep the figures after each contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--parts", default="grid,rows,peers,large,files,memory")
    parser.add_argument("--contenders", default="", help="some of all, by name")
    parser.add_argument("--cells", default="", help="some of all, such as 05-03-uniform")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--file-repeats", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=128, help="of the one file")
    parser.add_argument("--splices", type=int, default=50)
    parser.add_argument("--memory", default="6g", help="of Spark's driver")
    parser.add_argument("--work", type=Path, help="a folder to keep the data in")
    parser.add_argument("--hudi", help="an environment with the PySpark that Hudi needs")
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-splice-") as scratch:
        work = args.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(work.absolute(), args)
        for part in args.parts.split(","):
            if part == "grid":
                bench.main(part, MAIN, GRID, args.scale, args.repeats)
            elif part == "rows":
                bench.main(part, ROWS, WHOLE_ROWS, args.scale, args.repeats)
            elif part == "peers":
                bench.peers(part, SIX, args.scale, args.repeats)
            elif part == "large":
                bench.main(part, MAIN, LARGE, args.scale * 10, 1)
            elif part == "files":
                bench.files(args.scale, args.file_repeats)
            elif part == "memory":
                bench.memory()
            else:
                parser.error(f"no such part: {part}")


if __name__ == "__main__":
    main()
