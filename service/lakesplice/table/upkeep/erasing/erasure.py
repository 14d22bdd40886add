"""Erasure: removes the rows of some keys from every byte of a table, so that their earlier records
can't restore them.

find what has something of the rows -> splice what waits for their base files -> write all of it
again without them -> commit `Erase` -> end all older versions

A crash is possible after each step; repeating the call does the remaining steps. If one of the rows
changes meanwhile, the commit fails, and the rows are searched again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.table.protocol.commit import CommitIntent, Committed
from lakesplice.table.protocol.intents import Erase, Splice
from lakesplice.table.protocol.ports import (
    UNWATCHED,
    Clock,
    Entropy,
    LogKeeper,
    Progress,
    Rewriter,
    Store,
)
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.upkeep.compact import compact_files, splice_of
from lakesplice.table.upkeep.erasing.found_parts import FoundParts, WantedKeys
from lakesplice.table.upkeep.erasing.found_versions import find_versions
from lakesplice.table.upkeep.erasing.older_versions import end_older_versions
from lakesplice.table.upkeep.erasing.rewriting import write_without

_OVERTAKEN = "other writers committed first every time; erase again"


@dataclass(frozen=True)
class ErasureTools:
    """The tools of an erasure: the table's store, how it commits, and its generation."""

    store: Store
    commit: CommitIntent
    generation: int
    clock: Clock
    entropy: Entropy
    rewriter: Rewriter
    keeper: LogKeeper
    retries: Callable[[], Retries]
    progress: Progress = UNWATCHED


@dataclass(frozen=True, slots=True)
class Erased:
    """The counts of an erasure, done or planned: `keys` were requested; the table had `rows` of
    them, of which `live` weren't deleted; `files` (base files), `runs` of the index and `deltas`
    were rewritten; `dead_letters` were dropped. `versions` ended, and `deleted` files were deleted;
    `version` is the remaining one.
    """

    version: int
    keys: int
    rows: int
    live: int
    files: int
    runs: int
    deltas: int
    dead_letters: int
    versions: int = 0
    deleted: int = 0

    @classmethod
    def planned(cls, snapshot: Snapshot, wanted: WantedKeys, found: FoundParts) -> Erased:
        """Return the counts for the parts that were found in a version."""
        return cls(
            version=snapshot.version,
            keys=len(wanted.keys),
            rows=found.rows,
            live=found.live,
            files=len(found.files),
            runs=len(found.runs),
            deltas=len(found.deltas),
            dead_letters=found.letters_count,
        )


def plan_erasure(store: Store, snapshot: Snapshot, wanted: WantedKeys) -> Erased:
    """Return what an erasure would find, and change nothing. Blocks; raises the errors of
    `find_versions`.
    """
    found, _ = find_versions(store, snapshot.manifest, wanted)
    return Erased.planned(snapshot, wanted, found)


def erase(
    tools: ErasureTools, snapshot: Snapshot, wanted: WantedKeys, *, also_live: bool = False
) -> Erased:
    """Erase the rows of some keys, and end all older versions.

    `snapshot` is any version that was read before. Blocks; memory as for `write_without`. May be
    called again after any error. `UsageError` if a row isn't deleted, unless `also_live` permits
    it; if a version is pinned, with the pins' names; while a shadow is filled; and if dead letters
    can't be searched. Raises `RetryableError` if other writers always committed first.
    `CorruptFileError`, `StorageError`.
    """
    done, counts = _without_rows(tools, snapshot, wanted, also_live=also_live)
    ended = end_older_versions(
        store=tools.store,
        snapshot=latest(tools.store, snapshot),
        commit=tools.commit,
        keeper=tools.keeper,
        generation=tools.generation,
        counts=counts,
        retries=tools.retries,
    )
    return replace(
        done,
        version=ended.version,
        versions=ended.versions,
        deleted=ended.files + ended.log_files,
    )


def _without_rows(
    tools: ErasureTools, snapshot: Snapshot, wanted: WantedKeys, *, also_live: bool
) -> tuple[Erased, Mapping[str, int]]:
    """Commit the table without the rows; return the result, and the counts for the history."""
    retries, keys = tools.retries(), {"keys": len(wanted.keys)}
    while True:
        snapshot = latest(tools.store, snapshot)
        require_no_copies(tools.store, snapshot.manifest)
        found, of_rows = find_versions(tools.store, snapshot.manifest, wanted)
        _require_allowed(found, also_live=also_live)
        intent = _next_step(tools, snapshot, found, of_rows)
        if intent is None:
            return Erased.planned(snapshot, wanted, found), {**keys, "rows": 0}
        if not isinstance(tools.commit(intent), Committed):
            retries.require_another(_OVERTAKEN)
        elif isinstance(intent, Erase):
            return Erased.planned(snapshot, wanted, found), {**keys, **intent.counts}


def _next_step(
    tools: ErasureTools, snapshot: Snapshot, found: FoundParts, wanted: WantedKeys
) -> Splice | Erase | None:
    manifest = snapshot.manifest
    waiting = [path for path in found.files if manifest.waiting_in(manifest.files[path])]
    if not waiting:
        return write_without(
            tools.store,
            snapshot,
            found,
            wanted,
            tools.generation,
            tools.entropy,
            progress=tools.progress,
        )
    part = compact_files(tools.store, manifest, waiting, tools.rewriter, tools.entropy)
    return splice_of(tools.generation, snapshot.version, [part])


def require_no_copies(store: Store, manifest: Manifest) -> None:
    """Check that there is no copy of the rows that an erasure doesn't reach; raises
    `UsageError`.
    """
    if manifest.retention.pins:
        raise UsageError(
            "a pinned version keeps the rows; unpin it with `lakesplice unpin`, then erase again",
            pins=[pin.name for pin in manifest.retention.pins],
        )
    if open_shadows(store):
        raise UsageError(
            "the table is being filled again; wait for `lakesplice bootstrap` to end, or end it,"
            " then erase again",
            path=str(store),
        )
    if not manifest.schema.key:
        raise UsageError("the table has no columns yet, so it has no rows", path=str(store))


def _require_allowed(found: FoundParts, *, also_live: bool) -> None:
    if found.live and not also_live:
        raise UsageError(
            "some of the rows aren't deleted; delete them at the source and wait until the table"
            " has read it, or permit it with --also-live",
            live=found.live,
            rows=found.rows,
        )
    if found.unknown_letters:
        raise UsageError(
            "the key of a dead letter in a binary format is unknown; first replay or drop such "
            "dead letters with `lakesplice dlq`",
            dead_letters=found.unknown_letters,
        )
