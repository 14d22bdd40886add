"""Real-time read of a wide table with part of its rows in deltas, beside reading the base files
alone.

Run: python -m benchmarks.realtime_read [--rows N] [--share F] [--deltas N] [--repeats N]. Seeded;
medians of runs that take turns, in seconds and, for a machine with other work, in seconds of the
processor. The table has 23 columns and 5 system columns, in 4 base files; the
changes fall on its rows uniformly and change two columns. The floor is pyarrow reading the same
files, all columns, page checksums verified, without knowing a delta or a deleted row.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.formats.checksum import checksum
from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import Segment
from lakesplice.model.change import delta_schema
from lakesplice.model.manifest import DeltaRef, FileRef
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.rows.row_digest import row_digest
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.files.base_files import create_base
from lakesplice.table.protocol.commit import Committed, commit, create
from lakesplice.table.protocol.intents import Create, Ingest
from lakesplice.table.protocol.layout import base_path, delta_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.reading.table import Table

SEED = 11
FILES = 4
GENERATION = 1
TYPES = (
    ["long"]
    + ["integer"] * 5
    + ["long"] * 5
    + ["decimal(12,2)"] * 4
    + ["string"] * 4
    + ["double", "date", "timestamp", "timestamp"]
)
SCHEMA = TableSchema(
    tuple(
        Column(at, f"c{at}", f"c{at}", ColumnType.parse(name), name)
        for at, name in enumerate(TYPES)
    ),
    ("c0",),
    (0, len(TYPES)),
)
CHANGED = (3, 12)


def _values(kind: str, rows: int, chance: np.random.Generator) -> pa.Array:
    if kind == "string":
        return pa.array([f"label {n}" for n in chance.integers(0, 1_000_000, rows)])
    if kind == "double":
        return pa.array(chance.random(rows))
    if kind.startswith("decimal"):
        cents = pa.array(chance.integers(-(10**9), 10**9, rows))
        words = np.zeros((rows, 2), np.int64)
        words[:, 0] = cents
        words[:, 1] = words[:, 0] >> 63
        return pa.Array.from_buffers(pa.decimal128(12, 2), rows, [None, pa.py_buffer(words)])
    high = {"integer": 20_000, "long": 10**10, "date": 20_000, "timestamp": 1_795 * 10**12}[kind]
    numbers = chance.integers(0, high, rows)
    if kind in ("integer", "date"):
        return (
            pa.array(numbers.astype(np.int32))
            .cast(SCHEMA.arrow.field("c1").type)
            .cast(pa.date32() if kind == "date" else pa.int32())
        )
    return pa.array(numbers).cast(pa.int64() if kind == "long" else pa.timestamp("us", "UTC"))


def _images(first: int, rows: int, chance: np.random.Generator) -> pa.Table:
    columns = [pa.array(np.arange(first, first + rows))]
    columns += [_values(kind, rows, chance) for kind in TYPES[1:]]
    return pa.table(columns, schema=pa.schema(SCHEMA.user_fields))


def _with(table: pa.Table, columns: dict[str, pa.Array], layout: pa.Schema) -> pa.Table:
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table.select(layout.names).cast(layout)


class Filling:
    """Makes the table: base files first, then deltas over them."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root)
        self.chance = np.random.default_rng(SEED)
        self._clock, self._entropy = SystemClock(), SystemEntropy()
        self.images: list[tuple[int, pa.Table]] = []
        source = SourceState("bench.wide", "id")
        made = create(
            self.store,
            Create(GENERATION, SCHEMA, source),
            clock=self._clock,
            entropy=self._entropy,
        )
        assert isinstance(made, Committed)
        self._snapshot = made.snapshot

    def base_files(self, rows: int) -> None:
        """Write `rows` rows in FILES base files and commit them."""
        files = [self._base(n * (rows // FILES), rows // FILES) for n in range(FILES)]
        self._ingest(files=tuple(files))

    def deltas(self, count: int, rows: int) -> None:
        """Write `count` deltas of `rows` changes each, every row changed once at most."""
        sizes = [images.num_rows for _, images in self.images]
        picked = self.chance.permutation(sum(sizes))[: count * rows].reshape(count, rows)
        self._ingest(deltas=tuple(self._delta(n, part) for n, part in enumerate(picked)))

    def _base(self, first: int, rows: int) -> NewFile:
        images = _images(first, rows, self.chance)
        group = self._entropy.bits(63)
        self.images.append((group, images))
        system = {
            "_position_file": pa.array(np.full(rows, 1)),
            "_position_offset": pa.array(np.arange(first, first + rows) * 5_000_000),
            "_row_digest": pa.array(row_digest(images, SCHEMA)),
            "_is_deleted": pa.array(np.zeros(rows, np.bool_)),
            "_source_ts": pa.array(np.full(rows, 1_795 * 10**12)).cast(pa.timestamp("us", "UTC")),
        }
        table = _with(images, system, SCHEMA.arrow)
        path = base_path(group, 0, self._entropy)
        segments = (Segment(group, rows),)
        return create_base(
            self.store, path, segments, lambda sink: write_base([table], SCHEMA, sink)
        )

    def _delta(self, number: int, picked: np.ndarray) -> DeltaRef:
        size = self.images[0][1].num_rows
        file, row = picked // size, picked % size
        before = pa.concat_tables(
            images.take(pa.array(row[file == at])) for at, (_, images) in enumerate(self.images)
        ).combine_chunks()
        after = before
        for at in CHANGED:
            values = _values(TYPES[at], len(picked), self.chance)
            after = after.set_column(at, after.field(at), values)
        rows = len(picked)
        changed = sum(1 << at for at in CHANGED).to_bytes(len(TYPES) // 8 + 1, "little")
        order = np.argsort(file, kind="stable")
        groups = np.array([group for group, _ in self.images])[file[order]]
        facts = {
            "_group": pa.array(groups),
            "_row": pa.array(row[order]),
            "_op": pa.array(np.ones(rows, np.int8)),
            "_position_file": pa.array(np.full(rows, 2)),
            "_position_offset": pa.array(np.arange(rows) + number * rows),
            "_before_digest": pa.array(row_digest(before, SCHEMA)),
            "_row_digest": pa.array(row_digest(after, SCHEMA)),
            "_changed": pa.array([changed] * rows),
            "_source_ts": pa.nulls(rows, pa.timestamp("us", "UTC")),
        }
        data = encode_delta(_with(after, facts, delta_schema(SCHEMA)), SCHEMA)
        ref = FileRef(delta_path(self._entropy), len(data), checksum(data))
        assert self.store.put_new(ref.path, data)
        names, counts = np.unique(groups, return_counts=True)
        waiting = {int(g): int(n) for g, n in zip(names, counts, strict=True)}
        return DeltaRef(ref, rows, SCHEMA.version, waiting)

    def _ingest(self, files: tuple[NewFile, ...] = (), deltas: tuple[DeltaRef, ...] = ()) -> None:
        source = self._snapshot.manifest.source
        assert source is not None
        groups = frozenset(g for delta in deltas for g in delta.waiting)
        intent = Ingest(
            GENERATION,
            self._snapshot.version,
            {},
            source,
            SCHEMA.version,
            addressed_groups=groups,
            files=files,
            deltas=deltas,
        )
        made = commit(self.store, self._snapshot, intent, clock=self._clock, entropy=self._entropy)
        assert isinstance(made, Committed), made
        self._snapshot = made.snapshot


class Taken(NamedTuple):
    """Median seconds of a reader, and those of the processor."""

    clock: float
    processor: float


def _measured(contenders: dict[str, Callable[[], int]], repeats: int) -> dict[str, Taken]:
    """The medians of each, the contenders taking turns so that a busy moment hits them all."""
    seconds: dict[str, list[Taken]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, contender in contenders.items():
            start, worked = time.perf_counter(), time.process_time()
            contender()
            if turn:  # the first turn warms the page cache
                taken = Taken(time.perf_counter() - start, time.process_time() - worked)
                seconds[name].append(taken)
    return {
        name: Taken(*map(statistics.median, zip(*all_, strict=True)))
        for name, all_ in seconds.items()
    }


def _drain(reader: pa.RecordBatchReader) -> int:
    return sum(batch.num_rows for batch in reader)


def _floor(root: Path, paths: list[str]) -> int:
    rows = 0
    for path in paths:
        file = pq.ParquetFile(root / path, memory_map=True, page_checksum_verification=True)
        for group in range(file.num_row_groups):
            rows += file.read_row_group(group).num_rows
    return rows


def run(rows: int, share: float, deltas: int, repeats: int) -> dict[str, Taken]:
    """Make the table, measure, and return median seconds by reader."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        filling = Filling(root)
        filling.base_files(rows)
        filling.deltas(deltas, int(rows * share) // deltas)
        table = Table(filling.store)
        paths = sorted(table.snapshot.manifest.files)
        few = [f"c{at}" for at in (0, 3, 12)]

        def scan(view: str, columns: list[str] | None = None) -> Callable[[], int]:
            return lambda: _drain(
                table.scan(view=view, columns=columns, include_system=columns is None)
            )

        return _measured(
            {
                "floor: pyarrow": lambda: _floor(root, paths),
                "read-optimised": scan("read_optimised"),
                "real-time": scan("real_time"),
                "read-optimised, 3 columns": scan("read_optimised", few),
                "real-time, 3 columns": scan("real_time", few),
            },
            repeats,
        )


def main() -> None:
    """Print the medians and the ratio that the project promises to keep at 1.5 or below."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--deltas", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    seconds = run(options.rows, options.share, options.deltas, options.repeats)
    for name, taken in seconds.items():
        print(f"{name:28} {taken.clock:7.3f} s, {taken.processor:7.3f} s of the processor")
    for few in ("", ", 3 columns"):
        waiting, base = seconds[f"real-time{few}"], seconds[f"read-optimised{few}"]
        clock, processor = waiting.clock / base.clock, waiting.processor / base.processor
        print(f"real-time / read-optimised{few}: {clock:.2f}, of the processor {processor:.2f}")


if __name__ == "__main__":
    main()
