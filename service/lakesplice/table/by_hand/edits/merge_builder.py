"""`MergeBuilder`: collects a merge's clauses one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from lakesplice.planning.by_hand.merge_clauses import Action, Clause, Condition, Rows, Values
from lakesplice.table.by_hand.upserts.upsert_request import Upserted


class Execute(Protocol):
    """Executes a merge with these clauses."""

    def __call__(
        self,
        clauses: tuple[Clause, ...],
        *,
        transaction: tuple[str, int] | None,
        merge: bool | None,
        merge_schema: bool,
    ) -> Upserted:
        """See `MergeBuilder.execute`."""


@dataclass(frozen=True)
class MergeBuilder:
    """A merge under construction; each method returns it with one more clause.

    `where` and values are as for `Table.update`, over the columns `target.…` and `source.…`; if
    only one of the two has a column, its name is enough. Of the clauses about the same rows, the
    first one whose `where` is true applies to a row.
    """

    run: Execute
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, set: Values = None, where: Condition = None) -> MergeBuilder:  # noqa: A002  # as in `Table.update`
        """Change rows of the table whose key a row of the source has; without `set` they get all
        values of the source.
        """
        return self._with(Rows.MATCHED, Action.UPDATE, where, set)

    def when_matched_delete(self, where: Condition = None) -> MergeBuilder:
        """Delete rows of the table whose key a row of the source has."""
        return self._with(Rows.MATCHED, Action.DELETE, where)

    def when_not_matched_insert(
        self, values: Values = None, where: Condition = None
    ) -> MergeBuilder:
        """Insert rows of the source whose key no row has. Columns that `values` lacks are null;
        without `values` the source must have all columns.
        """
        return self._with(Rows.NOT_MATCHED, Action.INSERT, where, values)

    def when_not_matched_by_source_update(
        self,
        set: dict[str, object],  # noqa: A002  # as in `Table.update`
        where: Condition = None,
    ) -> MergeBuilder:
        """Change rows of the table whose key no row of the source has."""
        return self._with(Rows.NOT_MATCHED_BY_SOURCE, Action.UPDATE, where, set)

    def when_not_matched_by_source_delete(self, where: Condition = None) -> MergeBuilder:
        """Delete rows of the table whose key no row of the source has."""
        return self._with(Rows.NOT_MATCHED_BY_SOURCE, Action.DELETE, where)

    def with_clauses(self, clauses: Iterable[Clause]) -> MergeBuilder:
        """Add clauses as values."""
        return replace(self, clauses=(*self.clauses, *clauses))

    def execute(
        self,
        *,
        transaction: tuple[str, int] | None = None,
        merge: bool | None = None,
        merge_schema: bool = False,
    ) -> Upserted:
        """Execute the merge in one commit; arguments, rescans and errors are those of
        `Table.update`.

        With `merge_schema` the table first gets the columns of the source that it lacks, and wider
        types, as for `Table.upsert`. Also raises `UsageError` if several rows of the source to
        which clauses apply share a key.
        """
        return self.run(
            self.clauses, transaction=transaction, merge=merge, merge_schema=merge_schema
        )

    def _with(
        self, rows: Rows, action: Action, where: Condition, values: Values = None
    ) -> MergeBuilder:
        return replace(self, clauses=(*self.clauses, Clause(rows, action, where, values)))
