"""Which dead letters a command means, and how the records in them are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.apps.registry import registry_of
from lakesplice.config import Settings
from lakesplice.formats.events import declare
from lakesplice.model.names import TableName
from lakesplice.planning.intake.late_records import IntakeRules
from lakesplice.table.files.dead_letters import Chosen
from lakesplice.table.ingest.dead_letter_replay import Reading


def letter_arguments(chosen: Chosen) -> dict[str, Any]:
    """Return the letters meant as a request's arguments."""
    return {
        "places": sorted(chosen.places),
        "reasons": sorted(chosen.reasons),
        "topic": chosen.topic,
    }


def chosen_letters(arguments: Mapping[str, Any]) -> Chosen:
    """Read `letter_arguments` back."""
    places = frozenset((int(number), int(offset)) for number, offset in arguments["places"])
    reasons = frozenset(str(reason) for reason in arguments["reasons"])
    return Chosen(places, reasons, str(arguments.get("topic", "")))


def reading_of(settings: Settings, name: TableName) -> Reading:
    """Return how the configuration says that the records of a table of the source are read."""
    entry = settings.table(name)
    return Reading(
        name,
        declare(entry.columns) if entry is not None and entry.columns else None,
        settings.format(name),
        mappings=entry.type_mapping if entry else (),
        key=settings.key(name),
        shape=settings.shape(name),
        rules=IntakeRules(settings.not_inserts(name), settings.policy(name)),
        schemas=registry_of(settings.schema_registry),
    )
