"""The request of a write to a table fed by hand, its result, and the state of the table before and
after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest, UpsertState
from lakesplice.model.moments import epoch_us
from lakesplice.table.protocol.ports import Clock


class Operation(StrEnum):
    """The name of a write in the history; Delta's name if Delta has the same operation."""

    UPSERT = "UPSERT"
    DELETE = "DELETE"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    OVERWRITE = "OVERWRITE"


@dataclass(frozen=True)
class UpsertRequest:
    """Rows to write and keys to delete, in stored names and types.

    Each table of `rows` has the key and any other columns; a row of another table may have others.
    `fills` allows new rows without all columns. `merge` says whether changes of known rows are
    merged into base files at once; with None the upsert decides. `parameters` are for the history.
    """

    rows: tuple[pa.Table, ...]
    deleted: pa.Table
    fills: bool = False
    merge: bool | None = None
    operation: Operation = Operation.UPSERT
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upserted:
    """The result of a write; `version` contains it.

    `repeated`: its transaction had been applied before, so nothing was done. `deleted` counts the
    rows that were deleted; keys that no row has are skipped. `skipped` counts rows that an
    insert-only table already had, or that came earlier in the same call. `merged`: changes of known
    rows are in the base files already, so every reader sees them.
    """

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    repeated: bool = False
    skipped: int = 0
    merged: bool = False


def require_fed_by_hand(manifest: Manifest) -> UpsertState:
    """Return the table's upsert state; `UsageError` if a source feeds the table."""
    if manifest.upserts is None:
        raise UsageError(
            "the table is fed by a source; change its rows there, or merge its change feed into a"
            " table that is fed by hand",
            topic=next(iter(manifest.sources), None),
        )
    return manifest.upserts


def require_changeable(manifest: Manifest) -> UpsertState:
    """Return the upsert state of a table whose rows may be changed by hand; `UsageError` if it is
    insert-only, or a source feeds it.
    """
    upserts = require_fed_by_hand(manifest)
    if upserts.insert_only:
        raise UsageError("the table is insert-only, so its rows can't be changed or deleted")
    return upserts


def is_repeated(upserts: UpsertState, transaction: tuple[str, int] | None) -> bool:
    """Whether this transaction, or one of the application with a higher number, was applied
    before.
    """
    if transaction is None:
        return False
    application, number = transaction
    applied = upserts.transactions.get(application)
    return applied is not None and number <= applied


def next_state(
    before: UpsertState, position: int, transaction: tuple[str, int] | None, *, has_deletes: bool
) -> UpsertState:
    """Return the state of a table after an upsert at a position."""
    state = replace(before, position=position, has_deleted=before.has_deleted or has_deletes)
    if transaction is None:
        return state
    application, number = transaction
    return replace(state, transactions={**state.transactions, application: number})


def now_scalar(clock: Clock) -> pa.Scalar:
    """Return the clock's time in the type of `_source_ts`."""
    return pa.scalar(epoch_us(clock.now_ms()), pa.timestamp("us", tz="UTC"))
