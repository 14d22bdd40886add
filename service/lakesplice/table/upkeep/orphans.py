"""Orphans: files that no version ever named, of writers that died, lost a race or were refused.

A listing finds them: they are old, and no retained version names them. But a slow writer might
still commit one. So before the first one is deleted a `Sweep` is committed. It refuses writers by
the version that they had read when they began, whatever a clock says:

    at once    writers that began before this sweep are refused; for writers that simply write
               again
    else       writers that began before the previous sweep, long ago, are refused. Only files
               older than that sweep are deleted; a first sweep deletes nothing
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakesplice.model.manifest import Manifest, Retention
from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.retention import files_by_path
from lakesplice.table.files.inner_tables import inner_tables, is_within
from lakesplice.table.protocol.commit import CommitIntent, Conflict
from lakesplice.table.protocol.intents import Sweep
from lakesplice.table.protocol.layout import (
    BASE,
    CHANGE_DATA,
    DEAD_LETTERS,
    DELTAS,
    ERASED,
    INDEX,
    PINS,
    SHADOWS,
)
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.expiry import first_there, manifests, pinned

# How far the clocks of writers and of the store may differ.
_SKEW_MS = 3_600_000
# What Delta writers leave: data files, change data, deletion vectors. Hidden folders aren't ours.
_THEIRS = re.compile(r"(?:_change_data/)?(?:[^_./][^/]*/)*[^_./][^/]*\.(?:parquet|bin)")
_CLOSED = f"{SHADOWS}/"
_FOLDERS = (BASE, DELTAS, INDEX, DEAD_LETTERS, PINS, CHANGE_DATA, ERASED)
_OURS = (*(f"{folder}/" for folder in _FOLDERS), _CLOSED)


@dataclass(frozen=True, slots=True)
class Swept:
    """The orphans that were deleted, and those that a later sweep may delete, with their sizes."""

    files: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)


def find_orphans(store: Store, snapshot: Snapshot, before_ms: EpochMs) -> dict[str, int]:
    """Return the files that were written before `before_ms`, by the store's clock, and that no
    version retained or pinned at `snapshot` names, with their sizes. Tables inside this one's
    folder are left out. Blocks: lists the table and reads every such version. There are none while
    a shadow is open: only its own log says which files it needs.
    """
    named = files_by_path(snapshot.manifest)
    unnamed = {}
    paths = list(store.list(""))
    inner = inner_tables(paths)
    if open_shadows(store):  # asked after the listing, which no later shadow's files are in
        return {}
    for path in paths:
        if is_within(path, inner) and not path.startswith(_CLOSED):
            continue
        if path not in named and (path.startswith(_OURS) or _THEIRS.fullmatch(path)):
            modified_ms = store.modified_ms(path)
            if modified_ms is not None and modified_ms < before_ms:
                unnamed[path] = store.size(path) or 0
    if unnamed:
        first = first_there(store, snapshot.manifest.retention.retained_from)
        _drop_named(unnamed, manifests(store, first, snapshot.version))
        _drop_named(unnamed, pinned(store, snapshot.manifest))
    return unnamed


class Orphans:
    """Deletes orphans of one table; called by one thread at a time. Otherwise as `Expiry`."""

    def __init__(self, store: Store, commit: CommitIntent, generation: int | None = None) -> None:
        self._store = store
        self._commit = commit
        self._generation = generation

    def sweep(self, snapshot: Snapshot, before_ms: EpochMs, *, at_once: bool) -> Swept:
        """Delete orphans that were written before `before_ms`; commits only if there are some.

        Blocks; may be called again after any error. `StorageError` and `CorruptFileError` as the
        store has it.
        """
        found = find_orphans(self._store, snapshot, before_ms)
        if not found:
            return Swept()
        read, manifest = snapshot.manifest.retention, snapshot.manifest
        generation = manifest.generation if self._generation is None else self._generation
        outcome = self._commit(Sweep(generation, None if at_once else read.swept))
        if isinstance(outcome, Conflict):
            return Swept(left=found)
        since = manifests(self._store, snapshot.version + 1, outcome.snapshot.version)
        _drop_named(found, since)
        doomed = found if at_once else self._older(found, read)
        for path in doomed:
            self._store.delete(path)
        return Swept(doomed, {path: size for path, size in found.items() if path not in doomed})

    def _older(self, found: Mapping[str, int], read: Retention) -> dict[str, int]:
        limit_ms = read.swept_ms - _SKEW_MS
        written = {path: self._store.modified_ms(path) for path in found}
        return {
            path: found[path]
            for path, modified_ms in written.items()
            if modified_ms is not None and modified_ms < limit_ms
        }


def _drop_named(files: dict[str, int], read: Iterable[Manifest]) -> None:
    for manifest in read:
        for path in files.keys() & files_by_path(manifest).keys():
            del files[path]
