"""Commands that replay or drop the dead letters of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.apps.record_reading import registry_of
from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.table.files.dead_letters import DeadLetterSelection
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters


def selection_as_arguments(chosen: DeadLetterSelection) -> dict[str, Any]:
    """Return a selection of dead letters as a request's arguments."""
    return {
        "places": sorted(chosen.places),
        "reasons": sorted(chosen.reasons),
        "topic": chosen.topic,
    }


def replay_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read `selection_as_arguments` back."""
    places = frozenset(
        PartitionOffset(int(number), Offset(int(offset))) for number, offset in arguments["places"]
    )
    reasons = frozenset(str(reason) for reason in arguments["reasons"])
    return {"chosen": DeadLetterSelection(places, reasons, str(arguments.get("topic", "")))}


def drop_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read a selection, and why its letters are dropped."""
    return {**replay_arguments(arguments), "why": str(arguments["why"])}


def replay(table: CommandTable, chosen: DeadLetterSelection) -> CommandResult:
    """Replay the chosen dead letters. `UsageError` without settings, which say how records are
    read.
    """
    done = DeadLetterCounts()
    for topic in _topics(table, chosen):
        reading = table.reading(topic)
        registry = None if table.settings is None else registry_of(table.settings.schema_registry)
        done += _open_dead_letters(table, topic).replay(chosen, reading, registry)
    return _counted(done, "replayed")


def drop(table: CommandTable, chosen: DeadLetterSelection, why: str) -> CommandResult:
    """Drop the chosen dead letters; `why` is for the table's history."""
    table.history_parameters = {**table.history_parameters, "why": why}
    done = DeadLetterCounts()
    for topic in _topics(table, chosen):
        done += _open_dead_letters(table, topic).drop(chosen)
    return _counted(done, "dropped")


def _open_dead_letters(table: CommandTable, topic: str) -> OpenDeadLetters:
    return OpenDeadLetters(
        store=table.store,
        snapshot=table.snapshot,
        commit=table.commit,
        generation=table.generation,
        clock=table.clock,
        entropy=table.entropy,
        topic=topic,
    )


def _topics(table: CommandTable, chosen: DeadLetterSelection) -> list[str]:
    """The topics whose dead letters are selected; an offset belongs to one topic."""
    topics = list(table.snapshot.manifest.sources)
    if not topics:
        raise UsageError("the table is fed by hand and has no dead letters")
    if chosen.topic and chosen.topic not in topics:
        raise UsageError("the table has no such topic", topic=chosen.topic, topics=topics)
    if chosen.places and not chosen.topic and len(topics) > 1:
        raise UsageError("the table has several topics; say which with --topic", topics=topics)
    return [chosen.topic] if chosen.topic else topics


def _counted(letters: DeadLetterCounts, word: str) -> CommandResult:
    kept = f", {letters.kept} still can't be read and are kept" if letters.kept else ""
    values = {"letters": letters.removed, "kept": letters.kept}
    return CommandResult(f"{letters.removed} dead letters {word}{kept}", values)
