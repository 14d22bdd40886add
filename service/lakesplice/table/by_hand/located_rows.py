"""Rows and keys of an upsert: hashed, located in the table, and turned into located changes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.arrays import KeyHashes, Mask, RowAddresses
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import deletes, repeated_key, updates
from lakesplice.planning.intake.insert_only import first_occurrences
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import UNKNOWN

_THREADS = 4
_HASHED_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class KeyedRows:
    """Rows or keys, with the hashes of their keys."""

    rows: pa.Table
    keys: KeyHashes


@dataclass(frozen=True)
class FoundRows:
    """The addresses of rows; `live` marks those that exist and aren't deleted."""

    addresses: RowAddresses
    live: Mask

    @property
    def known(self) -> Mask:
        """Marks the rows that exist, deleted or not."""
        known: Mask = self.addresses.group != UNKNOWN
        return known


def keyed_rows(
    rows: pa.Table, deleted: pa.Table, schema: TableSchema, *, only_inserts: bool
) -> tuple[KeyedRows, KeyedRows]:
    """Return the rows, and the keys to delete, with their hashes; for an insert-only table the
    first row of each key, and no deletes.

    `UsageError` if a key is given twice.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        pieces = list(pool.map(lambda keys: key_hash(keys, schema), _slices(rows, schema)))
        pieces += list(pool.map(lambda keys: key_hash(keys, schema), _slices(deleted, schema)))
    none = np.empty(0, np.uint64)
    hashes = KeyHashes(
        np.concatenate([none, *(piece.high for piece in pieces)]),
        np.concatenate([none, *(piece.low for piece in pieces)]),
    )
    if only_inserts:
        first = first_occurrences(hashes)
        kept = KeyedRows(rows.take(pa.array(first)), hashes.only(first))
        return kept, KeyedRows(deleted, KeyHashes(none, none))
    twice = repeated_key(hashes)
    if twice is not None:
        keys = pa.concat_tables([t.select(list(schema.key)) for t in (rows, deleted)])
        raise UsageError(
            "a key is given twice; give only one row for each key",
            key=keys.slice(twice, 1).to_pylist(),
        )
    count = rows.num_rows
    return (
        KeyedRows(rows, hashes.only(slice(0, count))),
        KeyedRows(deleted, hashes.only(slice(count, None))),
    )


def unknown_rows(rows: KeyedRows, at: FoundRows) -> tuple[KeyedRows, FoundRows]:
    """Return the rows whose key no row of the table has, not even a deleted one."""
    unknown = ~at.known
    kept = KeyedRows(rows.rows.filter(pa.array(unknown)), rows.keys.only(unknown))
    return kept, FoundRows(at.addresses.only(unknown), at.live[unknown])


def require_whole(rows: pa.Table, at: FoundRows, schema: TableSchema) -> None:
    """Raise `UsageError` if a row that isn't in the table yet lacks a column."""
    absent = [name for name in schema.names if name not in rows.column_names]
    if not absent or at.live.all():
        return
    first = int(np.argmin(at.live))
    raise UsageError(
        "new rows need all columns; give them, or fill_new_rows=True to store null in the others",
        rows=int(np.count_nonzero(~at.live)),
        key=rows.select(list(schema.key)).slice(first, 1).to_pylist(),
        absent=absent,
    )


def located_changes(
    schema: TableSchema, rows: KeyedRows, at: FoundRows, deleted: KeyedRows, gone: FoundRows,
    position: int, now: pa.Scalar,
) -> list[pa.Table]:  # fmt: skip
    """Return the changes of known rows with their addresses: new values, and deletes."""
    found: list[pa.Table] = []
    known = at.known
    if known.any():
        kept = rows.rows if known.all() else rows.rows.filter(pa.array(known))
        there = at.addresses.only(known)
        found.append(updates(kept, ~at.live[known], there, position, now, schema))
    if gone.live.any():
        keys = deleted.rows.filter(pa.array(gone.live))
        there = gone.addresses.only(gone.live)
        found.append(deletes(keys, there, position, now, schema))
    return found


def _slices(table: pa.Table, schema: TableSchema) -> Iterator[pa.Table]:
    keys = table.select(list(schema.key))
    for start in range(0, table.num_rows, _HASHED_AT_A_TIME):
        yield keys.slice(start, _HASHED_AT_A_TIME)
