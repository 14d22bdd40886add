"""A filled shadow takes the place of its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.errors import MissingFileError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    VERIFIED_PARAMETER,
    read_shadow_plan,
    shadow_table,
    swap_into,
    swapped_version,
)
from lakesplice.table.protocol.shadow_store import close_shadow


def swap(table: CommandTable, shadow: str, verified: str = "") -> CommandResult:
    """Let a shadow take the table's place, fed up to where the table stands, and close it. The
    history says how it compared with the database, if it was `verified`.

    `UsageError` if there is no such shadow, or it isn't filled yet. May be called again.
    """
    try:
        plan = read_shadow_plan(table.store, shadow)
    except MissingFileError as error:
        raise UsageError(
            "the table has no such shadow; run the command that fills it again", shadow=shadow
        ) from error
    version = swapped_version(table.store, plan)
    if version is None:
        own = shadow_table(table.store, plan, table.clock, table.entropy)
        source = table.snapshot.manifest.sources.get(plan.topic)
        if table.feed is not None and source is not None:
            table.feed(own, _ends(own.source, source))
        assert own.snapshot is not None
        parameters = {SHADOW_PARAMETER: shadow}
        if verified:
            parameters[VERIFIED_PARAMETER] = verified
        table.history_parameters = {**table.history_parameters, **parameters}
        version = swap_into(
            table.store,
            own.snapshot,
            table.generation,
            table.snapshot,
            table.commit,
            table.retries(),
        ).version
    close_shadow(table.store, shadow)
    return CommandResult(f"the new content is version {version}", {"version": version})


def swap_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of a swap; `KeyError` if it names no shadow."""
    return {"shadow": str(arguments["shadow"]), "verified": str(arguments.get("verified", ""))}


def _ends(own: SourceState, live: SourceState) -> dict[int, Offset]:
    """Return where a shadow has to stand to be as far as its table in every partition."""
    ends = {at: state.next_offset for at, state in own.partitions.items()}
    for at, state in live.partitions.items():
        ends[at] = Offset(max(state.next_offset, ends.get(at, 0)))
    return ends
