"""Waiting changes: the live deltas of some file groups, checked and decoded once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakesplice.formats.deltas import decode_delta
from lakesplice.model.change import CHANGE_FIELDS, delta_schema
from lakesplice.model.manifest import DeltaRef
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.backfill import with_fills
from lakesplice.table.files.whole_files import read_file
from lakesplice.table.protocol.ports import Store

_THREADS = 4
# New threads decode into memory that is new to them, which costs more than decoding few rows.
_ROWS_DECODED_BY_ONE = 1 << 17


def read_waiting(
    store: Store,
    deltas: Sequence[DeltaRef],
    schema: TableSchema,
    groups: Collection[int],
    columns: Collection[str] | None = None,
    *,
    left_out: Collection[str] = (),
) -> pa.Table:
    """Return the changes that wait for `groups`, in the layout of the present schema.

    Each delta with such changes is read once, the others not at all. `columns` limits the user
    columns, by default all; the key, and the columns that order and address changes, are always
    included. `left_out` names columns about changes that the result needn't have. Blocks.
    `CorruptFileError` names a delta whose size or checksum differs from the manifest's,
    `MissingFileError` one that doesn't exist.
    """
    wanted = frozenset(groups)
    positions = () if schema.positions is None else (schema.positions.name,)
    kept = None if columns is None else {*columns, *schema.key, *positions}
    about = (field.name for field in CHANGE_FIELDS)
    system = [GROUP, ROW, *(name for name in about if name not in left_out)]
    names = system + [name for name in schema.names if kept is None or name in kept]

    copied = [schema.copies[name] for name in names if name in schema.copies]
    needed = dict.fromkeys((*names, *copied))

    def changes(delta: DeltaRef, data: bytes) -> pa.Table:
        table = decode_delta(
            data, schema, delta.schema_version, path=delta.file.path, columns=[*needed]
        )
        table = with_fills(table, schema, delta.schema_version).select(names)
        if wanted >= delta.waiting.keys() and sum(delta.waiting.values()) == table.num_rows:
            return table
        return _of_groups(table, wanted & delta.waiting.keys())

    read = [delta for delta in deltas if not wanted.isdisjoint(delta.waiting)]
    with ThreadPoolExecutor(max(1, min(_THREADS, len(read)))) as pool:
        contents = pool.map(lambda delta: read_file(store, delta.file), read)
        many = sum(delta.rows for delta in read) > _ROWS_DECODED_BY_ONE
        tables = list((pool.map if many else map)(changes, read, contents))
    layout = delta_schema(schema)
    empty = pa.schema([layout.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *tables])


def _of_groups(table: pa.Table, groups: frozenset[int]) -> pa.Table:
    group = table.column(GROUP).to_numpy()
    ours = np.isin(group, np.fromiter(groups, np.int64, len(groups)))
    return table if ours.all() else table.filter(pa.array(ours))
