"""Unites changes column by column, if some of them are partial (`column_positions.py`).

Each column gets the value of the newest change that contains it. The result is a change, or a row,
like any other: its position is the highest, and its registers say where each column comes from. It
has a digest only if it is one whole image; its set of changed columns is never known.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    IS_DELETED,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.column_positions import (
    ColumnRegisters,
    concatenated,
    of_images,
    united,
)
from lakesplice.planning.rows.edits import ColumnEdit
from lakesplice.planning.rows.row_digest import contiguous

_OF_THE_ROW = -1


def encoded_registers(
    file: Integers, offset: Integers, delete: Mask, has: Mapping[str, object], schema: TableSchema
) -> pa.Array:
    """Return the registers, as bytes, of changes whose images have only the columns `has`."""
    marks = [column is schema.positions or column.name in has for column in schema.columns]
    encoded = of_images(file, offset, marks).encoded()
    return pc.if_else(pa.array(delete), pa.scalar(None, pa.binary()), encoded)


def partial_rows(changes: pa.Table, schema: TableSchema) -> Mask:
    """Mark the changes, or rows, whose columns come from several changes."""
    if schema.positions is None or schema.positions.name not in changes.column_names:
        return np.zeros(changes.num_rows, np.bool_)
    marks: Mask = np.asarray(contiguous(changes.column(schema.positions.name)).is_valid())
    return marks


def hidden_rows(changes: pa.Table, schema: TableSchema) -> Mask:
    """Mark changes that no reader may see as new rows: deletes, and those with an unknown
    column.
    """
    hidden: Mask = np.asarray(changes.column(OP).to_numpy() == Op.DELETE)
    at = np.flatnonzero(partial_rows(changes, schema))
    if len(at):
        hidden[at] = _registers(changes.take(pa.array(at)), schema).incomplete(_needed(schema))
    return hidden


def without_values_below(changes: pa.Table, schema: TableSchema, limit: Position) -> pa.Table:
    """Return changes whose partial images have lost the values from at or below `limit`. Changes
    that aren't partial are returned as they are: the caller removes those at or below `limit`.
    """
    marks = partial_rows(changes, schema)
    if schema.positions is None or limit == BEFORE_ALL or not marks.any():
        return changes
    encoded = _registers(changes.filter(pa.array(marks)), schema).as_if_deleted_at(limit).encoded()
    name = schema.positions.name
    column = contiguous(changes.column(name))
    at = changes.schema.get_field_index(name)
    replaced = pc.replace_with_mask(column, pa.array(marks), encoded)
    return changes.set_column(at, changes.schema.field(at), replaced)


def fold_partial(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """Return one change per key, in the order of the keys' hashes.

    `changes` as for `fold`, in any order; they need not be partial.
    """
    names = (POSITION_OFFSET, POSITION_FILE, KEY_LOW, KEY_HIGH)
    offset, file, low, high = (contiguous(changes.column(name)).to_numpy() for name in names)
    order = np.lexsort((partial_rows(changes, schema), offset, file, low, high))
    changes, high, low = changes.take(pa.array(order)), high[order], low[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    starts = np.flatnonzero(first)
    result = united(_registers(changes, schema), starts)
    several = np.diff(np.append(starts, len(order))) > 1
    return _folded(changes, schema, result.newest, result.sources, result.registers, several)


def _folded(
    changes: pa.Table,
    schema: TableSchema,
    newest: Integers,
    sources: Integers,
    registers: ColumnRegisters,
    several: Mask,
) -> pa.Table:
    """Take each column from the change it comes from; a single change is unchanged."""
    partial = partial_rows(changes, schema)[newest]
    source_of = {column.name: sources[:, column.id] for column in schema.columns}
    nothing = several & partial
    columns = []
    for field in changes.schema:
        at = source_of.get(field.name, newest)
        if schema.positions is not None and field.name == schema.positions.name:
            columns.append(registers.encoded())
            continue
        values = contiguous(changes.column(field.name)).take(pa.array(at))
        forgotten = {ROW_DIGEST: nothing, BEFORE_DIGEST: several, CHANGED: several}
        if field.name in forgotten:
            mask = pa.array(forgotten[field.name])
            values = pc.if_else(mask, pa.scalar(None, field.type), values)
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=changes.schema)


def columnwise_edits(
    owner: Integers, changes: pa.Table, rows: Integers, state: pa.Table, schema: TableSchema
) -> tuple[Integers, dict[str, ColumnEdit], Mask]:
    """Apply changes to rows, column by column.

    Row i of `state` is at `rows[i]` of its file and has the changes c with `owner[c] == i`. `owner`
    ascends, and so do the positions of each row's changes. Returns the rows that get another state,
    the edits, and which changes contributed something.
    """
    count = len(rows)
    # The row comes after its changes, so at equal positions its own values are kept.
    candidates = concatenated([_registers(changes, schema), _registers(state, schema)])
    of = np.concatenate((owner, np.arange(count)))
    order = np.argsort(of, kind="stable")
    result = united(candidates.take(order), np.searchsorted(of[order], np.arange(count)))
    newest, sources = (
        np.where(order[lines_of] < changes.num_rows, order[lines_of], _OF_THE_ROW)
        for lines_of in (result.newest, result.sources)
    )
    touched = (newest >= 0) | (sources >= 0).any(axis=1)
    at = np.flatnonzero(touched)
    given = np.zeros(changes.num_rows, np.bool_)
    given[sources[sources >= 0]] = True
    edits: dict[str, ColumnEdit] = {}
    there = frozenset(changes.column_names)
    for column in schema.columns:
        if column is schema.positions or column.name not in there:
            continue
        won = np.flatnonzero(sources[:, column.id] >= 0)
        if len(won) and column.name not in schema.key:
            edits[column.name] = _edit_from_changes(
                rows, changes, column.name, won, sources[:, column.id]
            )
    moved = np.flatnonzero(newest >= 0)
    for name in (POSITION_FILE, POSITION_OFFSET, SOURCE_TS):
        if len(moved):
            edits[name] = _edit_from_changes(rows, changes, name, moved, newest)
    if len(at):
        edits |= _system_edits(rows, changes, newest, result.registers, at, schema)
    return rows[at], edits, given


def _system_edits(
    rows: Integers,
    changes: pa.Table,
    newest: Integers,
    registers: ColumnRegisters,
    at: Integers,
    schema: TableSchema,
) -> dict[str, ColumnEdit]:
    assert schema.positions is not None
    encoded = registers.encoded().take(pa.array(at))
    deleted = registers.incomplete(_needed(schema))[at]
    # Only a row that is one whole image has a digest: that of the newest change.
    whole = np.asarray(encoded.is_null()) & (newest[at] >= 0) & ~deleted
    whole &= ~partial_rows(changes, schema)[newest[at]]
    digests = contiguous(changes.column(ROW_DIGEST)).take(pa.array(np.maximum(newest[at], 0)))
    digests = pc.if_else(pa.array(whole), digests, pa.scalar(None, pa.int64()))
    return {
        schema.positions.name: ColumnEdit(rows[at], encoded),
        ROW_DIGEST: ColumnEdit(rows[at], digests),
        IS_DELETED: ColumnEdit(rows[at], pa.array(deleted)),
    }


def _edit_from_changes(
    rows: Integers, changes: pa.Table, name: str, at: Integers, sources: Integers
) -> ColumnEdit:
    values = contiguous(changes.column(name)).take(pa.array(sources[at]))
    return ColumnEdit(rows[at], values)


def _needed(schema: TableSchema) -> Mask:
    """Mark the columns without which a row isn't complete: all that the source has."""
    return np.array([bool(column.source_name) for column in schema.columns], np.bool_)


def _registers(candidates: pa.Table, schema: TableSchema) -> ColumnRegisters:
    """Read the registers of changes or of rows."""
    assert schema.positions is not None, "only tables that take partial images have registers"
    file, offset = (
        np.asarray(contiguous(candidates.column(name)).to_numpy(), np.int64)
        for name in (POSITION_FILE, POSITION_OFFSET)
    )
    if OP in candidates.column_names:
        deleted = contiguous(candidates.column(OP)).to_numpy() == Op.DELETE
    else:
        deleted = contiguous(candidates.column(IS_DELETED)).to_numpy(zero_copy_only=False)
    encoded = contiguous(candidates.column(schema.positions.name))
    return ColumnRegisters.of(file, offset, deleted, encoded, len(schema.columns))
