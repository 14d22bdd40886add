"""Overwrites: which rows may replace those that a condition chooses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.schema import TableSchema
from lakesplice.planning.filtering.filters import Filter


def require_all_columns(rows: pa.Table, schema: TableSchema) -> None:
    """Raise `UsageError` if rows lack a column that readers see."""
    absent = [name for name in schema.shown if name not in rows.column_names]
    if absent:
        raise UsageError("rows that replace others need all columns", absent=absent)


def require_inside(rows: pa.Table, condition: pc.Expression, schema: TableSchema) -> None:
    """Raise `UsageError` if a row doesn't match the condition, or if the condition is null for
    it.
    """
    inside = Filter(condition, schema).matching(rows).num_rows
    if inside < rows.num_rows:
        raise UsageError(
            "rows that replace those of a condition must match it, and some don't; leave them out,"
            " or write them with upsert",
            rows=rows.num_rows - inside,
        )


def require_none_elsewhere(live: Mask, replaced: Integers) -> None:
    """Raise `UsageError` if a row has the key of one that the condition doesn't choose.

    `live` marks the rows whose key the table has; `replaced` are the indexes of those whose row
    will be replaced.
    """
    elsewhere = live.copy()
    elsewhere[replaced] = False
    if elsewhere.any():
        raise UsageError(
            "rows outside of the condition have the keys of some rows; widen it, or use upsert",
            rows=int(np.count_nonzero(elsewhere)),
        )
