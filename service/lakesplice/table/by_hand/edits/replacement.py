"""Replacements: all rows and the schema of a table fed by hand give way to others, in one commit.

    schema of the given rows -> constraints -> base files and an index run -> commit

Nothing of the table's present files is read or kept, so the new schema may differ from the
present one in any way.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.manifest import Manifest, UpsertState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.constraints import (
    broken_constraints,
    parsed_check,
    require_unbroken,
)
from lakesplice.planning.by_hand.hand_fed_changes import checked_transaction
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.rows.row_images import require_feedable
from lakesplice.planning.shape.stats_columns import bounded
from lakesplice.table.by_hand.input_rows import all_rows
from lakesplice.table.by_hand.new_table import Tools
from lakesplice.table.by_hand.upserts.new_rows import write_new_rows
from lakesplice.table.by_hand.upserts.upsert_request import (
    Upserted,
    is_repeated,
    next_state,
    now_scalar,
    require_changeable,
    require_fed_by_hand,
)
from lakesplice.table.by_hand.writer import Writer
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import ReplaceTable
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table


def replace_table(
    writer: Writer, rows: pa.Table, transaction: tuple[str, int] | None
) -> Upserted | None:
    """Replace all rows and the schema by those of `rows`; return None if the table has these
    columns already. Errors as `HandFedTable.overwrite`.
    """
    named = checked_transaction(transaction)
    retries = writer.retries()
    while True:
        snapshot = writer.refresh()
        if is_repeated(require_changeable(snapshot.manifest), named):
            return Upserted(writer.version, repeated=True)
        intent = replacement(writer.store, snapshot, rows, named, writer.tools)
        if intent is None:
            return None
        if isinstance(writer.commit(intent), Committed):
            writer.tidy()
            count = intent.counts.get
            return Upserted(writer.version, count("inserted", 0), 0, count("deleted", 0))
        retries.require_another()


def replacement(
    store: Store,
    snapshot: Snapshot,
    rows: pa.Table,
    transaction: tuple[str, int] | None,
    tools: Tools,
) -> ReplaceTable | None:
    """Write rows, and return the intent after which a table has only them and their columns; None
    if it has these columns already.

    Blocks. `UsageError` if there is no such schema, a key is null or occurs twice, rows break a
    constraint, or the table was adopted; `ParkedTableError`.
    """
    manifest = snapshot.manifest
    upserts = require_fed_by_hand(manifest)
    schema = _schema_of(rows.schema, manifest.schema)
    if schema is None:
        return None
    _require_replaceable(manifest, schema)
    given = all_rows(rows, schema, ())
    _require_constraints(given, upserts, schema)
    position = snapshot.version + 1
    new = write_new_rows(store, [given], position, now_scalar(tools.clock), schema, tools.entropy)
    counts = {
        "inserted": given.num_rows,
        "deleted": Table(store, snapshot=snapshot).read(columns=[]).num_rows,
    }
    state = next_state(upserts, position, transaction, has_deletes=False)
    return ReplaceTable(
        generation=manifest.generation,
        planned_on=snapshot.version,
        schema=schema,
        upserts=replace(state, has_deleted=False),
        files=new.files,
        runs=new.runs,
        counts={name: count for name, count in counts.items() if count},
    )


def _schema_of(given: pa.Schema, present: TableSchema) -> TableSchema | None:
    names = stored_names(present)
    stored = {names.get(name, name): name for name in given.names}
    absent = [name for name in present.key if name not in stored]
    if absent:
        raise UsageError("rows that replace others need the table's key", absent=absent)
    schema = hand_fed_schema(given, [stored[name] for name in present.key])
    shown = [column for column in present.columns if not column.hidden]
    if [(c.source_name, c.type, c.source_type) for c in schema.columns] == [
        (c.source_name, c.type, c.source_type) for c in shown
    ]:
        return None
    by_id = present.by_id
    schema = replace(schema, bloom_filters=present.bloom_filters)
    return bounded(schema, [by_id[number].source_name for number in present.bounded])


def _require_replaceable(manifest: Manifest, schema: TableSchema) -> None:
    if manifest.parked is not None:
        raise ParkedTableError("the table is parked", reason=manifest.parked.detail)
    if manifest.schema.adopted:
        raise UsageError("an adopted table can't get other columns; create a new table")
    if manifest.feed is not None:
        require_feedable(schema)


def _require_constraints(rows: pa.Table, upserts: UpsertState, schema: TableSchema) -> None:
    absent = sorted(set(upserts.required) - set(schema.shown))
    if absent:
        raise UsageError(
            "a required column is gone; call set_required(column, required=False) first",
            columns=absent,
        )
    for name, condition in upserts.checks.items():
        try:
            parsed_check(condition, schema)
        except UsageError as error:
            raise UsageError(
                "a constraint doesn't fit the new columns; drop it first",
                name=name,
                cause=str(error),
            ) from error
    require_unbroken(broken_constraints(rows, upserts, schema), upserts)
