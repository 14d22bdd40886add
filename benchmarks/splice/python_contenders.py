"""Contenders that are Python libraries: we, delta-rs, a plain rewrite by pyarrow, and copying."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

import lakesplice
from benchmarks.splice.data import KEY
from benchmarks.splice.measuring import Contender, Phases, Task, serve_parent, timed


class _InFolders:
    """A pristine table in one folder and the one that is changed in another."""

    def __init__(self, task: Task) -> None:
        self.parts = [Path(part) for part in task["parts"]]
        self.pristine = Path(task["work"]) / f"{task['contender']}-pristine"
        self.table = Path(task["work"]) / task["contender"]

    def reset(self) -> None:
        """See `Contender.reset`."""
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(self.pristine, self.table)

    def seen(self, columns: list[str]) -> dict[str, str]:
        """See `Contender.seen`."""
        return _sums(f"read_parquet('{self.table}/*.parquet')", columns)


class Ours(_InFolders):
    """`Table.upsert`, then `Table.compact`: the merge step by itself."""

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        lakesplice.Table.create(self.pristine, _reader(self.parts), key=KEY)

    def bring_in(self, changes: Path, _columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        phases: Phases = {}
        table = lakesplice.Table.open(self.table)
        timed(phases, "upsert", lambda: table.upsert(pq.read_table(changes)))
        timed(phases, "merge", table.compact)
        return phases

    def seen(self, columns: list[str]) -> dict[str, str]:
        """See `Contender.seen`; by the files that the log names, as every Delta reader does."""
        rows = DeltaTable(str(self.table)).to_pyarrow_dataset().to_table(columns=columns)
        return {name: str(pc.sum(rows.column(name)).as_py()) for name in columns}


class OursMerged(Ours):
    """`Table.upsert` that merges its changes in its own commit."""

    def bring_in(self, changes: Path, _columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        phases: Phases = {}
        table = lakesplice.Table.open(self.table)
        timed(phases, "merge", lambda: table.upsert(pq.read_table(changes), merge=True))
        return phases


class DeltaRs(_InFolders):
    """The merge of delta-rs."""

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        for part in self.parts:
            write_deltalake(str(self.pristine), _reader([part]), mode="append")

    def bring_in(self, changes: Path, columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        merge = DeltaTable(str(self.table)).merge(
            pq.read_table(changes),
            " and ".join(f"t.{name} = s.{name}" for name in KEY),
            source_alias="s",
            target_alias="t",
        )
        merge.when_matched_update({name: f"s.{name}" for name in columns}).execute()
        return {}

    def seen(self, columns: list[str]) -> dict[str, str]:
        """See `Contender.seen`."""
        rows = DeltaTable(str(self.table)).to_pyarrow_dataset().to_table(columns=columns)
        return {name: str(pc.sum(rows.column(name)).as_py()) for name in columns}


class PlainPyarrow(_InFolders):
    """Read, replace and write every file that has a changed row, by pyarrow; no table at all.

    Knows that the two key columns fit into one 64-bit number, which makes its join cheap.
    """

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        self.pristine.mkdir(parents=True)
        for at, part in enumerate(self.parts):
            pq.write_table(pq.read_table(part), self.pristine / f"{at}.parquet", compression="zstd")

    def bring_in(self, changes: Path, columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        new = pq.read_table(changes)
        keys = _packed(new)
        order = np.argsort(keys)
        keys = keys[order]
        for path in sorted(self.table.glob("*.parquet")):
            rows = pq.read_table(path)
            asked = _packed(rows)
            at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            found = keys[at] == asked
            if not found.any():
                continue
            mask, source = pa.array(found), pa.array(order[at[found]])
            for name in columns:
                values = pc.replace_with_mask(
                    rows.column(name), mask, new.column(name).take(source).combine_chunks()
                )
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, rows.schema.field(place), values)
            written = path.with_suffix(".new")
            pq.write_table(rows, written, compression="zstd")
            written.rename(path)
        return {}


class Copying(_InFolders):
    """Copies our base files: the floor."""

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        lakesplice.Table.create(self.pristine, _reader(self.parts), key=KEY)

    def bring_in(self, _changes: Path, _columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        for path in sorted((self.table / "base").glob("*.parquet")):
            shutil.copyfile(path, path.with_suffix(".copy"))
        return {}

    def seen(self, _columns: list[str]) -> dict[str, str]:
        """See `Contender.seen`: nothing changes."""
        return {}


def _reader(parts: list[Path]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from pq.ParquetFile(part).iter_batches(1 << 17)

    return pa.RecordBatchReader.from_batches(pq.read_schema(parts[0]), batches())


def _packed(rows: pa.Table) -> npt.NDArray[np.int64]:
    item, ticket = (rows.column(name).to_numpy() for name in KEY)
    packed: npt.NDArray[np.int64] = ticket.astype(np.int64) << 20 | item
    return packed


def _sums(source: str, columns: list[str]) -> dict[str, str]:
    picked = ", ".join(f"sum({name})" for name in columns)
    row = duckdb.sql(f"select {picked} from {source}").fetchone()
    assert row is not None
    return {name: str(value) for name, value in zip(columns, row, strict=True)}


CONTENDERS: dict[str, Callable[[Task], Contender]] = {
    "lakesplice": Ours,
    "lakesplice-merged": OursMerged,
    "delta-rs": DeltaRs,
    "pyarrow": PlainPyarrow,
    "copying": Copying,
}


def _contender(task: Task) -> Contender:
    return CONTENDERS[task["contender"]](task)


if __name__ == "__main__":
    serve_parent(_contender)
