"""The command that erases rows, as the driver of a table executes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.errors import UsageError
from lakesplice.planning.keys.requested_key import KeyValues
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.stores import log_keeper, open_sink
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.upkeep.erasing.erasure import Erased, ErasureTools, erase
from lakesplice.table.upkeep.erasing.found_parts import WantedKeys

KEYS_MAX = 1_000_000


def keys_in(text: str) -> list[KeyValues]:
    """Read keys, one per line: a value, an array of the key columns' values in their order, or an
    object of them by name, in JSON; a line that isn't JSON is a text, as it stands. Raises
    `UsageError` if there are none or too many.
    """
    keys: list[KeyValues] = []
    # `splitlines` also ends a line at characters that keys may contain, such as U+2028.
    for line in (part.removesuffix("\r") for part in text.split("\n")):
        if line.strip():
            try:
                keys.append(json.loads(line))
            except ValueError:
                keys.append(line)
    if not keys or len(keys) > KEYS_MAX:
        raise UsageError("give a file with a key per line", keys=len(keys), most=KEYS_MAX)
    return keys


def erase_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the arguments of a request."""
    return {"keys": list(given["keys"]), "also_live": bool(given["also_live"])}


def erase_rows(table: CommandTable, keys: Sequence[KeyValues], *, also_live: bool) -> CommandResult:
    """Erase the rows of keys, and all older versions; raises the errors of `erase`."""
    tools = ErasureTools(
        store=table.store,
        commit=table.commit,
        generation=table.generation,
        clock=table.clock,
        entropy=table.entropy,
        rewriter=best_rewriter(open_sink, open_scratch=ScratchFile),
        keeper=log_keeper(table.store),
        retries=table.retries,
        progress=table.progress,
    )
    wanted = WantedKeys.requested(table.snapshot.manifest.schema, keys)
    return result_of(erase(tools, table.snapshot, wanted, also_live=also_live))


def result_of(done: Erased) -> CommandResult:
    """Return what an erasure did, in words that name no key."""
    letters = f" and {done.dead_letters} dead letters" if done.dead_letters else ""
    text = (
        f"{done.rows} rows of {done.keys} keys erased{letters}; version {done.version} is the"
        f" only one left"
    )
    return CommandResult(text, asdict(done))
