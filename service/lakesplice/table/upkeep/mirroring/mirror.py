"""The order of steps in which an Iceberg mirror follows its table.

What the mirror has is compared with what it should have, so it doesn't matter where an earlier run
ended. To follow a version:

    1  read the mirror's state from the catalog, and its floor from the table's folder
    2  commit the difference to the catalog: schema and files in one snapshot
    3  look whether the mirror ended meanwhile; if so, begin a new incarnation

A crash before 2 leaves metadata files that nothing names, a crash after it nothing to be done. A
new incarnation begins so:

    1  its floor                     from now on no vacuum deletes files of the version
    2  drop the table in the catalog, and create it with its first snapshot
    3  delete the folders of other incarnations

A crash before 2 leaves a floor, which the next expiry deletes, a crash within 2 a catalog without
the table until the next run. Old snapshots leave the catalog first, then the floor rises.
The mirror writes and deletes nothing but what is in its own folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lakesplice.model.moments import EpochMs
from lakesplice.planning.mirroring.columns import SchemaChange, mirror_schema, schema_change
from lakesplice.planning.mirroring.files import FileChanges, file_changes, mirror_file
from lakesplice.table.protocol.ports import Entropy, Store
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.upkeep.mirroring.mirror_catalog import (
    MirrorCatalog,
    MirrorCommit,
    MirrorSnapshot,
    MirrorState,
)
from lakesplice.table.upkeep.mirroring.mirror_floor import (
    begin_floor,
    delete_incarnations,
    floors,
    incarnation_folder,
    new_incarnation,
    raise_floor,
)

# How often in a row a new incarnation begins: only erasures at the same time end one at once.
_BEGINS_MAX = 3


@dataclass(frozen=True, slots=True)
class MirrorResult:
    """What was done: how many files were `added` and `removed`, and in `begun` why a new
    incarnation began, if one did. `is_current` says whether the mirror now shows the version.
    """

    is_current: bool
    added: int = 0
    removed: int = 0
    begun: str = ""


class Mirror:
    """The Iceberg mirror of one table; used by one thread at a time.

    Another process may do the same at the same time: then one of the commits fails, and the next
    run looks again. Errors of the catalog's library aren't changed. Reads of the table raise
    `StorageError` and `CorruptFileError`. After any error every method may be called again.
    """

    def __init__(self, store: Store, catalog: MirrorCatalog, entropy: Entropy) -> None:
        self._store = store
        self._catalog = catalog
        self._entropy = entropy

    def follow(self, snapshot: Snapshot) -> MirrorResult:
        """Let the mirror show the table's base files at a version; blocks on the catalog.

        `UsageError` if the catalog has a table of that name that isn't this mirror.
        """
        state, kept = self._catalog.load(), floors(self._store)
        change = _possible_change(state, kept, snapshot)
        if state is None or isinstance(change, str):
            return self._begin(snapshot, str(change))
        newest = state.snapshots[-1].version if state.snapshots else -1
        if newest > snapshot.version:
            return MirrorResult(is_current=False)  # a newer driver was here
        files = file_changes(state.files, snapshot.manifest.files)
        if files or change:
            schema = mirror_schema(snapshot.manifest.schema)
            commit = _commit_of(snapshot, files)
            if not self._catalog.commit(state, schema, change, commit):
                return MirrorResult(is_current=False)
            if not self._holds(state.incarnation, snapshot):
                return self._begin(snapshot, "an erasure ended it")
        return MirrorResult(True, len(files.added), len(files.removed))

    def lacking(self, snapshot: Snapshot) -> MirrorResult:
        """Return what `follow` would do; changes nothing. Errors as `follow`."""
        state, kept = self._catalog.load(), floors(self._store)
        change = _possible_change(state, kept, snapshot)
        if state is None or isinstance(change, str):
            return MirrorResult(False, len(snapshot.manifest.files), begun=str(change))
        files = file_changes(state.files, snapshot.manifest.files)
        return MirrorResult(not (files or change), len(files.added), len(files.removed))

    def expire(
        self, snapshot: Snapshot, expired_ms: EpochMs, unnamed_before_ms: EpochMs
    ) -> int | None:
        """Forget the mirror's snapshots that newer ones replaced before `expired_ms`, raise its
        floor, delete what is left of other incarnations, and metadata files that nothing names and
        that were written before `unnamed_before_ms`, by the store's clock.

        Returns how many snapshots were forgotten; None if there is no mirror that can be used.
        """
        state, kept = self._catalog.load(), floors(self._store)
        if state is None or isinstance(_possible_change(state, kept, snapshot), str):
            return None
        gone = _replaced(state.snapshots, expired_ms)
        if gone and not self._catalog.expire(state, gone):
            return 0
        left = [one.version for one in state.snapshots if one.id not in gone]
        # The present snapshot's files are those of the newest version for as long as none changed.
        if left and not file_changes(state.files, snapshot.manifest.files):
            left[-1] = max(left[-1], snapshot.version)
        if left and min(left) > kept[state.incarnation]:
            raise_floor(self._store, state.incarnation, min(left))
        delete_incarnations(self._store, state.incarnation)
        if gone:
            self._delete_unnamed(state.incarnation, unnamed_before_ms)
        return len(gone)

    def end(self) -> None:
        """Drop the table in the catalog, and delete the mirror's folder. `UsageError` if the
        catalog has a table of that name that isn't this mirror; then nothing changes.
        """
        self._catalog.load()
        # Also an entry whose metadata is gone, which can't be loaded.
        self._catalog.drop()
        delete_incarnations(self._store, None)

    def _begin(self, snapshot: Snapshot, reason: str) -> MirrorResult:
        for _ in range(_BEGINS_MAX):
            snapshot = latest(self._store, snapshot)
            incarnation = new_incarnation(self._entropy)
            begin_floor(self._store, incarnation, snapshot.version)
            self._catalog.drop()
            files = file_changes((), snapshot.manifest.files)
            schema, commit = mirror_schema(snapshot.manifest.schema), _commit_of(snapshot, files)
            if not self._catalog.create(incarnation, schema, commit):
                break
            if self._holds(incarnation, snapshot):
                delete_incarnations(self._store, incarnation)
                return MirrorResult(True, len(files.added), begun=reason)
        return MirrorResult(is_current=False, begun=reason)

    def _holds(self, incarnation: str, snapshot: Snapshot) -> bool:
        """Whether the mirror is still valid: no erasure ended it meanwhile."""
        newest = latest(self._store, snapshot)
        return _is_protected(floors(self._store).get(incarnation), newest)

    def _delete_unnamed(self, incarnation: str, before_ms: EpochMs) -> None:
        """Delete the metadata files of snapshots that are gone, and what interrupted runs left."""
        folder = f"{incarnation_folder(incarnation)}/"
        listed = list(self._store.list(folder))
        state = self._catalog.load()
        if state is None or state.incarnation != incarnation:
            return
        needed = self._catalog.needed(state)
        for path in listed:
            name = path.removeprefix(folder)
            if name in needed or name.startswith("floor-"):
                continue
            written_ms = self._store.modified_ms(path)
            if written_ms is not None and written_ms < before_ms:
                self._store.delete(path)


def _possible_change(
    state: MirrorState | None, kept: dict[str, int], snapshot: Snapshot
) -> SchemaChange | str:
    """Return the change of schema that leads to a version, or why a new incarnation must begin."""
    if state is None:
        return "the catalog has no such table"
    if state.defect:
        return state.defect
    if not _is_protected(kept.get(state.incarnation), snapshot):
        return "an erasure ended it, or its files may have been deleted"
    schema = mirror_schema(snapshot.manifest.schema)
    if state.partitioned_by != schema.partitioned_by:
        return "the table is partitioned in another way"
    change = schema_change(state.columns, state.mapped, schema.columns)
    return "a column changed in a way that Iceberg doesn't know" if change is None else change


def _is_protected(floor: int | None, snapshot: Snapshot) -> bool:
    """Whether no vacuum can have deleted a file that a mirror with this floor reads."""
    return floor is not None and floor >= snapshot.manifest.retention.retained_from


def _commit_of(snapshot: Snapshot, files: FileChanges) -> MirrorCommit:
    adds, schema = snapshot.log.adds, snapshot.manifest.schema
    added = [mirror_file(file, adds[file.path].stats, schema) for file in files.added]
    return MirrorCommit(snapshot.version, snapshot.timestamp_ms, added, files.removed)


def _replaced(snapshots: Sequence[MirrorSnapshot], expired_ms: EpochMs) -> frozenset[int]:
    """The snapshots that were replaced by newer ones before `expired_ms`, by the times of the
    table's commits.
    """
    return frozenset(old.id for old, new in pairwise(snapshots) if new.committed_ms < expired_ms)
