"""Changes of a table's constraints; each is one commit.

Contracts and errors are those of the methods of `HandFedTable` that call these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest, UpsertState
from lakesplice.planning.by_hand.constraints import (
    broken_constraints,
    checked_name,
    parsed_check,
    require_unbroken,
)
from lakesplice.table.by_hand.upserts.upsert_request import require_fed_by_hand
from lakesplice.table.by_hand.writer import Writer
from lakesplice.table.protocol.intents import SetConstraints
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table


def add_check(writer: Writer, name: str, condition: str) -> None:
    """Add a condition that is true for every row."""
    name = checked_name(name)

    def changed(now: UpsertState) -> UpsertState:
        if name in now.checks:
            raise UsageError("the table has a constraint of this name; drop it", name=name)
        schema = writer.snapshot.manifest.schema
        after = replace(now, checks={**now.checks, name: condition})
        alone = replace(now, checks={name: condition}, required=())
        columns = sorted(parsed_check(condition, schema)[1]) or list(schema.key)
        rows = _open_table(writer).read(columns=columns)
        require_unbroken(broken_constraints(rows, alone, schema), alone)
        return after

    _change(writer, changed)


def drop_check(writer: Writer, name: str) -> None:
    """End a check."""
    name = checked_name(name)

    def changed(now: UpsertState) -> UpsertState:
        if name not in now.checks:
            raise UsageError("the table has no such constraint", known=sorted(now.checks))
        return replace(
            now, checks={other: text for other, text in now.checks.items() if other != name}
        )

    _change(writer, changed)


def require_column(writer: Writer, column: str, *, required: bool) -> None:
    """Let a column hold no null, or let it hold null again."""

    def changed(now: UpsertState) -> UpsertState:
        schema = writer.snapshot.manifest.schema
        if column not in schema.shown or column in schema.key:
            raise UsageError(
                "give a column that isn't in the key", column=column, columns=schema.shown
            )
        others = tuple(name for name in now.required if name != column)
        if not required:
            return replace(now, required=others)
        _require_no_null(_open_table(writer), column)
        return replace(now, required=(*others, column))

    _change(writer, changed)


def _require_no_null(table: Table, column: str) -> None:
    is_null = pc.field(column).is_null()
    if rows := table.read(columns=[], filter=is_null).num_rows:
        raise UsageError("rows have null in the column", column=column, rows=rows)
    view = View.READ_OPTIMISED
    found = table.read(view, columns=[], filter=is_null, include_deleted=True)
    if rows := found.num_rows:
        raise UsageError(
            "base files have null in the column, in rows that were deleted or whose change"
            " waits; call compact, and purge(older_than_hours=0)",
            column=column,
            rows=rows,
        )


def _open_table(writer: Writer) -> Table:
    return Table(writer.store, snapshot=writer.snapshot)


def _change(writer: Writer, changed: Callable[[UpsertState], UpsertState]) -> None:
    def plan(manifest: Manifest) -> SetConstraints | None:
        now = require_fed_by_hand(manifest)
        after = changed(now)
        if after == now:
            return None
        return SetConstraints(manifest.generation, now.position, after)

    writer.commit_with_retries(plan)
