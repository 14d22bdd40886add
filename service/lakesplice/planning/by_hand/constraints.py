"""Constraints of a table fed by hand: which rows break them.

A column that is required holds no null. A check is a condition that must be true for every row; as
in Delta, a row for which it is null breaks it, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.manifest import UpsertState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.filtering.expressions import edit_condition, evaluated
from lakesplice.planning.filtering.filters import used_columns

_NAME = re.compile(r"[A-Za-z0-9_]+")


def checked_name(name: object) -> str:
    """Return a check's name in small letters, as Delta keeps it; `UsageError` if it is none."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError("a constraint's name has letters, digits and underscores", name=name)
    return name.lower()


def parsed_check(condition: str, schema: TableSchema) -> tuple[pc.Expression, frozenset[str]]:
    """Return a check over stored columns, and the columns that it reads; `UsageError` if it doesn't
    fit them.
    """
    columns = pa.schema([schema.arrow.field(name) for name in schema.shown])
    parsed = edit_condition(condition, columns)
    return parsed, used_columns(parsed, columns)


def read_by_checks(upserts: UpsertState, schema: TableSchema) -> frozenset[str]:
    """Return the columns that the checks of a table read."""
    found = (parsed_check(check, schema)[1] for check in upserts.checks.values())
    return frozenset().union(*found)


def broken_constraints(
    rows: pa.Table, upserts: UpsertState, schema: TableSchema
) -> Mapping[str, int]:
    """Return how many of some rows break each constraint that some break, by its name.

    `rows` have stored names. A check that reads a column that they lack is left out, and so is a
    required column that they lack.
    """
    found = {}
    for name in upserts.required:
        if name in rows.column_names and (nulls := rows.column(name).null_count):
            found[f"NOT NULL {name}"] = nulls
    for name, condition in upserts.checks.items():
        check, columns = parsed_check(condition, schema)
        if columns <= set(rows.column_names) and (count := _not_true(check, rows)):
            found[name] = count
    return found


def _not_true(check: pc.Expression, rows: pa.Table) -> int:
    (holds,) = evaluated([check], rows)
    true = holds.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
    return int(np.count_nonzero(~true))


def require_unbroken(broken: Mapping[str, int], upserts: UpsertState) -> None:
    """Raise `UsageError` if a constraint is broken."""
    if broken:
        checks = {name: upserts.checks[name] for name in broken if name in upserts.checks}
        raise UsageError(
            "rows break constraints of the table; nothing was changed",
            rows_by_constraint=dict(broken),
            checks=checks,
        )
