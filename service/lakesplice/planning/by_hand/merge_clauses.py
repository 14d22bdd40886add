"""Clauses of a merge: to which rows of the table and of the source each one applies, and what it
does.

A clause sees the columns of its rows under these names:

    target.a, source.b    of the table, by stored or source name, and of the source
    a, b                  the same, where only one of the two has such a column

A matched row has both, one that isn't matched only those of the source, and one that is not matched
by the source only those of the table. Of the clauses of one kind, the first one whose condition is
true applies to the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.assignments import Assignments, assignments
from lakesplice.planning.filtering.expressions import edit_condition, evaluated, without_values
from lakesplice.planning.filtering.filters import stored_names, used_columns

TARGET, SOURCE = "target.", "source."
Condition: TypeAlias = str | pc.Expression | None
Values: TypeAlias = Mapping[str, object] | None


class Rows(StrEnum):
    """The rows to which a clause applies."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Action(StrEnum):
    """What a clause does with its rows."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Clause:
    """A clause as the caller passed it; without `values` an update or insert uses the source's
    columns.
    """

    rows: Rows
    action: Action
    where: Condition = None
    values: Values = None

    def __str__(self) -> str:
        """Its text in the history, without values of rows."""
        if self.where is None:
            return f"{self.rows}: {self.action}"
        shown = without_values(self.where) if isinstance(self.where, str) else "?"
        return f"{self.rows} and {shown}: {self.action}"


@dataclass(frozen=True)
class BoundClause:
    """A clause over the columns of a table and a source; `needed` are the names of the columns that
    it reads.
    """

    clause: Clause
    condition: pc.Expression | None
    values: Assignments | None
    needed: frozenset[str]


def merge_columns(rows: Rows, target: pa.Schema, source: pa.Schema) -> pa.Schema:
    """Return the columns that clauses about these rows see, by all their names."""
    sides = {TARGET: target, SOURCE: source}
    if rows is Rows.NOT_MATCHED:
        del sides[TARGET]
    if rows is Rows.NOT_MATCHED_BY_SOURCE:
        del sides[SOURCE]
    both = frozenset(target.names) & frozenset(source.names) if len(sides) > 1 else frozenset()
    fields = [f.with_name(side + f.name) for side, schema in sides.items() for f in schema]
    bare = [f for schema in sides.values() for f in schema if f.name not in both]
    return pa.schema(fields + bare)


def bound(
    clause: Clause, columns: pa.Schema, source: pa.Schema, schema: TableSchema
) -> BoundClause:
    """Return a clause over these columns; `UsageError` if a part of it doesn't fit."""
    where = clause.where
    condition = edit_condition(where, columns) if isinstance(where, str) else where
    needed = frozenset() if condition is None else used_columns(condition, columns)
    values = None
    if clause.action in (Action.UPDATE, Action.INSERT):
        given = _all_columns(clause, source, schema) if clause.values is None else clause.values
        inserts = clause.action is Action.INSERT
        values = assignments(given, columns, schema, keys=inserts)
        needed |= values.needed
    return BoundClause(clause, condition, values, needed)


def _all_columns(clause: Clause, source: pa.Schema, schema: TableSchema) -> dict[str, object]:
    """The source's columns by name; an insert needs each column of the table."""
    names = stored_names(schema)
    shared = {names[name]: pc.field(SOURCE + name) for name in source.names if name in names}
    absent = [name for name in schema.shown if name not in shared]
    if clause.action is Action.INSERT and absent:
        raise UsageError(
            "the source lacks columns; name those to insert, then the others are null",
            absent=absent,
        )
    return {
        name: value
        for name, value in shared.items()
        if name in schema.shown and (clause.action is Action.INSERT or name not in schema.key)
    }


def by_clause(
    clauses: Sequence[BoundClause], frame: pa.Table
) -> Iterator[tuple[BoundClause, Integers]]:
    """Yield each clause that applies to rows of a frame, with their indexes, ascending.

    A condition is computed only for rows to which no earlier clause applies. Raises `UsageError` if
    it can't be computed.
    """
    left = np.arange(frame.num_rows)
    for clause in clauses:
        if not len(left):
            return
        holds = np.ones(len(left), np.bool_)
        if clause.condition is not None:
            (found,) = evaluated([clause.condition], frame.take(pa.array(left)))
            holds = found.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False)
        if holds.any():
            yield clause, left[holds]
        left = left[~holds]
