"""One row as of a version: in its base file, and with its waiting changes applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.model.address import BaseFile, RowAddress
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import (
    GROUP,
    IS_DELETED,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
    SOURCE_TS,
    SYSTEM_COLUMNS,
)
from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.keys.requested_key import RequestedKey
from lakesplice.planning.rows.column_positions import ColumnRegisters
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.overlay import overlay, state_columns
from lakesplice.planning.rows.waiting_changes import WaitingChanges
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store


@dataclass(frozen=True)
class RowState:
    """A row as of a version.

    `position` is that of its newest change, `base_position` the one in the base file. `waiting` are
    the row's waiting changes, in order of position. `parts` are the positions that its columns'
    values come from, in a table that takes partial images. A deleted row has no `values`.
    """

    address: RowAddress
    path: str
    base_position: Position
    base_deleted: bool
    position: Position
    deleted: bool
    source_ts: datetime | None
    waiting: pa.Table
    parts: frozenset[Position] = frozenset()
    values: dict[str, Any] = field(default_factory=dict)

    def has(self, position: Position) -> bool:
        """Whether the change at this position gave the row, or one of its columns, the present
        value.
        """
        return position == self.position or position in self.parts


def row_at(
    store: Store,
    manifest: Manifest,
    key: RequestedKey,
    address: RowAddress,
    columns: Sequence[str],
) -> RowState:
    """Read the row at an address of a version, with the values of `columns`.

    Blocks: reads the key and the system columns of a row group, and the deltas that wait for the
    file group. `CorruptFileError` if the row there has another key; otherwise errors as a scan's.
    """
    group, row = address
    schema = manifest.schema
    file = next(f for f in manifest.files.values() if any(s.group == group for s in f.segments))
    changes = changes_at(store, manifest.deltas, schema, [address], columns)
    placed = WaitingChanges.of(changes).for_file(file.segments, file.path)
    state = state_columns(schema, manifest.ordering)
    names = [*dict.fromkeys((*schema.key, *SYSTEM_COLUMNS, *state, *columns))]
    base = _base_row(store, file, schema, _row_in_file(file, group, row), names)
    if RequestedKey.of(schema, {name: base[name][0].as_py() for name in schema.key}) != key:
        raise CorruptFileError(
            "the index leads to another key's row; run `lakesplice index check`", path=file.path
        )
    at = _row_in_file(file, group, row)
    edits = overlay(
        placed.within(at, at + 1), base.select([*state]), schema, file.path, manifest.ordering
    )
    now = apply_edits(base, edits)
    deleted = now[IS_DELETED][0].as_py()
    order = [("_position_file", "ascending"), ("_position_offset", "ascending")]
    return RowState(
        address=address,
        path=file.path,
        base_position=_position(base),
        base_deleted=base[IS_DELETED][0].as_py(),
        position=_position(now),
        deleted=deleted,
        source_ts=now[SOURCE_TS][0].as_py(),
        waiting=changes.sort_by(order),
        parts=_parts(now, schema),
        values={} if deleted else {name: now[name][0].as_py() for name in columns},
    )


def changes_at(
    store: Store,
    deltas: Sequence[DeltaRef],
    schema: TableSchema,
    addresses: Sequence[RowAddress],
    columns: Sequence[str],
) -> pa.Table:
    """Return the changes that some deltas have for the rows at some addresses. Blocks."""
    found = read_waiting(store, deltas, schema, {group for group, _ in addresses}, columns)
    groups, rows = (found.column(name).to_numpy() for name in (GROUP, ROW))
    of_addresses = np.zeros(found.num_rows, np.bool_)
    for group, row in addresses:
        of_addresses |= (groups == group) & (rows == row)
    return found.filter(pa.array(of_addresses)).combine_chunks()


def _row_in_file(file: BaseFile, group: int, row: int) -> int:
    first = 0
    for segment in file.segments:
        if segment.group == group:
            break
        first += segment.rows
    return first + row


def _base_row(
    store: Store, file: BaseFile, schema: TableSchema, at: int, names: Sequence[str]
) -> pa.Table:
    with open_base(store, file, schema) as reader:
        for number, (first, last) in enumerate(reader.row_groups):
            if first <= at < last:
                return reader.read(number, names).slice(at - first, 1).combine_chunks()
    raise CorruptFileError(
        "the index leads beyond a base file; run `lakesplice index check`", path=file.path, row=at
    )


def _position(row: pa.Table) -> Position:
    return Position(row[POSITION_FILE][0].as_py(), row[POSITION_OFFSET][0].as_py())


def _parts(row: pa.Table, schema: TableSchema) -> frozenset[Position]:
    """The positions that known values of columns come from."""
    if schema.positions is None:
        return frozenset()
    encoded = row[schema.positions.name].combine_chunks()
    own = _position(row)
    deleted = np.array([row[IS_DELETED][0].as_py()])
    registers = ColumnRegisters.of(
        np.array([own.file]), np.array([own.offset]), deleted, encoded, len(schema.columns)
    )
    known = registers.known[0]
    pairs = zip(registers.file[0][known].tolist(), registers.offset[0][known].tolist(), strict=True)
    return frozenset(Position(*pair) for pair in pairs)
