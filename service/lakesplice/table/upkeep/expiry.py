"""Expiry: the files that only versions past their retention name are deleted.

Every version that was current within the retention stays whole, by the commits' own times, which
rise whatever a clock does. For the others the order is:

    1  read what they name, and what the retained ones need
    2  commit an `Expire`: from now on no restore may restore such a version
    3  delete; the log's entries of these versions are cleaned up only after it

A crash after 2 leaves files that are found again, since the log still has the expired versions and
the manifest says up to which of them all is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lakesplice.errors import CorruptFileError
from lakesplice.formats.manifests import Pointer
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.planning.upkeep.retention import gone_files
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Expire, Intent
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, oldest_version, read_manifest, read_pointer

VERSIONS_PER_ROUND = 1_000

Commit = Callable[[Intent], Committed | Conflict]


@dataclass(frozen=True, slots=True)
class ExpiryPlan:
    """What is to be deleted: `files` maps paths to sizes in bytes.

    The versions from `first` to `retained_from` (exclusive) are expired. `is_last` says that there
    are no further ones. `ended` names the pins that end.
    """

    first: int
    retained_from: int
    files: Mapping[str, int]
    is_last: bool
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Expired:
    """What was deleted, paths with their sizes. `done`: nothing that only versions below
    `retained_from` named is left, so their log may go.
    """

    retained_from: int
    files: Mapping[str, int] = field(default_factory=dict)
    done: bool = True


def plan_expiry(
    store: Store,
    snapshot: Snapshot,
    expired_ms: int,
    start: int = 0,
    versions_max: int = VERSIONS_PER_ROUND,
    now_ms: int | None = None,
) -> ExpiryPlan:
    """Find what to delete of versions that were succeeded before `expired_ms`, and of pins that
    have ended by `now_ms`; none has if that is None. A pinned version is kept whole.

    `start` is a version below which all is known to be done; at most `versions_max` versions are
    looked at. Costs two reads for each; lists only if the log no longer has the first one. Blocks.
    """
    retention = snapshot.manifest.retention
    first = first_there(store, max(start, retention.vacuumed))
    oldest, pointer = first, read_pointer(store, first)
    expired: list[Pointer] = []
    is_last = True
    while oldest < snapshot.version:
        following = read_pointer(store, oldest + 1)
        if following.timestamp_ms >= expired_ms and oldest >= retention.retained_from:
            break
        if len(expired) == versions_max:
            is_last = False
            break
        expired.append(pointer)
        oldest, pointer = oldest + 1, following
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
    """Deletes what expired versions of one table leave; called by one thread at a time.

    `commit` makes an intent the next version. It does no harm if another process does the same
    meanwhile. `generation` is that of the driver or command, None for a table fed by hand.
    """

    def __init__(self, store: Store, commit: Commit, generation: int | None = None) -> None:
        self._store = store
        self._commit = commit
        self._generation = generation
        self._done = 0

    def run(
        self, snapshot: Snapshot, expired_ms: int, now_ms: int | None = None
    ) -> Expired | Conflict:
        """Delete what only versions succeeded before `expired_ms` name, a number of them at a time,
        and end the pins that are to end by `now_ms`.

        Commits only if there is something to delete; a `Conflict` if another one did the same just
        then. Blocks; may be called again after any error
        and makes up for what is missing. `StorageError` and `CorruptFileError` as the store has it.
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
        """Delete what an earlier run announced; a new process can't know how far that one got."""
        announced = snapshot.manifest.retention.retained_from
        if self._done >= announced:
            return Expired(self._done)
        plan = plan_expiry(self._store, snapshot, 0, self._done)
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
    """Return those of the files that exist; a look-up for each."""
    return {path: size for path, size in files.items() if store.size(path) is not None}


def first_there(store: Store, version: int) -> int:
    """Return the version, or the oldest one that the log still has if that is a later one."""
    is_there = store.size(commit_path(version)) is not None
    return version if is_there else max(version, oldest_version(store))


def manifests(store: Store, first: int, last: int) -> Iterator[Manifest]:
    """Yield the manifests of the versions `first` to `last`, both included; two reads each."""
    for version in range(first, last + 1):
        yield read_manifest(store, read_pointer(store, version).manifest)


def pinned(store: Store, manifest: Manifest) -> Iterator[Manifest]:
    """Yield the manifests of the versions that are pinned; a read for each."""
    for pin in manifest.retention.pins:
        yield read_manifest(store, pin.copy)


def _whole(store: Store, refs: Sequence[FileRef]) -> Iterator[Manifest]:
    """The manifests that can be read; files that only another one names are found as orphans."""
    for ref in refs:
        with suppress(CorruptFileError):
            yield read_manifest(store, ref)
