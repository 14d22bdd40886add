"""Parks tables for an operator, and lets parked tables continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.sources.operator_directions import LowerPositions, onward
from lakesplice.table.protocol.intents import Redirect


def unpark(
    table: CommandTable, offsets: Offsets, stated: LowerPositions | None, topic: str
) -> CommandResult:
    """Let a parked table, or one of its topics, continue: at `offsets` given by partition, else
    where it stopped; `stated` says what positions that fell back are. Blocks. `ParkedTableError` if
    it isn't parked; `UsageError`.
    """

    def direction() -> Redirect:
        manifest = table.snapshot.manifest
        parked = _parked(manifest, topic)
        source = manifest.sources.get(parked.topic) if manifest.is_merged else manifest.source
        if offsets or stated is not None:
            if source is None:
                raise UsageError("the table has no topic, so it has no offsets")
            source = onward(source, parked, offsets, stated)
        if manifest.parked is not None or source is None:
            return table.redirected(source=source)
        return table.redirected(source=replace(source, parked=None))

    table.commit_with_retries(direction)
    return CommandResult(
        f"unparked in version {table.snapshot.version}; ingest continues while the service runs",
        {"version": table.snapshot.version},
    )


def park(table: CommandTable, why: str, topic: str) -> CommandResult:
    """Park a table, or one of its topics, until it is unparked. Blocks. `ParkedTableError` if it is
    parked already; `UsageError` if it has no such topic, or is fed by hand.
    """
    table.history_parameters = {**table.history_parameters, "why": why}

    def direction() -> Redirect:
        manifest = table.snapshot.manifest
        source = _source_to_park(manifest, topic)
        reason = ParkReason(ParkCode.BY_HAND, f"{why}; `lakesplice unpark` lets it continue", topic)
        if source is None:
            return table.redirected(parked=reason)
        return table.redirected(source=replace(source, parked=reason))

    table.commit_with_retries(direction)
    return CommandResult(
        f"parked in version {table.snapshot.version}", {"version": table.snapshot.version}
    )


def _source_to_park(manifest: Manifest, topic: str) -> SourceState | None:
    """Return the source of a topic that is parked alone; None if the whole table is."""
    if not manifest.sources:
        raise UsageError("the table is fed by hand, so it takes no changes of a topic")
    if topic and topic not in manifest.sources:
        raise UsageError("the table has no such topic", topic=topic, topics=list(manifest.sources))
    known = manifest.parked_for(topic) if topic else manifest.parked
    if known is not None:
        raise ParkedTableError("it is parked already", code=known.code, detail=known.detail)
    return manifest.sources[topic] if topic and manifest.is_merged else None


def _parked(manifest: Manifest, topic: str) -> ParkReason:
    """Return what unparking ends: why the table is parked, else one of its topics."""
    if topic and topic not in manifest.sources:
        raise UsageError("the table has no such topic", topic=topic, topics=list(manifest.sources))
    if manifest.parked is not None:
        return manifest.parked
    meant = [parked for parked in manifest.parkings if topic in ("", parked.topic)]
    if not meant:
        raise ParkedTableError("the table isn't parked; nothing to do")
    if len(meant) > 1:
        topics = [parked.topic for parked in meant]
        raise UsageError("several topics are parked; say which with --topic", topics=topics)
    return meant[0]


def park_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError` if it doesn't."""
    return {"why": str(arguments["why"]), "topic": str(arguments["topic"])}


def unpark_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError`, `TypeError` or `ValueError` if it doesn't."""
    offsets = {int(number): int(offset) for number, offset in arguments["offsets"]}
    stated = arguments["stated"]
    return {
        "offsets": offsets,
        "stated": None if stated is None else LowerPositions(stated),
        "topic": str(arguments.get("topic", "")),
    }
