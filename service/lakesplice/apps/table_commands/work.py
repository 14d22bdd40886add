"""What commands do to a table; its driver executes them, or the command itself if no driver runs.

Each may be executed twice, except those of `ONCE`: who executes one of these again, after a driver
died before it answered, looks into the table's history first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lakesplice.apps.table_commands.command_table import CommandResult, CommandTable
from lakesplice.apps.table_commands.dead_letters import (
    drop,
    drop_arguments,
    replay,
    replay_arguments,
)
from lakesplice.apps.table_commands.erasing import erase_arguments, erase_rows
from lakesplice.apps.table_commands.optimizing import optimize, optimize_arguments
from lakesplice.apps.table_commands.parking import (
    park,
    park_arguments,
    unpark,
    unpark_arguments,
)
from lakesplice.apps.table_commands.repairing import repair, repair_arguments
from lakesplice.apps.table_commands.resetting import reset, reset_arguments
from lakesplice.apps.table_commands.swapping import swap, swap_arguments
from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.compaction import tasks, work
from lakesplice.planning.upkeep.file_merge import FILE_MERGE_POLICY, plan_file_merge
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.stores import open_sink
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.intents import FileMerge, Note, Purge, Redirect, Splice
from lakesplice.table.upkeep.compact import compact_files, splice_of
from lakesplice.table.upkeep.file_merge import file_merge, merge_base_files
from lakesplice.table.upkeep.index_check import rebuild
from lakesplice.table.upkeep.pins import pin, unpin
from lakesplice.table.upkeep.purge import PurgeRules, purge
from lakesplice.table.upkeep.restore import restore
from lakesplice.table.upkeep.vacuum import time_for_deletion, vacuum

PARK, UNPARK, RESTORE, REBUILD = "park", "unpark", "restore", "index rebuild"
VACUUM, COMPACT, MERGE, PURGE = "vacuum", "compact", "merge", "purge"
REPLAY, DROP, RESET = "dlq replay", "dlq drop", "reset"
PIN, UNPIN = "pin", "unpin"
SWAP = "swap"
VERIFIED, REPAIR = "verified", "repair"
ERASE, OPTIMIZE = "erase", "optimize"
ONCE = frozenset((PARK, UNPARK, RESTORE, RESET, UNPIN, SWAP))
# The operation of `note_verification` in the history, and what its entry says.
VERIFY, VERIFY_SHADOW = "VERIFY", "VERIFY SHADOW"
_SHADOW = "shadow"
_OPTIONAL_TEXTS = (_SHADOW, "not_compared")
_TEXTS = ("outcome", "source", "binlog", "method", "share")
_COUNTS = ("rows", "different", "unsettled")
_TASK_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of command: `read` makes of a request's arguments those of `work`."""

    read: Callable[[Mapping[str, Any]], dict[str, Any]]
    work: Callable[..., CommandResult]


def execute(command: str, table: CommandTable, arguments: Mapping[str, Any]) -> CommandResult:
    """Do what a command asks of a table. Blocks, some for long.

    `UsageError` for a command or arguments that nobody here knows; else what the command's own work
    raises, and the commits it makes.
    """
    kind = _KINDS.get(command)
    if kind is None:
        raise UsageError(
            "the running service doesn't know this request; upgrade it", command=command
        )
    try:
        read = kind.read(arguments)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError("the request's arguments can't be read", command=command) from error
    return kind.work(table, **read)


def _rebuild(table: CommandTable) -> CommandResult:
    def direction() -> Redirect:
        run = rebuild(table.store, table.snapshot, table.entropy, progress=table.progress)
        return table.redirected(parked=table.snapshot.manifest.parked, runs=(run,))

    table.commit_with_retries(direction)
    entries = sum(run.entries for run in table.snapshot.manifest.runs)
    version = table.snapshot.version
    text = f"rebuilt with {entries} entries in version {version}"
    return CommandResult(text, {"version": version, "entries": entries})


def _restore(table: CommandTable, version: int) -> CommandResult:
    made = restore(
        table.store,
        table.snapshot,
        version,
        table.commit,
        table.generation,
        retries=table.retries(),
    )
    return CommandResult(
        f"version {version} restored as version {made.version}; the service reads again what came"
        " since",
        {"version": made.version},
    )


def _pin(table: CommandTable, name: str, ends_ms: EpochMs) -> CommandResult:
    made = pin(
        table.store,
        table.snapshot,
        name,
        table.commit,
        entropy=table.entropy,
        retries=table.retries(),
        ends_ms=ends_ms,
        generation=table.generation,
    )
    return CommandResult(f"version {made.version} pinned as {name}", {"version": made.version})


def _unpin(table: CommandTable, name: str) -> CommandResult:
    version = unpin(
        table.store,
        table.snapshot,
        name,
        table.commit,
        retries=table.retries(),
        generation=table.generation,
    )
    text = f"version {version} isn't pinned as {name} any more"
    return CommandResult(text, {"version": version})


def _vacuum(table: CommandTable, seconds: float) -> CommandResult:
    now_ms = time_for_deletion(table.store, table.clock, table.entropy)
    number = table.generation
    done = vacuum(table.store, table.snapshot, table.commit, now_ms, seconds, number)
    return CommandResult(f"{done.files} files with {done.bytes} bytes deleted", asdict(done))


def _compact(table: CommandTable) -> CommandResult:
    rewriter = best_rewriter(open_sink, open_scratch=ScratchFile)

    def plan() -> Splice | None:
        manifest = table.snapshot.manifest
        if not manifest.deltas:
            return None
        shares = tasks(work(manifest), _TASK_BYTES, 1)
        table.progress.expect(sum(manifest.files[path].bytes for paths in shares for path in paths))
        done = [
            compact_files(
                table.store, manifest, paths, rewriter, table.entropy, progress=table.progress
            )
            for paths in shares
        ]
        return splice_of(table.generation, table.snapshot.version, done)

    splice = table.commit_with_retries(plan)
    if splice is None:
        version = table.snapshot.version
        return CommandResult("no changes wait; nothing to do", _compacted(version, 0, 0))
    version = table.snapshot.version
    changes, files = splice.counts.get("changes", 0), splice.files_written
    return CommandResult(
        f"{changes} changes merged into {files} base files in version {version}",
        _compacted(version, files, changes),
    )


def _compacted(version: int, files: int, changes: int) -> dict[str, int]:
    return {"version": version, "files": files, "changes": changes}


def _merge(table: CommandTable) -> CommandResult:
    def plan() -> FileMerge | None:
        manifest = table.snapshot.manifest
        chosen = plan_file_merge(manifest.files.values(), FILE_MERGE_POLICY)
        if not chosen:
            return None
        paths = [file.path for file in chosen]
        size = sum(file.bytes for file in chosen)
        table.progress.expect(size)
        inputs, output = merge_base_files(table.store, manifest, paths, table.entropy, open_sink)
        table.progress.advance(size)
        return file_merge(table.generation, table.snapshot.version, inputs, output, manifest)

    merged = 0
    while (intent := table.commit_with_retries(plan)) is not None:
        merged += len(intent.inputs)
    left, version = len(table.snapshot.manifest.files), table.snapshot.version
    text = f"{merged} files merged; {left} base files now"
    return CommandResult(text, {"version": version, "files": merged, "left": left})


def _purge(table: CommandTable, seconds: float) -> CommandResult:
    now_ms = time_for_deletion(table.store, table.clock, table.entropy)
    rules = PurgeRules.older_than(seconds, now_ms)
    rows = 0

    def plan() -> Purge | None:
        snapshot, number = table.snapshot, table.generation
        return purge(
            table.store,
            snapshot.manifest,
            rules,
            snapshot.version,
            number,
            table.entropy,
            progress=table.progress,
        )

    while (intent := table.commit_with_retries(plan)) is not None:
        rows += intent.counts["rows"]
    version = table.snapshot.version
    return CommandResult(
        f"{rows} deleted rows removed for good", {"version": version, "rows": rows}
    )


def note_verification(
    table: CommandTable, texts: Mapping[str, str], counts: Mapping[str, int]
) -> CommandResult:
    """Commit a version in which nothing changes, and whose entry says what was found of the table,
    or of a shadow that was to take its place.
    """
    table.history_parameters = {**table.history_parameters, **texts}
    operation = VERIFY_SHADOW if _SHADOW in texts else VERIFY
    table.commit_with_retries(lambda: Note(table.generation, operation, counts))
    version = table.snapshot.version
    return CommandResult(f"the history has it as version {version}", {"version": version})


def verified_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a request says of it; `KeyError`, `TypeError` or `ValueError` if it doesn't."""
    texts = {name: str(arguments[name]) for name in _TEXTS}
    texts |= {name: str(arguments[name]) for name in _OPTIONAL_TEXTS if name in arguments}
    return {"texts": texts, "counts": {name: int(arguments[name]) for name in _COUNTS}}


def _nothing(_: Mapping[str, Any]) -> dict[str, Any]:
    return {}


_KINDS: Mapping[str, _Kind] = {
    PARK: _Kind(park_arguments, park),
    UNPARK: _Kind(unpark_arguments, unpark),
    RESET: _Kind(reset_arguments, reset),
    RESTORE: _Kind(lambda arguments: {"version": int(arguments["version"])}, _restore),
    REBUILD: _Kind(_nothing, _rebuild),
    PIN: _Kind(lambda given: {"name": str(given["name"]), "ends_ms": int(given["ends_ms"])}, _pin),
    SWAP: _Kind(swap_arguments, swap),
    ERASE: _Kind(erase_arguments, erase_rows),
    UNPIN: _Kind(lambda given: {"name": str(given["name"])}, _unpin),
    REPAIR: _Kind(repair_arguments, repair),
    VERIFIED: _Kind(verified_arguments, note_verification),
    VACUUM: _Kind(lambda given: {"seconds": float(given["retention_seconds"])}, _vacuum),
    COMPACT: _Kind(_nothing, _compact),
    MERGE: _Kind(_nothing, _merge),
    OPTIMIZE: _Kind(optimize_arguments, optimize),
    PURGE: _Kind(lambda arguments: {"seconds": float(arguments["older_than_seconds"])}, _purge),
    REPLAY: _Kind(replay_arguments, replay),
    DROP: _Kind(drop_arguments, drop),
}
