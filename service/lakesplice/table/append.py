"""Append: one table's part of a batch becomes a delta, a base file and a run of the row index.

Runs in an executor, for one range of key hashes. Nothing it writes can be seen until the driver's
commit names it; a repeated or abandoned attempt leaves only files that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.checksum import checksum
from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.parquet import write_base
from lakesplice.formats.rowindex import encode_run
from lakesplice.model.address import GROUP_BITS, Segment
from lakesplice.model.change import Op
from lakesplice.model.manifest import DeltaRef, FileRef, Manifest, RunRef
from lakesplice.model.names import (
    GROUP,
    IS_DELETED,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.fold import fold
from lakesplice.planning.locate import UNKNOWN, locate
from lakesplice.table import layout
from lakesplice.table.base import create_base
from lakesplice.table.intents import NewFile
from lakesplice.table.ports import Entropy, Store
from lakesplice.table.runs import RunCache


@dataclass(frozen=True)
class AppendPlan:
    """What a task must know of a table to append to it: schema, runs, live file groups."""

    schema: TableSchema
    runs: tuple[RunRef, ...]
    groups: npt.NDArray[np.int64]

    @classmethod
    def of(cls, manifest: Manifest) -> AppendPlan:
        """Return what `manifest` says of it."""
        groups = np.array(sorted(manifest.groups), np.int64)
        return cls(manifest.schema, manifest.runs, groups)


@dataclass(frozen=True)
class Appended:
    """What was written for one range of a table's keys; None where nothing called for it."""

    file: NewFile | None
    delta: DeltaRef | None
    run: RunRef | None
    counts: Mapping[str, int]


def append(
    store: Store,
    plan: AppendPlan,
    changes: Sequence[pa.Table],
    runs: RunCache,
    entropy: Entropy,
) -> Appended:
    """Fold, locate and write one range's changes; known keys go to a delta, new ones to a base
    file.

    `changes` are in `changes_schema(plan.schema)`. `counts` has the keys `folded`, `updated`
    (changes of known keys) and `inserted`. Raises `StorageError`, and `CorruptFileError` for a
    damaged run.
    """
    folded = fold(pa.concat_tables(changes), plan.schema)
    high, low = folded[KEY_HIGH].to_numpy(), folded[KEY_LOW].to_numpy()
    group, row = locate(runs.open_runs(store, plan.runs), high, low, plan.groups)
    known = group != UNKNOWN
    delta = file = run = None
    if known.any():
        located = _located(folded.filter(pa.array(known)), group[known], row[known])
        delta = write_delta(store, located, plan.schema, entropy)
    if not known.all():
        file, run = _write_inserts(store, folded.filter(pa.array(~known)), plan.schema, entropy)
    updated = int(known.sum())
    counts = {"folded": folded.num_rows, "updated": updated, "inserted": folded.num_rows - updated}
    return Appended(file, delta, run, counts)


def _located(
    changes: pa.Table, group: npt.NDArray[np.int64], row: npt.NDArray[np.int64]
) -> pa.Table:
    return changes.append_column(GROUP, pa.array(group)).append_column(ROW, pa.array(row))


def write_delta(store: Store, located: pa.Table, schema: TableSchema, entropy: Entropy) -> DeltaRef:
    """Write a delta of located changes; user columns that `located` lacks are not in it."""
    data = encode_delta(located, schema)
    ref = put_file(store, layout.delta_path(entropy), data)
    groups, counts = np.unique(located[GROUP].to_numpy(), return_counts=True)
    waiting = {int(group): int(count) for group, count in zip(groups, counts, strict=True)}
    return DeltaRef(ref, located.num_rows, schema.version, waiting)


def _write_inserts(
    store: Store, changes: pa.Table, schema: TableSchema, entropy: Entropy
) -> tuple[NewFile, RunRef]:
    # In the order of the source, rows that are changed together later lie together.
    rows = changes.sort_by([(POSITION_FILE, "ascending"), (POSITION_OFFSET, "ascending")])
    group = entropy.bits(GROUP_BITS)
    path = layout.base_path(group, 0, entropy)
    deleted = pc.equal(rows[OP], pa.scalar(int(Op.DELETE), pa.int8()))
    base = rows.append_column(IS_DELETED, deleted).select(schema.arrow.names)
    segments = (Segment(group, base.num_rows),)
    file = create_base(store, path, segments, lambda sink: write_base([base], schema, sink))
    return file, _write_run(store, rows, group, entropy)


def _write_run(store: Store, rows: pa.Table, group: int, entropy: Entropy) -> RunRef:
    high, low = rows[KEY_HIGH].to_numpy(), rows[KEY_LOW].to_numpy()
    order = np.lexsort((low, high))
    data = encode_run(high[order], low[order], np.full(len(order), group, np.int64), order)
    return RunRef(put_file(store, layout.run_path(entropy), data), len(order))


def put_file(store: Store, path: str, data: bytes) -> FileRef:
    """Create a file of ours durably and return what a manifest says of it."""
    with store.writer(path) as sink:
        sink.write(data)
    return FileRef(path, len(data), checksum(data))
