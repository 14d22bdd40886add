"""Which dead letters a command means, and how the records in them are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.config import Settings
from lakesplice.formats.events import declare
from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.planning.intake.line import RecordReading
from lakesplice.table.files.dead_letters import LetterSelection


def letter_arguments(chosen: LetterSelection) -> dict[str, Any]:
    """Return the letters meant as a request's arguments."""
    return {
        "places": sorted(chosen.places),
        "reasons": sorted(chosen.reasons),
        "topic": chosen.topic,
    }


def chosen_letters(arguments: Mapping[str, Any]) -> LetterSelection:
    """Read `letter_arguments` back."""
    places = frozenset((int(number), int(offset)) for number, offset in arguments["places"])
    reasons = frozenset(str(reason) for reason in arguments["reasons"])
    return LetterSelection(places, reasons, str(arguments.get("topic", "")))


def reading_of(
    settings: Settings, name: TableName, history: TypeHistory | None = None
) -> RecordReading:
    """Return how the configuration says that the records of a table of the source are read;
    `history` has the types that the source described elsewhere.
    """
    entry = settings.table(name)
    return RecordReading(
        table=name,
        declared=declare(entry.columns) if entry is not None and entry.columns else None,
        format=settings.format(name),
        mappings=entry.type_mapping if entry is not None else (),
        key=settings.key(name),
        history=history,
        shape=settings.shape(name),
        not_inserts=settings.not_inserts(name),
        policy=settings.policy(name),
    )
