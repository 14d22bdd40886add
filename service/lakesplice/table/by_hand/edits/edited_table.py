"""`EditedTable`: a table fed by hand whose rows are also chosen by a condition, not only by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.assignments import assignments
from lakesplice.planning.by_hand.hand_fed_changes import checked_transaction, same_keys
from lakesplice.planning.by_hand.merge_clauses import Action, Clause, Rows
from lakesplice.planning.by_hand.overwriting import (
    require_all_columns,
    require_inside,
    require_none_elsewhere,
)
from lakesplice.planning.filtering.expressions import edit_condition, without_values
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.by_hand.edits.constrained_table import ConstrainedTable
from lakesplice.table.by_hand.edits.merge import Merge, source_rows
from lakesplice.table.by_hand.edits.merge_builder import MergeBuilder
from lakesplice.table.by_hand.edits.replacement import replacement
from lakesplice.table.by_hand.input_rows import Rows as GivenRows
from lakesplice.table.by_hand.input_rows import all_rows, table_of
from lakesplice.table.by_hand.upsert_request import (
    Operation,
    Upserted,
    UpsertRequest,
    is_repeated,
    require_changeable,
)
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table

Condition: TypeAlias = str | pc.Expression
"""SQL over the table's columns, or an Arrow expression."""


class EditedTable(ConstrainedTable):
    """A table fed by hand with edits of rows that a condition chooses."""

    def delete(
        self,
        where: Condition,
        *,
        transaction: tuple[str, int] | None = None,
        merge: bool | None = None,
    ) -> Upserted:
        """Delete the rows that match a condition, in one commit; a row for which it is null is
        kept.

        `where` is SQL over the table's columns (`price > 10 AND name LIKE 'a%'`), or an Arrow
        expression; it may use stored and source names. The real-time view is scanned. If another
        upsert commits meanwhile, it is scanned again, at most 20 times. `transaction` and `merge`
        are as for `upsert`.

        Blocks; memory holds the keys of these rows. Nothing is committed if no row matches.
        `UsageError` for a condition that doesn't fit the table, an insert-only table, and a table
        that a source feeds: delete the rows there, or merge its change feed into a table that is
        fed by hand. `ParkedTableError`, `RetryableError`, `StorageError` as for `upsert`.
        """

        def found(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            rows = Table(self._store, snapshot=snapshot)
            keys = rows.read(columns=schema.key, filter=_condition(where, schema))
            return UpsertRequest(
                (),
                all_rows(keys, schema, schema.key),
                merge=merge,
                operation=Operation.DELETE,
                parameters=_predicate(where),
            )

        return self._edited(found, transaction)

    def update(
        self,
        set: Mapping[str, object],  # noqa: A002  # SQL's own name for it
        where: Condition | None = None,
        *,
        transaction: tuple[str, int] | None = None,
        merge: bool | None = None,
    ) -> Upserted:
        """Give columns new values in the rows that match a condition, or in all rows, in one
        commit.

        `set` maps columns, by stored or source names, to values. A text is SQL over the row as it
        was (`{"price": "price * 2", "name": "'sold'"}`), an Arrow expression is evaluated, and
        anything else is the value itself. docs/by-hand.md lists what SQL may have. A key column
        can't be set. The rest is as for `delete`, also rescans and errors.

        Memory holds the keys and the new values. Raises `UsageError`, and changes no row, if a
        value can't be computed or its column can't hold it exactly.
        """

        def found(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            asked = assignments(set, named_columns(schema), schema)
            columns = list(dict.fromkeys([*schema.key, *sorted(asked.needed)]))
            condition = None if where is None else _condition(where, schema)
            rows = Table(self._store, snapshot=snapshot).read(columns=columns, filter=condition)
            keys = {name: rows.column(name) for name in schema.key}
            return UpsertRequest(
                (all_rows(pa.table({**keys, **asked.of(rows)}), schema, ()),),
                all_rows(None, schema, ()),
                merge=merge,
                operation=Operation.UPDATE,
                parameters=_predicate(where),
            )

        return self._edited(found, transaction)

    def insert(self, rows: GivenRows, *, transaction: tuple[str, int] | None = None) -> Upserted:
        """Insert rows, in one commit; raises `UsageError` if the table already has the key of one.

        `rows` need every column. The rest is as for `delete`.
        """
        clauses = (
            Clause(Rows.MATCHED, Action.REFUSE),
            Clause(Rows.NOT_MATCHED, Action.INSERT),
        )
        return self.merge(rows).with_clauses(clauses).execute(transaction=transaction)

    def overwrite(
        self,
        rows: GivenRows,
        where: Condition | None = None,
        *,
        transaction: tuple[str, int] | None = None,
        merge: bool | None = None,
        merge_schema: bool = False,
        overwrite_schema: bool = False,
    ) -> Upserted:
        """Replace the rows that match a condition, or all rows, by these, in one commit.

        `rows` need every column. Rows whose key exists are updates, of which only new values are
        written; matching rows whose key isn't among `rows` are deleted. With `where` each of `rows`
        must match it, and so must the existing row with its key; so no other row changes.
        `merge_schema` is as for `upsert`, the rest as for `delete`.

        With `overwrite_schema` the table has the columns of `rows` from now on, with their types
        and in their order; its key stays. All rows are replaced, so `where` can't be given. Older
        versions keep their columns. `UsageError` also if a constraint reads a column that is gone.
        """
        replacing = table_of(rows)
        if overwrite_schema:
            if where is not None or merge_schema:
                raise UsageError(
                    "overwrite_schema replaces all rows and all columns; leave out where and"
                    " merge_schema"
                )
            done = self._replaced(replacing, checked_transaction(transaction))
            if done is not None:
                return done
        if merge_schema:
            self._merge_schema(replacing)

        def found(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            given = all_rows(replacing, schema, ())
            require_all_columns(given, schema)
            condition = None if where is None else _condition(where, schema)
            table = Table(self._store, snapshot=snapshot)
            keys = all_rows(table.read(columns=schema.key, filter=condition), schema, schema.key)
            new, old = key_hash(given, schema), key_hash(keys, schema)
            known, replaced = same_keys(old, new)
            if condition is not None:
                require_inside(given, condition, schema)
                require_none_elsewhere(self._upserter.live(snapshot, new), replaced)
            gone = np.ones(keys.num_rows, np.bool_)
            gone[known] = False
            return UpsertRequest(
                (given,),
                keys.filter(pa.array(gone)),
                merge=merge,
                operation=Operation.OVERWRITE,
                parameters=_predicate(where),
            )

        return self._edited(found, transaction)

    def merge(self, source: GivenRows) -> MergeBuilder:
        """Begin a merge of a source's rows, which are matched by the table's key; add its clauses,
        then call `execute`:

            table.merge(changes).when_matched_delete("source.op = 'd'").when_matched_update()
                .when_not_matched_insert().execute()

        The source needs the key columns, and may have others than the table. Memory holds it, and
        the columns of the table that clauses read. `UsageError` if a key is null.
        """
        rows = source_rows(source)

        def run(
            clauses: tuple[Clause, ...],
            *,
            transaction: tuple[str, int] | None,
            merge: bool | None,
            merge_schema: bool,
        ) -> Upserted:
            if not clauses:
                raise UsageError("a merge needs a clause, such as when_matched_update()")
            if merge_schema:
                self._merge_schema(rows)

            def found(snapshot: Snapshot) -> UpsertRequest:
                schema = snapshot.manifest.schema
                request = Merge(clauses, rows).request(
                    schema,
                    named_columns(schema),
                    lambda names, near: Table(self._store, snapshot=snapshot).read(
                        columns=names, filter=near
                    ),
                    lambda keys: self._upserter.live(snapshot, keys),
                )
                return replace(request, merge=merge)

            return self._edited(found, transaction)

        return MergeBuilder(run)

    def _replaced(self, rows: pa.Table, transaction: tuple[str, int] | None) -> Upserted | None:
        """Replace rows and schema; None if the table has these columns already."""
        retries = self._retries()
        while True:
            snapshot = self.refresh().snapshot
            if is_repeated(require_changeable(snapshot.manifest), transaction):
                return Upserted(self.version, repeated=True)
            intent = replacement(self._store, snapshot, rows, transaction, self._tools)
            if intent is None:
                return None
            if self._commit(intent):
                self._upkeep()
                count = intent.counts.get
                return Upserted(self.version, count("inserted", 0), 0, count("deleted", 0))
            retries.require_another("other writers committed first every time; try again later")

    def _edited(
        self,
        requested: Callable[[Snapshot], UpsertRequest],
        transaction: tuple[str, int] | None,
    ) -> Upserted:
        require_changeable(self.snapshot.manifest)
        named = checked_transaction(transaction)
        self._snapshot, done = self._upserter.edit(self.snapshot, requested, named)
        if done.merged:
            self._upkeep()
        return done


def named_columns(schema: TableSchema) -> pa.Schema:
    """Return the columns that readers see, under each of their names: stored and source ones."""
    shown = frozenset(schema.shown)
    names = {name: stored for name, stored in stored_names(schema).items() if stored in shown}
    return pa.schema([schema.arrow.field(of).with_name(name) for name, of in names.items()])


def _condition(where: Condition, schema: TableSchema) -> pc.Expression:
    return (
        where if isinstance(where, pc.Expression) else edit_condition(where, named_columns(schema))
    )


def _predicate(where: Condition | None) -> dict[str, str]:
    """The condition's text for the history, without values."""
    return {"predicate": without_values(where)} if isinstance(where, str) else {}
