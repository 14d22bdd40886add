"""Assignments: the values that an edit gives to columns, computed from the rows that it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.planning.by_hand.hand_fed_schema import stored_values
from lakesplice.planning.filtering.expressions import edit_value, evaluated
from lakesplice.planning.filtering.filters import stored_names, used_columns


@dataclass(frozen=True)
class Assignments:
    """For each stored column an expression over the columns of a frame; `needed` names the columns
    that expressions use.
    """

    values: Mapping[Column, pc.Expression]
    needed: frozenset[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The stored names of the columns that get values."""
        return tuple(column.name for column in self.values)

    def of(self, frame: pa.Table) -> dict[str, pa.ChunkedArray]:
        """Return the columns' values for each row of a frame, in the columns' types.

        `UsageError` if one can't be computed or its column can't hold it exactly.
        """
        found = evaluated(list(self.values.values()), frame)
        return {
            column.name: _in_type(values, column)
            for column, values in zip(self.values, found, strict=True)
        }


def assignments(
    given: Mapping[str, object], frame: pa.Schema, schema: TableSchema, *, keys: bool = False
) -> Assignments:
    """Return what `given` assigns to columns, by stored or source names: texts are SQL over the
    frame, Arrow expressions are used unchanged, and anything else is a literal.

    Raises `UsageError` for a column that doesn't exist or is given twice, for a key column unless
    `keys`, and for an expression that doesn't fit.
    """
    names = stored_names(schema)
    columns = {column.name: column for column in schema.columns if not column.hidden}
    found: dict[Column, pc.Expression] = {}
    for name, value in given.items():
        column = columns.get(names.get(name, ""))
        if column is None or column in found:
            raise UsageError(
                "the table has no such column, or the column is given twice",
                columns=[name],
                known=list(columns),
            )
        if column.name in schema.key and not keys:
            raise UsageError(
                "a key can't be changed; delete the row and insert another", column=column.name
            )
        found[column] = _expression(value, frame, column)
    if not found:
        raise UsageError("give at least one column a value")
    needed = (used_columns(expression, frame) for expression in found.values())
    return Assignments(found, frozenset().union(*needed))


def _expression(value: object, frame: pa.Schema, column: Column) -> pc.Expression:
    if isinstance(value, str):
        return edit_value(value, frame, column.type.arrow)
    if isinstance(value, pc.Expression):
        return value
    if isinstance(value, pa.Scalar):
        return pc.scalar(value)
    try:
        return pc.scalar(pa.scalar(value, column.type.arrow))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            "a literal doesn't fit its column", column=column.name, type=column.type.name
        ) from error


def _in_type(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if values.type == column.type.arrow:
        return values
    if pa.types.is_null(values.type):
        return values.cast(column.type.arrow)
    return stored_values(values, column)
