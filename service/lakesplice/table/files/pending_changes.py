"""Waiting changes: the live deltas of some file groups, checked and decoded once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakesplice.formats.checksum import verify
from lakesplice.formats.deltas import decode_delta
from lakesplice.model.change import CHANGE_FIELDS, delta_schema
from lakesplice.model.manifest import DeltaRef
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.backfill import with_fills
from lakesplice.table.protocol.ports import Store

# Polars decodes outside the interpreter's lock, one thread a file.
_THREADS = 4


def read_waiting(
    store: Store,
    deltas: Sequence[DeltaRef],
    schema: TableSchema,
    groups: Collection[int],
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return the changes that wait for `groups`, in the layout of the present schema.

    Each delta with such changes is read once, the others not at all. `columns` limits the user
    columns, by default all; the key, and the columns that order and address changes, are always
    included. Blocks. `CorruptFileError` names a delta whose size or checksum differs from the
    manifest's, `MissingFileError` one that doesn't exist.
    """
    wanted = frozenset(groups)
    positions = () if schema.positions is None else (schema.positions.name,)
    kept = None if columns is None else {*columns, *schema.key, *positions}
    system = [GROUP, ROW, *(field.name for field in CHANGE_FIELDS)]
    names = system + [name for name in schema.names if kept is None or name in kept]

    copied = [schema.copies[name] for name in names if name in schema.copies]
    needed = dict.fromkeys((*names, *copied))

    def changes(delta: DeltaRef) -> pa.Table:
        data = store.read(delta.file.path)
        verify(data, delta.file)
        table = decode_delta(
            data, schema, delta.schema_version, path=delta.file.path, columns=[*needed]
        )
        table = with_fills(table, schema, delta.schema_version).select(names)
        return _of_groups(table, wanted & delta.waiting.keys())

    read = [delta for delta in deltas if not wanted.isdisjoint(delta.waiting)]
    with ThreadPoolExecutor(max(1, min(_THREADS, len(read)))) as pool:
        tables = list(pool.map(changes, read))
    layout = delta_schema(schema)
    empty = pa.schema([layout.field(name) for name in names]).empty_table()
    return pa.concat_tables([empty, *tables])


def _of_groups(table: pa.Table, groups: frozenset[int]) -> pa.Table:
    group = table.column(GROUP).to_numpy()
    ours = np.isin(group, np.fromiter(groups, np.int64, len(groups)))
    return table if ours.all() else table.filter(pa.array(ours))
