"""Moves: a change puts a row into another partition than the one of its base file.

A change may be late or repeated, so the row is read as it is, with its waiting changes. A change at
or below the row's position moves nothing. Otherwise the row with the change applied becomes a new
row, and the row at the former address is deleted at the same position, both in one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op, above, delta_schema
from lakesplice.model.manifest import DeltaRef
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    GROUP,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.overlay import overlay
from lakesplice.planning.rows.waiting_changes import OrderedChanges, WaitingChanges
from lakesplice.planning.shape.partition_columns import partitions_of
from lakesplice.table.files.chosen_rows import chosen_rows, edits_of_chosen
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store

_POSITION = (POSITION_FILE, POSITION_OFFSET)


@dataclass(frozen=True)
class Split:
    """Changes of known rows, separated from those of rows that move.

    `staying` has the changes of rows that stay in their partition, and the deletes of rows that
    leave. `moved` are the rows that move, with the changes applied: the columns of `schema.arrow`,
    then the hashes of their keys; None if no row moves. `left` are the file groups that they leave.
    """

    staying: pa.Table
    moved: pa.Table | None = None
    left: frozenset[int] = frozenset()


def split_moves(
    store: Store,
    schema: TableSchema,
    files: Sequence[BaseFile],
    deltas: Sequence[DeltaRef],
    located: pa.Table,
) -> Split:
    """Separate the located changes, one per row, that move their rows from those that don't.

    `files` and `deltas` are those of the version in which the changes were located. Blocks: reads
    the rows whose changes name another partition, and what waits for them. Raises as a compaction
    does.
    """
    if schema.positions is not None:
        raise UnsupportedError(
            "a table with partition columns can't take partial row images; set partial_images:"
            " park, and have the server send whole ones"
        )
    at, leaving = _leaving(schema, files, located)
    if not leaving.any():
        return Split(located)
    changes, layout = located.filter(pa.array(leaving)), delta_schema(schema)
    own = changes.select(layout.names).cast(layout)
    groups = np.unique(own.column(GROUP).to_numpy()).tolist()
    waiting = read_waiting(store, deltas, schema, groups).select(layout.names).cast(layout)
    mine, both = WaitingChanges.of(own), WaitingChanges.of(pa.concat_tables([waiting, own]))
    moved, newer = [], np.zeros(own.num_rows, np.bool_)
    for number in np.unique(at[leaving]).tolist():
        file = files[number]
        asked, placed = (one.for_file(file.segments, file.path) for one in (mine, both))
        rows, is_newer = _as_moved(store, schema, file, asked, placed, waiting.num_rows)
        keys = changes.select([KEY_HIGH, KEY_LOW]).take(pa.array(asked.order))
        for name in keys.column_names:
            rows = rows.append_column(name, keys.column(name))
        moved.append(rows.filter(pa.array(is_newer)))
        newer[asked.order] = is_newer
    found = pa.concat_tables(moved).combine_chunks()
    left = _deletes(changes.filter(pa.array(newer)))
    staying = pa.concat_tables([located.filter(pa.array(~leaving)), left])
    vacated_groups = frozenset(np.unique(left.column(GROUP).to_numpy()).tolist())
    return Split(staying, found if found.num_rows else None, vacated_groups)


def _leaving(
    schema: TableSchema, files: Sequence[BaseFile], located: pa.Table
) -> tuple[Integers, Mask]:
    """Return for each change the number of its row's file, and whether the change names another
    partition.
    """
    pairs = sorted((s.group, number) for number, f in enumerate(files) for s in f.segments)
    groups, numbers = (np.array(part, np.int64) for part in zip(*pairs, strict=True))
    at = numbers[np.searchsorted(groups, located.column(GROUP).to_numpy())]
    named = partitions_of(located, schema)
    codes = {value: code for code, value in enumerate(named.values)}
    present = np.array([codes.get(file.partition, -1) for file in files], np.int64)
    deletes = located.column(OP).to_numpy() == Op.DELETE
    leaving: Mask = (present[at] != named.codes) & ~deletes
    return at, leaving


def _as_moved(
    store: Store,
    schema: TableSchema,
    file: BaseFile,
    mine: OrderedChanges,
    placed: OrderedChanges,
    waiting: int,
) -> tuple[pa.Table, Mask]:
    """Return the rows of one file with the changes `mine` applied, and which of these changes are
    above their rows. `placed` has these changes and, with numbers below `waiting`, those that wait.
    """
    theirs = np.isin(placed.rows, mine.rows)
    placed = OrderedChanges(placed.rows[theirs], placed.order[theirs], placed.changes)
    state = _state(store, schema, file, mine.rows)
    newer = _above_present(placed, mine, state, waiting)
    edits = overlay(placed, state, schema, file.path)
    return apply_edits(state, edits_of_chosen(edits, mine.rows)), newer


def _above_present(
    placed: OrderedChanges, mine: OrderedChanges, state: pa.Table, waiting: int
) -> Mask:
    """Mark the rows of `state` whose own change, in `mine`, is above the row and all that waits for
    it. Changes with a number below `waiting` wait.
    """
    file, offset = (state.column(name).to_numpy().copy() for name in _POSITION)
    before = placed.order < waiting
    owner = np.searchsorted(mine.rows, placed.rows[before])
    order = placed.order[before]
    to_file, to_offset = (placed.changes.column(n).to_numpy()[order] for n in _POSITION)
    higher = above(to_file, to_offset, file[owner], offset[owner])
    # The changes of a row are in ascending order, so the newest one is assigned last.
    file[owner[higher]], offset[owner[higher]] = to_file[higher], to_offset[higher]
    own_file, own_offset = (mine.changes.column(n).to_numpy()[mine.order] for n in _POSITION)
    return above(own_file, own_offset, file, offset)


def _state(store: Store, schema: TableSchema, file: BaseFile, rows: Integers) -> pa.Table:
    """Read rows of a base file, from as few pages as possible."""
    with store.open(file.path, file.tail_bytes) as source:
        return chosen_rows(store, source, file, schema, rows)


def _deletes(changes: pa.Table) -> pa.Table:
    """Return deletes of the changes' former addresses, at the changes' positions."""
    count = changes.num_rows
    nothing = {BEFORE_DIGEST, ROW_DIGEST, CHANGED}
    columns = [
        pa.nulls(count, field.type)
        if field.name in nothing
        else pa.repeat(pa.scalar(int(Op.DELETE), field.type), count)
        if field.name == OP
        else changes.column(field.name)
        for field in changes.schema
    ]
    return pa.table(columns, schema=changes.schema)
