"""The intervals in which rows were as they are, from the rows of a history table.

A row's versions are ordered by the positions of their changes, as its present state is in other
tables. A version begins at its change's time at the source and ends where the next one begins;
a delete is no version, it only ends the one before; a TRUNCATE or DROP ends those of all rows, a
snapshot of the whole table those of rows that it lacks. In detail:

    one transaction     if a transaction changes a row several times, only the last change counts:
                        nobody could see the others. After a failover a connector may send a change
                        again, from another server's binlog; then only its last position counts
    no difference       a change that leaves the stored columns as they are makes no version, such
                        as a row that a second snapshot reads; but a row that is inserted again
                        after a TRUNCATE is a new version, even with the same values
    clocks              times at the source may fall while positions rise. A version begins at the
                        latest time among its change, the row's earlier changes and the table's
                        earlier TRUNCATEs and snapshots, so intervals never overlap. A version that
                        ends when it begins is valid at no moment

`planning/engine_views/history_sql.py` has the same rules for other engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.names import (
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.row_digest import contiguous
from lakesplice.planning.versions.periods import NEVER, Periods, are_ends, microseconds, rising

INTERVAL_FIELDS = (
    pa.field("valid_from", pa.timestamp("us", tz="UTC")),
    pa.field("valid_to", pa.timestamp("us", tz="UTC")),
    pa.field("is_current", pa.bool_(), nullable=False),
)
NEEDED_COLUMNS = (
    HISTORY_POSITION,
    HISTORY_OP,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
"""What `with_intervals` needs beside the columns of the key."""

_DELETE = "d"


def interval_names(taken: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the interval columns beside columns with other names: with an underscore
    if one of them is taken.
    """
    names = tuple(field.name for field in INTERVAL_FIELDS)
    met = {name.casefold() for name in taken}
    while met & set(names):
        names = tuple(f"_{name}" for name in names)
    return names


def with_intervals(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Return the versions among the rows of a history table, each row's together and in their
    order, with the columns `valid_from`, `valid_to` and `is_current` in addition, under
    `interval_names`.

    `rows` are all rows of the table, or all of some keys, with at least the key columns and
    `NEEDED_COLUMNS`. `valid_to` is null in a current version. Times are null if the source sends
    none.
    """
    is_end = are_ends(rows)
    ends, rows = (rows.filter(mask).combine_chunks() for mask in (is_end, pc.invert(is_end)))
    periods = Periods.of(rows, ends, schema.shard_key)
    key = _numbered(rows, schema)
    file, offset = (rows.column(name).to_numpy() for name in (POSITION_FILE, POSITION_OFFSET))
    order = np.lexsort((offset, file, key))
    order = order[_last_of_transaction(rows, order, key)]
    times = np.maximum(microseconds(rows.column(SOURCE_TS)), periods.began)
    begins = rising(times[order], key[order])
    goes_on = _going_on(order, key, periods)
    differs = _differing(rows, order, goes_on)
    life = np.cumsum(~goes_on)
    last = order[np.append(np.flatnonzero(~goes_on), len(order))[1:] - 1]
    order, begins, life = order[differs], begins[differs], life[differs]
    last = last[life - 1]
    follows = np.append(life[1:] == life[:-1], False)[: len(life)]
    closed = periods.closed[last] & ~follows
    to = np.where(follows, np.append(begins[1:], NEVER)[: len(begins)], NEVER)
    to = np.where(closed, np.maximum(begins, periods.ends[last]), to)
    current = ~follows & ~closed
    deletes = pc.equal(rows.column(HISTORY_OP), _DELETE).to_numpy()[order]
    found = rows.take(pa.array(order[~deletes]))
    columns = _times(begins[~deletes]), _times(to[~deletes]), pa.array(current[~deletes])
    names = interval_names(schema.shown)
    for field, name, values in zip(INTERVAL_FIELDS, names, columns, strict=True):
        found = found.append_column(field.with_name(name), values)
    return found


def _numbered(rows: pa.Table, schema: TableSchema) -> Integers:
    """Return a number per row that is the same for the versions of one row."""
    high, low = key_hash(rows, replace(schema, key=schema.versioned_key))
    order = np.lexsort((low, high))
    starts = np.ones(len(order), np.int64)
    starts[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(starts)
    return number


def _last_of_transaction(rows: pa.Table, order: Integers, key: Integers) -> Mask:
    """Mark in `order` the rows that are the last of their key in their transaction, and those
    without a transaction.
    """
    named = contiguous(rows.column(HISTORY_TRANSACTION)).dictionary_encode().indices
    number = pc.fill_null(named, 0).to_numpy().astype(np.int64)
    number = np.where(named.is_null(), -1 - np.arange(len(rows)), number)
    key, number = key[order], number[order]
    by = np.lexsort((np.arange(len(order)), number, key))
    last = np.ones(len(order), np.bool_)
    last[by[:-1]] = (np.diff(key[by]) != 0) | (np.diff(number[by]) != 0)
    return last


def _going_on(order: Integers, key: Integers, periods: Periods) -> Mask:
    """Mark in `order` the rows before which their row existed, or was deleted by a change of its
    own: no end of many rows, and no other row, separates them from the one before.
    """
    key, number, continues = (of[order] for of in (key, periods.number, periods.continues))
    goes_on = np.zeros(len(order), np.bool_)
    goes_on[1:] = (key[1:] == key[:-1]) & (continues[1:] == number[:-1])
    return goes_on


def _differing(rows: pa.Table, order: Integers, goes_on: Mask) -> Mask:
    """Mark in `order` the deletes, and the rows that differ from the row before of their key, or
    don't go on from it.
    """
    column = rows.column(ROW_DIGEST)
    known = column.is_valid().to_numpy()[order]
    digest = pc.fill_null(column, 0).to_numpy()[order]
    same = known[1:] & known[:-1] & (digest[1:] == digest[:-1])
    differs = np.ones(len(order), np.bool_)
    differs[1:] = ~(goes_on[1:] & same)
    return differs


def _times(values: Integers) -> pa.Array:
    mask = values == NEVER
    return pa.array(values, pa.int64(), mask=mask).cast(pa.timestamp("us", tz="UTC"))
