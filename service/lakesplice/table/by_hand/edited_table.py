"""`EditedTable`: a table fed by hand whose rows are also chosen by a condition, not only by key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import TableSchema
from lakesplice.planning.filtering.conditions import parsed_condition
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.input_rows import all_rows
from lakesplice.table.by_hand.upsert import Upserted, UpsertRequest, require_fed_by_hand
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table


class EditedTable(HandFedTable):
    """A table fed by hand with deletes by a condition."""

    def delete(self, where: str | pc.Expression, *, merge: bool | None = None) -> Upserted:
        """Delete the rows that match a condition, in one commit; a row for which it is null stays.

        `where` is SQL, columns compared with literals (`price > 10 AND name LIKE 'a%'`), or an
        Arrow expression; it may use stored names. The real-time view is scanned. If another upsert
        commits meanwhile, it is scanned again, at most 20 times. `merge` is as for `upsert`.

        Blocks; memory holds the keys of these rows. Nothing is committed if no row matches.
        `UsageError` for a condition that doesn't fit the table, an insert-only table, and a table
        that a source feeds: delete the rows there, or read its change feed into a table that is fed
        by hand. `ParkedTableError`, `RetryableError`, `StorageError` as for `upsert`.
        """
        if require_fed_by_hand(self.snapshot.manifest).insert_only:
            raise UsageError("the table is insert-only, so its rows can't be deleted")

        def found(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            rows = Table(self._store, snapshot=snapshot)
            keys = rows.read(columns=schema.key, filter=_condition(where, schema))
            deleted = all_rows(keys, schema, schema.key)
            return UpsertRequest(all_rows(None, schema, ()), deleted, merge=merge)

        self._snapshot, done = self._upserter.edit(self.snapshot, found)
        if done.merged:
            self._upkeep()
        return done


def _condition(where: str | pc.Expression, schema: TableSchema) -> pc.Expression:
    if isinstance(where, pc.Expression):
        return where
    fields = [schema.arrow.field(name) for name in schema.shown]
    return parsed_condition(where, pa.schema(fields))
