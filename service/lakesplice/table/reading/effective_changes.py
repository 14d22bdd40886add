"""Which of a version's changes had an effect: late and repeated ones don't change a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import GROUP, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.waiting_changes import OrderedChanges, Waiting
from lakesplice.splicing.pages.rows import read_rows
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.table.files.base_files import checked_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store

Positions = tuple[Integers, Integers]
_POSITION = (POSITION_FILE, POSITION_OFFSET)


def took_effect(
    store: Store, schema: TableSchema, before: Manifest, now: Manifest, changes: pa.Table
) -> Mask:
    """Mark the changes that made their rows what they are in `now`.

    `changes` are of deltas that `now` has and `before`, the version below it, hasn't; each is of a
    whole row. A change took effect if it stands above its row as `before` had it, and no other of
    this version stands above it. Blocks: of base files reads the positions of these rows, from no
    more pages than hold them, and of deltas what orders their changes. Raises as a scan does.
    """
    groups = frozenset(np.unique(changes.column(GROUP).to_numpy()).tolist())
    known = {delta.file.path for delta in before.deltas}
    new = [delta for delta in now.deltas if delta.file.path not in known]
    mine, earlier, later = (
        Waiting.of(changes),
        _positions(store, before.deltas, schema, groups),
        _positions(store, new, schema, groups),
    )
    marks = np.zeros(changes.num_rows, np.bool_)
    # What a version moves, it marks as deleted in the files that it was in: as rows stood, those of
    # the version before have them.
    own = [f for f in now.files.values() if before.groups.isdisjoint(s.group for s in f.segments)]
    for file in (*before.files.values(), *own):
        if groups.isdisjoint(segment.group for segment in file.segments):
            continue
        placed = mine.for_file(file.segments, file.path)
        rows = placed.addressed
        stood = _raised(
            _of_rows(store, schema, file, rows), rows, earlier.for_file(file.segments, file.path)
        )
        stands = _raised(stood, rows, later.for_file(file.segments, file.path))
        at = np.searchsorted(rows, placed.rows)
        position = _of_changes(placed, placed.order)
        marks[placed.order] = _above(position, stood, at) & ~_above(
            (stands[0][at], stands[1][at]), position, np.arange(len(at))
        )
    return marks


def _positions(
    store: Store, deltas: Sequence[DeltaRef], schema: TableSchema, groups: frozenset[int]
) -> Waiting:
    return Waiting.of(read_waiting(store, deltas, schema, groups, ()))


def _of_rows(store: Store, schema: TableSchema, file: BaseFile, rows: Integers) -> Positions:
    """The positions of rows of a base file."""
    with store.open(file.path, file.tail_bytes) as source:
        checked_base(source, file, schema)
        pages = SourceFile(source, file.path)
        found = [read_rows(pages, name, rows).to_numpy().copy() for name in _POSITION]
    return found[0], found[1]


def _of_changes(placed: OrderedChanges, order: Integers) -> Positions:
    found = [placed.changes.column(name).to_numpy()[order] for name in _POSITION]
    return found[0], found[1]


def _raised(state: Positions, rows: Integers, placed: OrderedChanges) -> Positions:
    """Return the positions of rows once changes are applied to them."""
    theirs = np.isin(placed.rows, rows)
    at = np.searchsorted(rows, placed.rows[theirs])
    position = _of_changes(placed, placed.order[theirs])
    higher = _above(position, state, at)
    file, offset = state[0].copy(), state[1].copy()
    # A row's changes ascend, so that its newest is assigned last.
    file[at[higher]], offset[at[higher]] = position[0][higher], position[1][higher]
    return file, offset


def _above(positions: Positions, others: Positions, at: Integers) -> Mask:
    """Mark the positions that are above those of `others` at the same place in `at`."""
    file, offset = others[0][at], others[1][at]
    marks: Mask = (positions[0] > file) | ((positions[0] == file) & (positions[1] > offset))
    return marks
