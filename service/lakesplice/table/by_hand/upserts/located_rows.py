"""Rows and keys of an upsert: hashed, located in the table, and turned into located changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    given: Sequence[pa.Table], deleted: pa.Table, schema: TableSchema, *, only_inserts: bool
) -> tuple[list[KeyedRows], KeyedRows]:
    """Return tables of rows, and the keys to delete, with their hashes; for an insert-only table
    the first row of each key, and no deletes.

    `UsageError` if a key is given twice.
    """
    tables = [*given, deleted]
    with ThreadPoolExecutor(_THREADS) as pool:
        pieces = [piece for table in tables for piece in _slices(table, schema)]
        hashed = list(pool.map(lambda keys: key_hash(keys, schema), pieces))
    none = np.empty(0, np.uint64)
    hashes = KeyHashes(
        np.concatenate([none, *(piece.high for piece in hashed)]),
        np.concatenate([none, *(piece.low for piece in hashed)]),
    )
    found, start = [], 0
    for table in tables:
        end = start + table.num_rows
        found.append(KeyedRows(table, hashes.only(slice(start, end))))
        start = end
    if only_inserts:
        return [_first_of_each(rows) for rows in found[:-1]], KeyedRows(
            deleted.slice(0, 0), KeyHashes(none, none)
        )
    twice = repeated_key(hashes)
    if twice is not None:
        keys = pa.concat_tables([table.select(list(schema.key)) for table in tables])
        raise UsageError(
            "a key is given twice; give only one row for each key",
            key=keys.slice(twice, 1).to_pylist(),
        )
    return found[:-1], found[-1]


def _first_of_each(rows: KeyedRows) -> KeyedRows:
    first = first_occurrences(rows.keys)
    return KeyedRows(rows.rows.take(pa.array(first)), rows.keys.only(first))


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


def located_updates(
    rows: KeyedRows, at: FoundRows, position: int, now: pa.Scalar, schema: TableSchema
) -> list[pa.Table]:
    """Return the changes of known rows that give them new values, with their addresses."""
    known = at.known
    if not known.any():
        return []
    kept = rows.rows if known.all() else rows.rows.filter(pa.array(known))
    there = at.addresses.only(known)
    return [updates(kept, ~at.live[known], there, position, now, schema)]


def located_deletes(
    deleted: KeyedRows, at: FoundRows, position: int, now: pa.Scalar, schema: TableSchema
) -> list[pa.Table]:
    """Return the changes that delete known rows, with their addresses."""
    if not at.live.any():
        return []
    keys = deleted.rows.filter(pa.array(at.live))
    return [deletes(keys, at.addresses.only(at.live), position, now, schema)]


def _slices(table: pa.Table, schema: TableSchema) -> Iterator[pa.Table]:
    keys = table.select(list(schema.key))
    for start in range(0, table.num_rows, _HASHED_AT_A_TIME):
        yield keys.slice(start, _HASHED_AT_A_TIME)
