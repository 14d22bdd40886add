"""What a verification found, noted in the table's history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.table.protocol.intents import Note

VERIFY = "VERIFY"
_TEXTS = ("outcome", "source", "binlog", "method", "share")
_COUNTS = ("rows", "different", "unsettled")


def note_verification(
    table: CommandTable, texts: Mapping[str, str], counts: Mapping[str, int]
) -> CommandResult:
    """Commit a version in which nothing changes, and whose entry says what was found."""
    table.history_parameters = {**table.history_parameters, **texts}
    table.commit_with_retries(lambda: Note(table.generation, VERIFY, counts))
    version = table.snapshot.version
    return CommandResult(f"the history has it as version {version}", {"version": version})


def verified_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError`, `TypeError` or `ValueError` if it doesn't."""
    return {
        "texts": {name: str(arguments[name]) for name in _TEXTS},
        "counts": {name: int(arguments[name]) for name in _COUNTS},
    }
