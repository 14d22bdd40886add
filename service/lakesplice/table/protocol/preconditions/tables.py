"""Preconditions about a table as a whole: its driver, its version, its schema, what it keeps."""

from __future__ import annotations

from lakesplice.errors import FencedError
from lakesplice.table.protocol.intents import (
    ChangePins,
    EndVersions,
    Evolve,
    Expire,
    Intent,
    Redirect,
    ReplaceTable,
    Replay,
    Restore,
    SetChangeFeed,
    Swap,
)
from lakesplice.table.protocol.outcomes import Conflict, ConflictCode
from lakesplice.table.protocol.snapshot import Snapshot


def generation_is_current(now: Snapshot, intent: Intent) -> None:
    """No driver of a higher generation has committed; else `FencedError`."""
    if intent.generation < now.manifest.generation:
        raise FencedError(
            "a driver of a higher generation has committed; this one must stop",
            generation=intent.generation,
            current=now.manifest.generation,
        )


def nothing_was_committed(
    now: Snapshot, intent: Redirect | Replay | Restore | ReplaceTable | Swap
) -> Conflict | None:
    """The newest version is the one on which the intent was planned."""
    if now.version == intent.planned_on:
        return None
    return Conflict(
        ConflictCode.VERSION, f"version {now.version} now, planned on {intent.planned_on}"
    )


def schema_is_the_one_before(now: Snapshot, intent: Evolve) -> Conflict | None:
    """The present schema is the one that the new schema extends by one or more versions."""
    schema = now.manifest.schema
    before = intent.schema.at(schema.version)
    # A table without columns has no key yet, so the keys needn't be equal.
    extends = before.versions == schema.versions and before.columns == schema.columns
    if intent.schema.version > schema.version and extends:
        return None
    return Conflict(ConflictCode.SCHEMA, f"version {schema.version} is present now")


def feed_is_the_other_way(now: Snapshot, intent: SetChangeFeed) -> Conflict | None:
    """The change feed wasn't switched on or off already."""
    is_on = now.manifest.feed is not None
    return Conflict(ConflictCode.FEED, "it is so already") if is_on == intent.on else None


def retention_is_as_read(
    now: Snapshot, intent: Expire | ChangePins | EndVersions
) -> Conflict | None:
    """No other vacuum was committed, no older version was restored, and none was pinned."""
    same, detail = (
        now.manifest.retention == intent.read,
        "a vacuum, a restore or a pin came between",
    )
    return None if same else Conflict(ConflictCode.RETENTION, detail)
