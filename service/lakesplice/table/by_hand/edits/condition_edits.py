"""Edits of rows that a condition chooses: what a delete, update or overwrite requests of a version.

Each function returns a request that is made for one version, and made again for a newer one if
another writer commits first. Contracts and errors are those of the methods of `HandFedTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.assignments import assignments
from lakesplice.planning.by_hand.hand_fed_changes import same_keys
from lakesplice.planning.by_hand.overwriting import (
    require_all_columns,
    require_inside,
    require_none_elsewhere,
)
from lakesplice.planning.filtering.expressions import edit_condition, without_values
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.by_hand.input_rows import all_rows
from lakesplice.table.by_hand.upserts.upsert_request import Operation, UpsertRequest
from lakesplice.table.by_hand.writer import Writer
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table

Condition: TypeAlias = str | pc.Expression
"""SQL over the table's columns, or an Arrow expression."""

Requested: TypeAlias = Callable[[Snapshot], UpsertRequest]
"""Returns what is requested of a version."""


def deletion(writer: Writer, where: Condition, merge: bool | None) -> Requested:
    """Delete the rows that match a condition."""

    def requested(snapshot: Snapshot) -> UpsertRequest:
        schema = snapshot.manifest.schema
        rows = Table(writer.store, snapshot=snapshot)
        keys = rows.read(columns=schema.key, filter=_condition(where, schema))
        return UpsertRequest(
            (),
            all_rows(keys, schema, schema.key),
            merge=merge,
            operation=Operation.DELETE,
            parameters=_predicate(where),
        )

    return requested


def update(
    writer: Writer, values: Mapping[str, object], where: Condition | None, merge: bool | None
) -> Requested:
    """Give columns new values in the rows that match a condition, or in all rows."""

    def requested(snapshot: Snapshot) -> UpsertRequest:
        schema = snapshot.manifest.schema
        asked = assignments(values, named_columns(schema), schema)
        columns = list(dict.fromkeys([*schema.key, *sorted(asked.needed)]))
        condition = None if where is None else _condition(where, schema)
        rows = Table(writer.store, snapshot=snapshot).read(columns=columns, filter=condition)
        keys = {name: rows.column(name) for name in schema.key}
        return UpsertRequest(
            (all_rows(pa.table({**keys, **asked.of(rows)}), schema, ()),),
            all_rows(None, schema, ()),
            merge=merge,
            operation=Operation.UPDATE,
            parameters=_predicate(where),
        )

    return requested


def overwrite(
    writer: Writer, rows: pa.Table, where: Condition | None, merge: bool | None
) -> Requested:
    """Replace the rows that match a condition, or all rows, by others."""

    def requested(snapshot: Snapshot) -> UpsertRequest:
        schema = snapshot.manifest.schema
        given = all_rows(rows, schema, ())
        require_all_columns(given, schema)
        condition = None if where is None else _condition(where, schema)
        table = Table(writer.store, snapshot=snapshot)
        keys = all_rows(table.read(columns=schema.key, filter=condition), schema, schema.key)
        new, old = key_hash(given, schema), key_hash(keys, schema)
        known, replaced = same_keys(old, new)
        if condition is not None:
            require_inside(given, condition, schema)
            require_none_elsewhere(writer.live(snapshot, new), replaced)
        gone = np.ones(keys.num_rows, np.bool_)
        gone[known] = False
        return UpsertRequest(
            (given,),
            keys.filter(pa.array(gone)),
            merge=merge,
            operation=Operation.OVERWRITE,
            parameters=_predicate(where),
        )

    return requested


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
