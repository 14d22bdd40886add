"""Which of a version's changes had an effect; late and repeated changes have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import GROUP, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.waiting_changes import OrderedChanges, WaitingChanges
from lakesplice.splicing.pages.rows import read_rows
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.table.files.base_files import checked_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.feed_files import new_deltas

Positions = tuple[Integers, Integers]
_POSITION = (POSITION_FILE, POSITION_OFFSET)


def took_effect(
    store: Store, schema: TableSchema, before: Manifest, now: Manifest, changes: pa.Table
) -> Mask:
    """Mark the changes that gave their rows the state that they have in `now`.

    `changes` are from deltas that `now` has and `before`, the version below it, lacks; each is of a
    whole row. A change had an effect if it is above its row in `before`, and no other change of
    this version is above it. Blocks: reads the positions of these rows from as few pages of base
    files as possible, and from deltas the columns that order their changes. Raises as a scan does.
    """
    groups = frozenset(np.unique(changes.column(GROUP).to_numpy()).tolist())
    mine, earlier, later = (
        WaitingChanges.of(changes),
        _positions(store, before.deltas, schema, groups),
        _positions(store, new_deltas(now, before), schema, groups),
    )
    marks = np.zeros(changes.num_rows, np.bool_)
    # A version that moves rows marks them as deleted in their former files; the files of the
    # version before show their state before the move.
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
) -> WaitingChanges:
    return WaitingChanges.of(read_waiting(store, deltas, schema, groups, ()))


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
    """Return the positions of rows after changes are applied to them."""
    theirs = np.isin(placed.rows, rows)
    at = np.searchsorted(rows, placed.rows[theirs])
    position = _of_changes(placed, placed.order[theirs])
    higher = _above(position, state, at)
    file, offset = state[0].copy(), state[1].copy()
    # The changes of a row are in ascending order, so the newest one is assigned last.
    file[at[higher]], offset[at[higher]] = position[0][higher], position[1][higher]
    return file, offset


def _above(positions: Positions, others: Positions, at: Integers) -> Mask:
    """Mark the positions that are above the position at the same place in `others`."""
    return above(*positions, others[0][at], others[1][at])
