"""Filters: which columns one needs, and evaluating it by the names its author used."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema


def stored_names(schema: TableSchema) -> dict[str, str]:
    """Map every name that a reader may use to the stored one: stored, source's, and system names.

    Where a source's name is another column's stored name, the stored name goes before it.
    """
    names = {name: column.name for name, column in schema.by_source.items()}
    return names | {name: name for name in (*schema.names, *(f.name for f in SYSTEM_FIELDS))}


class Filter:
    """A condition on a table's rows; rows for which it is null do not match."""

    def __init__(self, condition: pc.Expression, schema: TableSchema) -> None:
        """Bind `condition` to `schema`; `UsageError` if a column is unknown or types do not fit."""
        text = str(condition)
        if "FieldPath(" in text:
            raise UsageError("a filter names its columns; numbers move as columns are added")
        names = stored_names(schema)
        # A name that only looks like one in the text costs a column that is read, nothing else.
        self._used: Mapping[str, str] = {n: s for n, s in names.items() if n in text}
        self._condition = condition
        try:
            self.matching(pa.schema(schema.arrow).empty_table())
        except (pa.ArrowException, KeyError) as error:
            raise UsageError(
                "a filter does not fit the table's columns", filter=text, cause=str(error)
            ) from error

    @property
    def columns(self) -> frozenset[str]:
        """The stored columns that must be there to evaluate the condition; perhaps a few more."""
        return frozenset(self._used.values())

    @property
    def expression(self) -> pc.Expression:
        """The condition, by the names that its author used."""
        return self._condition

    @property
    def on_stored_names(self) -> pc.Expression | None:
        """The condition itself if every name in it is a stored one, for pruning by statistics."""
        return self._condition if all(n == s for n, s in self._used.items()) else None

    def matching(self, table: pa.Table) -> pa.Table:
        """Return the rows of `table` that match, all its columns kept."""
        aliases = {n: s for n, s in self._used.items() if n != s}
        if not aliases:
            return table.filter(self._condition)
        seen = table
        for name, stored in aliases.items():
            seen = seen.append_column(name, table.column(stored))
        return seen.filter(self._condition).select(table.column_names)
