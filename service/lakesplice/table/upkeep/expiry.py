"""Expiry: deletes the files that only versions past their retention name.

A version that was current within the retention stays whole. This is decided by the commits' own
times, which rise whatever a clock does. The order for all other versions is:

    1  read which files they name, and which files the retained ones need
    2  commit an `Expire`: from now on such a version can't be restored
    3  delete; the log's entries of these versions are removed only afterwards

A crash after step 2 leaves files that are found again: the log still has the expired versions, and
the manifest says up to which of them everything is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial

from lakesplice.errors import CorruptFileError
from lakesplice.formats.manifests import Pointer
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.planning.upkeep.retention import gone_files
from lakesplice.table.protocol.commit import CommitIntent, Conflict
from lakesplice.table.protocol.intents import Expire
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import (
    Snapshot,
    oldest_version,
    own_pointer,
    read_manifest,
    read_pointer,
)
from lakesplice.table.upkeep.mirroring.mirror_floor import mirror_floor

VERSIONS_PER_ROUND = 1_000


@dataclass(frozen=True, slots=True)
class ExpiryPlan:
    """What is to be deleted: `files` maps paths to sizes in bytes.

    The versions from `first` to `retained_from` (exclusive) are expired. With `is_last` there are
    no further ones. `ended` names the pins that end.
    """

    first: int
    retained_from: int
    files: Mapping[str, int]
    is_last: bool
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Expired:
    """What was deleted: paths with their sizes. With `done`, no file is left that only versions
    below `retained_from` named, so their entries in the log may be deleted.
    """

    retained_from: int
    files: Mapping[str, int] = field(default_factory=dict)
    done: bool = True


def plan_expiry(
    store: Store,
    snapshot: Snapshot,
    expired_ms: EpochMs,
    start: int = 0,
    versions_max: int = VERSIONS_PER_ROUND,
    now_ms: EpochMs | None = None,
) -> ExpiryPlan:
    """Find what to delete of versions that were replaced before `expired_ms`, and of pins that end
    by `now_ms`; no pin ends if that is None. Pinned versions are kept whole, and so are those that
    an Iceberg mirror still reads.

    Below the version `start` everything is known to be done. At most `versions_max` versions are
    looked at, with two reads each; the log is listed only if it no longer has the first one.
    Blocks.
    """
    retention = snapshot.manifest.retention
    first = first_there(store, max(start, retention.vacuumed))
    oldest, pointer = _own_from(store, first)
    expired: list[Pointer] = []
    is_last = True
    # Asked only once something may expire: it lists a folder.
    lowest = cache(partial(mirror_floor, store))
    while oldest < snapshot.version:
        next_oldest, following = _own_from(store, oldest + 1)
        if oldest >= retention.retained_from:
            if following.timestamp_ms >= expired_ms:
                break
            floor = lowest()
            if floor is not None and oldest >= floor:
                break
        if len(expired) == versions_max:
            is_last = False
            break
        expired.append(pointer)
        oldest, pointer = next_oldest, following
    files: dict[str, int] = {}
    ended = [pin for pin in retention.pins if now_ms is not None and 0 < pin.ends_ms <= now_ms]
    gone = [pointer.manifest for pointer in expired]
    gone += [pin.copy for pin in ended if pin.version < oldest]
    if gone:
        restores = [version for version in retention.restores if version > oldest]
        kept = [read_manifest(store, pointer.manifest), snapshot.manifest]
        kept += [read_manifest(store, read_pointer(store, at).manifest) for at in restores]
        kept += [read_manifest(store, pin.copy) for pin in retention.pins if pin not in ended]
        files = gone_files(_whole(store, gone), kept)
    return ExpiryPlan(first, oldest, files, is_last, frozenset(pin.name for pin in ended))


class Expiry:
    """Deletes the files of expired versions of one table; called by one thread at a time.

    `commit` makes an intent the next version. Another process may do the same at the same time.
    `generation` is that of the driver or command, None for a table fed by hand.
    """

    def __init__(self, store: Store, commit: CommitIntent, generation: int | None = None) -> None:
        self._store = store
        self._commit = commit
        self._generation = generation
        self._done = 0

    def run(
        self, snapshot: Snapshot, expired_ms: EpochMs, now_ms: EpochMs | None = None
    ) -> Expired | Conflict:
        """Delete the files that only versions replaced before `expired_ms` name, some versions at a
        time, and end the pins that are to end by `now_ms`.

        Commits only if there is something to delete; a `Conflict` if another process did the same
        just then. Blocks; may be called again after any error, and then deletes what is left.
        `StorageError` and `CorruptFileError` as the store has it.
        """
        left = self._made_good(snapshot)
        if not left.done:
            return left
        plan = plan_expiry(self._store, snapshot, expired_ms, left.retained_from, now_ms=now_ms)
        if plan.files or plan.ended:
            outcome = self._commit(self._intent(snapshot.manifest, plan))
            if isinstance(outcome, Conflict):
                return outcome
        return self._deleted(plan.retained_from, {**left.files, **plan.files}, done=plan.is_last)

    def _made_good(self, snapshot: Snapshot) -> Expired:
        """Delete what an earlier run announced: it may have been interrupted."""
        announced = snapshot.manifest.retention.retained_from
        if self._done >= announced:
            return Expired(self._done)
        plan = plan_expiry(self._store, snapshot, NO_MOMENT, self._done)
        return self._deleted(plan.retained_from, there(self._store, plan.files), done=plan.is_last)

    def _deleted(self, retained_from: int, files: Mapping[str, int], *, done: bool) -> Expired:
        for path in files:
            self._store.delete(path)
        self._done = retained_from
        return Expired(retained_from, files, done)

    def _intent(self, manifest: Manifest, plan: ExpiryPlan) -> Expire:
        generation = manifest.generation if self._generation is None else self._generation
        counts = {"files": len(plan.files), "bytes": sum(plan.files.values())}
        kept, done = plan.retained_from, plan.first
        return Expire(generation, manifest.retention, kept, done, counts, plan.ended)


def there(store: Store, files: Mapping[str, int]) -> dict[str, int]:
    """Return those of the files that exist, by a look-up for each."""
    return {path: size for path, size in files.items() if store.size(path) is not None}


def first_there(store: Store, version: int) -> int:
    """Return the version, or the oldest one in the log if that is later."""
    is_there = store.size(commit_path(version)) is not None
    return version if is_there else max(version, oldest_version(store))


def manifests(store: Store, first: int, last: int) -> Iterator[Manifest]:
    """Yield the manifests of the versions `first` to `last`, both included; two reads each. Those
    that another program committed have none.
    """
    for version in range(first, last + 1):
        pointer = own_pointer(store, version)
        if pointer is not None:
            yield read_manifest(store, pointer.manifest)


def _own_from(store: Store, version: int) -> tuple[int, Pointer]:
    """Return the first version from this one on that is ours; the newest one is."""
    while (pointer := own_pointer(store, version)) is None:
        version += 1
    return version, pointer


def pinned(store: Store, manifest: Manifest) -> Iterator[Manifest]:
    """Yield the manifests of the pinned versions; a read for each."""
    for pin in manifest.retention.pins:
        yield read_manifest(store, pin.copy)


def _whole(store: Store, refs: Sequence[FileRef]) -> Iterator[Manifest]:
    """The manifests that can be read. Files that only an unreadable one names are found as orphans
    later.
    """
    for ref in refs:
        with suppress(CorruptFileError):
            yield read_manifest(store, ref)
