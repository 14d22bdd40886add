"""`HandFedTable`: a table that can be read and, unless a source feeds it, written."""

from __future__ import annotations

from collections.abc import Mapping

from lakesplice.errors import UsageError
from lakesplice.planning.by_hand.merge_clauses import Action, Clause
from lakesplice.planning.by_hand.merge_clauses import Rows as MergedRows
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.table.by_hand.constraint_changes import add_check, drop_check, require_column
from lakesplice.table.by_hand.edits.condition_edits import Condition, deletion, overwrite, update
from lakesplice.table.by_hand.edits.merge import merge_into
from lakesplice.table.by_hand.edits.merge_builder import MergeBuilder
from lakesplice.table.by_hand.edits.replacement import replace_table
from lakesplice.table.by_hand.input_rows import Rows, all_rows, table_of
from lakesplice.table.by_hand.upkept_table import UpkeptTable
from lakesplice.table.by_hand.upserts.upsert_request import (
    Upserted,
    UpsertRequest,
    require_changeable,
    require_fed_by_hand,
)
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Moment, requested_version
from lakesplice.table.upkeep.restore import restore


class HandFedTable(UpkeptTable):
    """A `Table` that can also be written, unless a source feeds it.

    Each call that writes opens the version that it made. Other threads, processes and machines may
    call the same table at the same time; one object is used by one thread at a time.

    Calls that write block. They raise `UsageError` for a table that a source feeds,
    `RetryableError` if other writers always committed first, and `StorageError`. If rows break
    constraints, the `UsageError` has their number for each constraint, and nothing has changed.
    """

    @property
    def transactions(self) -> Mapping[str, int]:
        """Per application the highest transaction that the open version has; see `upsert`."""
        return dict(require_fed_by_hand(self.snapshot.manifest).transactions)

    @property
    def constraints(self) -> Mapping[str, str]:
        """The condition of each check of the open version, by its name."""
        return dict(require_fed_by_hand(self.snapshot.manifest).checks)

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns besides the key that hold no null in the open version."""
        return require_fed_by_hand(self.snapshot.manifest).required

    def upsert(
        self,
        changes: Rows | None = None,
        *,
        delete: Rows | None = None,
        transaction: tuple[str, int] | None = None,
        fill_new_rows: bool = False,
        merge: bool | None = None,
        merge_schema: bool = False,
    ) -> Upserted:
        """Write whole or partial rows by key, and delete rows by key, in one commit.

        `changes` has the key and any other columns, by stored or source names. Rows with a known
        key get these values and keep their others; rows with a new key are inserted. A new row
        needs every column, or `fill_new_rows`, which stores null in columns that `changes` lacks.
        `delete` has the keys to delete; its other columns are ignored, and so are keys that no row
        has. An insert-only table accepts new rows only: rows with a known key, and all but the
        first with a new key, are skipped and counted, and `delete` is refused.

        `transaction` is (application, number) with rising numbers. If the number isn't above the
        application's last one, the call does nothing; so a call whose outcome is unknown can be
        repeated.

        With `merge_schema` the table first gets columns that it lacks, and wider types where those
        of `changes` are wider, in a commit of its own.

        The real-time view shows the result at once. The read-optimised view shows new rows at once,
        and the rest after `compact`. With `merge` every reader sees all of it at once: the base
        files of the rows are rewritten with it, and with the changes that waited for them, unless
        no value in a file changes. If `merge` isn't given, this is also done when there are many
        rows, so close together that waiting would save nothing; the history has the reason.

        Blocks; `changes` is in memory. If other writers commit meanwhile, the rows may be located
        and written again, at most 20 times; then `RetryableError`, and nothing was changed.
        `UsageError` if a key is given twice or is null, a column or its values don't fit, or a
        source feeds the table; `ParkedTableError`; `StorageError` with the effect unknown.
        """
        if require_fed_by_hand(self.snapshot.manifest).insert_only and delete is not None:
            raise UsageError("the table is insert-only, so its rows can't be deleted")
        rows, gone = (None if given is None else table_of(given) for given in (changes, delete))
        if merge_schema and rows is not None:
            self._writer.extend_schema(rows.schema, transaction)

        def requested(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            written, deleted = all_rows(rows, schema, ()), all_rows(gone, schema, schema.key)
            return UpsertRequest((written,), deleted, fill_new_rows, merge)

        return self._writer.change_rows(requested, transaction)

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
        require_changeable(self.snapshot.manifest)
        return self._writer.change_rows(deletion(self._writer, where, merge), transaction)

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
        anything else is the value itself. docs/edits.md lists what SQL may have. A key column
        can't be set. The rest is as for `delete`, also rescans and errors.

        Memory holds the keys and the new values. Raises `UsageError`, and changes no row, if a
        value can't be computed or its column can't hold it exactly.
        """
        require_changeable(self.snapshot.manifest)
        return self._writer.change_rows(update(self._writer, set, where, merge), transaction)

    def insert(self, rows: Rows, *, transaction: tuple[str, int] | None = None) -> Upserted:
        """Insert rows, in one commit; raises `UsageError` if the table already has the key of one.

        `rows` need every column, and have no others. The rest is as for `delete`.
        """
        given = table_of(rows)
        known = stored_names(self.refresh().snapshot.manifest.schema)
        if unknown := [name for name in given.column_names if name not in known]:
            raise UsageError("the table has no such column; leave it out", columns=unknown)
        clauses = (
            Clause(MergedRows.MATCHED, Action.REFUSE),
            Clause(MergedRows.NOT_MATCHED, Action.INSERT),
        )
        return self.merge(given).with_clauses(clauses).execute(transaction=transaction)

    def overwrite(
        self,
        rows: Rows,
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
        given = table_of(rows)
        if overwrite_schema:
            if where is not None or merge_schema:
                raise UsageError(
                    "overwrite_schema replaces all rows and all columns; leave out where and"
                    " merge_schema"
                )
            if (done := replace_table(self._writer, given, transaction)) is not None:
                return done
        require_changeable(self.snapshot.manifest)
        if merge_schema:
            self._writer.extend_schema(given.schema, transaction)
        return self._writer.change_rows(overwrite(self._writer, given, where, merge), transaction)

    def merge(self, source: Rows) -> MergeBuilder:
        """Begin a merge of a source's rows, which are matched by the table's key; add its clauses,
        then call `execute`:

            table.merge(changes).when_matched_delete("source.op = 'd'").when_matched_update()
                .when_not_matched_insert().execute()

        The source needs the key columns, and may have others than the table. Memory holds it, and
        the columns of the table that clauses read. `UsageError` if a key is null.
        """
        return merge_into(self._writer, source)

    def add_constraint(self, name: str, condition: str) -> int:
        """Require that a condition is true for every row from now on. `condition` is SQL as in
        `Table.update`; as in Delta, null counts as false.

        Reads the columns of the condition. `UsageError` if a row breaks it, it doesn't fit the
        table, or another check has the name.
        """
        add_check(self._writer, name, condition)
        return self.version

    def drop_constraint(self, name: str) -> int:
        """End a check; `UsageError` if the table has no such check."""
        drop_check(self._writer, name)
        return self.version

    def set_required(self, column: str, *, required: bool = True) -> int:
        """Forbid nulls in a column from now on (NOT NULL), or allow them again.

        Reads the column. `UsageError` if a row has null there, also one that was deleted, or one
        whose change isn't in a base file yet: other readers would meet them.
        """
        require_column(self._writer, column, required=required)
        return self.version

    def restore(self, version: int | None = None, *, as_of: Moment | None = None) -> int:
        """Give the table the rows, schema and state of an older version, in one commit.

        `version` or `as_of` choose it, as for `read`. Returns the new version, which is then open;
        the versions between them stay. Transactions since then count as not applied. Blocks.
        `VersionNotFoundError` if the version is past its retention. `UsageError` for the newest
        version, and for a table that a source feeds: `lakesplice restore` restores it while its
        service is stopped. `RetryableError`, `StorageError`.
        """
        self._writer.newest()
        wanted = requested_version(self._store, version, as_of)
        if wanted is None:
            raise UsageError("say which version to restore: give a version, or a time")
        writer = self._writer
        restore(self._store, self.snapshot, wanted, writer.commit, retries=writer.retries())
        return self.version
