"""Filters: which columns a condition needs, and its evaluation by the names that its author
used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema


def stored_names(schema: TableSchema) -> dict[str, str]:
    """Map every name that a reader may use to the stored one: stored names, source names, system
    names.

    If a source name is another column's stored name, the stored name has precedence.
    """
    names = {name: column.name for name, column in schema.by_source.items()}
    return names | {name: name for name in (*schema.names, *(f.name for f in SYSTEM_FIELDS))}


class Filter:
    """A condition on a table's rows; rows for which it is null do not match."""

    def __init__(self, condition: pc.Expression, schema: TableSchema) -> None:
        """Bind `condition` to `schema`; `UsageError` if a column is unknown or types do not fit."""
        if not isinstance(condition, pc.Expression):
            raise UsageError(
                "a filter is an expression such as pyarrow.compute.field('id') > 5",
                found=type(condition).__name__,
            )
        self._condition, self._types = condition, schema.arrow
        names = stored_names(schema)
        fields = [schema.arrow.field(s).with_name(n) for n, s in names.items()]
        nothing = pa.schema(fields).empty_table()
        if (problem := _problem(condition, nothing)) is not None:
            raise UsageError(
                "a filter does not fit the table's columns",
                filter=_shown(condition),
                cause=problem,
            )
        self._used: Mapping[str, str] = {n: names[n] for n in _used(condition, nothing)}

    @property
    def columns(self) -> frozenset[str]:
        """The stored columns that are needed to evaluate the condition."""
        return frozenset(self._used.values())

    @property
    def expression(self) -> pc.Expression:
        """The condition, with the names that its author used."""
        return self._condition

    @property
    def for_statistics(self) -> pc.Expression | None:
        """The condition if a file's statistics can show that it matches nothing, else None.

        Its names must be stored ones. No column may be floating point: bounds leave out NaN and
        don't distinguish 0.0 from -0.0, so a row group could seem to lack a row that it has.
        """
        can_tell = all(
            name == stored and not pa.types.is_floating(self._types.field(stored).type)
            for name, stored in self._used.items()
        )
        return self._condition if can_tell else None

    def matching(self, table: pa.Table) -> pa.Table:
        """Return the rows of `table` that match, with all its columns.

        `UsageError` if the condition can't be evaluated, for example because of a division by zero.
        """
        seen = table
        for name, stored in self._used.items():
            if name != stored:
                seen = seen.append_column(name, table.column(stored))
        try:
            return seen.filter(self._condition).select(table.column_names)
        except pa.ArrowException as error:
            raise UsageError(
                "a filter can't be evaluated on a row",
                filter=_shown(self._condition),
                cause=str(error),
            ) from error


def used_columns(value: pc.Expression, columns: pa.Schema) -> frozenset[str]:
    """Return which of the columns a value needs; `UsageError` if it doesn't fit them."""
    condition, nothing = value.is_null(), columns.empty_table()
    if (problem := _problem(condition, nothing)) is not None:
        raise UsageError(
            "an expression does not fit the columns", expression=_shown(value), cause=problem
        )
    return frozenset(_used(condition, nothing))


def _problem(condition: pc.Expression, nothing: pa.Table) -> str | None:
    """Why a condition can't be evaluated on a table with these columns; None if it can."""
    try:
        condition.__reduce__()
    except pa.ArrowNotImplementedError:
        # Only what refers to columns by number, and functions made by the user, can't be pickled.
        return "a filter must name its columns: their numbers change when columns are added"
    try:
        nothing.filter(condition)
    except (pa.ArrowException, KeyError) as error:
        return str(error)
    return None


def _used(condition: pc.Expression, nothing: pa.Table) -> list[str]:
    """The columns of a table that a condition, which fits it, refers to."""
    # A pickled condition has the names as they are. Others may occur in it by chance.
    pickled = bytes(condition.__reduce__()[1][0])
    candidates = [name for name in nothing.column_names if name.encode() in pickled]
    if not _fits(condition, nothing.select(candidates)):
        candidates = nothing.column_names
    return _needed(condition, nothing.select(candidates), candidates)


def _needed(condition: pc.Expression, nothing: pa.Table, names: Sequence[str]) -> list[str]:
    """Those of the names without which the condition doesn't fit, found by halving."""
    if _fits(condition, nothing.drop_columns(list(names))):
        return []
    if len(names) == 1:
        return list(names)
    middle = len(names) // 2
    halves = names[:middle], names[middle:]
    return [name for half in halves for name in _needed(condition, nothing, half)]


def _fits(condition: pc.Expression, nothing: pa.Table) -> bool:
    try:
        nothing.filter(condition)
    except (pa.ArrowException, KeyError):
        return False
    return True


def _shown(condition: pc.Expression) -> str:
    """The condition as text for people; pyarrow may cut a long text within a character."""
    try:
        return str(condition)
    except UnicodeDecodeError:
        return "(its text can't be shown)"
