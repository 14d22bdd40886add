"""The command that lays a table out by some columns, as the driver of a table executes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.storage.copying import ScratchFile
from lakesplice.table.by_hand.results import Clustered
from lakesplice.table.upkeep.clustering.clustering import Clustering, columns_of


def optimize_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the arguments of a request."""
    return {"by": [str(name) for name in given["by"]], "full": bool(given.get("full", False))}


def optimize(table: CommandTable, by: Sequence[str], *, full: bool = False) -> CommandResult:
    """Lay files out by columns until no file is new; raises the errors of `columns_of` and
    `Clustering.plan`.
    """
    clustering = Clustering(
        table.store,
        columns_of(table.snapshot.manifest, by),
        table.entropy,
        whole=full,
        open_scratch=ScratchFile,
        progress=table.progress,
    )

    done = Clustered(table.snapshot.version)
    while True:
        made = table.commit_with_retries(lambda: clustering.plan(table.snapshot, table.generation))
        if made is None:
            return result_of(done)
        done = done.with_more(table.snapshot.version, made.counts)


def result_of(done: Clustered, *, dry_run: bool = False) -> CommandResult:
    """Return what was done, or would be, in words."""
    if not done.files:
        text = "every file is laid out; nothing to do (--full lays all of them out again)"
    elif dry_run:
        text = f"{done.files} files with {done.rows} rows would be laid out next"
    else:
        text = (
            f"{done.rows} rows of {done.files} files laid out in {done.files_written} files, in"
            f" version {done.version}"
        )
    return CommandResult(text, asdict(done))
