"""Constraints are enforced on the rows of a write, before anything of it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.model.manifest import UpsertState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.constraints import (
    broken_constraints,
    read_by_checks,
    require_unbroken,
)
from lakesplice.planning.by_hand.hand_fed_changes import same_keys, widened
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.by_hand.upserts.located_rows import FoundRows, KeyedRows

Read = Callable[[Sequence[str], pa.Table], pa.Table]


def require_constraints(
    pairs: Sequence[tuple[KeyedRows, FoundRows]],
    upserts: UpsertState,
    schema: TableSchema,
    read: Read,
) -> None:
    """Raise `UsageError`, with the number of rows for each constraint, if rows break one.

    New rows have null in columns that they lack, other rows what the table has: `read` returns
    columns of the rows with some keys, and possibly of others. It is called only if a check reads a
    column that is given and another one that isn't.
    """
    if not upserts.checks and not upserts.required:
        return
    checked = read_by_checks(upserts, schema) if upserts.checks else frozenset()
    broken: Counter[str] = Counter()
    for rows, at in pairs:
        new = rows.rows.filter(pa.array(~at.live))
        broken.update(broken_constraints(widened(new, schema), upserts, schema))
        kept = KeyedRows(rows.rows.filter(pa.array(at.live)), rows.keys.only(at.live))
        given = set(rows.rows.column_names)
        absent = sorted(checked - given)
        if absent and checked & (given - set(schema.key)):
            kept = _with_current(kept, absent, schema, read)
        broken.update(broken_constraints(kept.rows, upserts, schema))
    require_unbroken(broken, upserts)


def _with_current(
    rows: KeyedRows, absent: Sequence[str], schema: TableSchema, read: Read
) -> KeyedRows:
    if not rows.rows.num_rows:
        return rows
    current = read([*schema.key, *absent], rows.rows)
    of_current, of_rows = same_keys(key_hash(current, schema), rows.keys)
    assert np.array_equal(of_rows, np.arange(rows.rows.num_rows)), "these rows are live"
    there = current.take(pa.array(of_current))
    full = rows.rows
    for name in absent:
        full = full.append_column(schema.arrow.field(name), there.column(name))
    return KeyedRows(full, rows.keys)
