"""Reads the versions of rows from a history table, with the intervals in which they were valid."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import TableSchema
from lakesplice.planning.versions.intervals import (
    INTERVAL_FIELDS,
    NEEDED_COLUMNS,
    interval_names,
    with_intervals,
)


def needed_columns(schema: TableSchema, chosen: Sequence[str]) -> list[str]:
    """Return the stored columns to read for some columns of versions; `UsageError` if the table is
    no history table. A table without columns may become one.
    """
    if not schema.columns:
        return []
    if not schema.keeps_versions:
        raise UsageError(
            "the table has no versions of its rows; set mode: history for a new table, or read an"
            " earlier version of this one with version or as_of"
        )
    return list(dict.fromkeys((*chosen, *schema.versioned_key, *NEEDED_COLUMNS)))


def versions_of(
    rows: pa.Table, schema: TableSchema, chosen: Sequence[str], at: EpochMs | None, *, current: bool
) -> pa.Table:
    """Return the versions among all rows of a history table, with the columns `chosen` and those of
    the interval; only those valid at a moment, or only current ones, if asked for.
    """
    if not schema.columns:
        return pa.schema(INTERVAL_FIELDS).empty_table()
    found = with_intervals(rows, schema)
    names = interval_names(schema.shown)
    begins, ends, is_current = (found.column(name) for name in names)
    if current:
        found = found.filter(is_current)
    elif at is not None:
        moment = pa.scalar(at * 1000, INTERVAL_FIELDS[0].type)
        lasts = pc.fill_null(pc.greater(ends, moment), True)
        found = found.filter(pc.and_(pc.less_equal(begins, moment), lasts))
    return found.select([*chosen, *names])
