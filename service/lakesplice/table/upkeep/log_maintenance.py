"""Maintenance of a table's log: checkpoints, and clean-up of versions past their retention.

The files that only expired versions name are deleted before these versions' entries in the log.

A clean-up keeps every version that was current within the retention, by the commits' own times,
which rise whatever a clock does. It deletes only below a checkpoint that was read back and checked,
in order of version. So a clean-up that is interrupted leaves versions that can be read and versions
that are refused, and none that is read wrongly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lakesplice.errors import CorruptFileError, TableNotFoundError
from lakesplice.formats.log.checkpoint import Checkpoint, checkpoint_version, complete_checkpoints
from lakesplice.model.moments import EpochMs, earlier
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.history import committed_ms
from lakesplice.table.protocol.layout import (
    LAST_CHECKPOINT,
    LOG,
    MANIFESTS,
    commit_version,
    manifest_version,
)
from lakesplice.table.protocol.ports import Clock, LogKeeper, Store
from lakesplice.table.protocol.snapshot import Snapshot, checkpointed_snapshot, hinted_version
from lakesplice.table.upkeep.expiry import Expired, Expiry

CHECKPOINTS_PER_CLEAN_UP = 10


@dataclass(frozen=True, slots=True)
class LogMaintenanceResult:
    """What one round did: the version of the checkpoint, the number of log files deleted, and the
    files of expired versions that were deleted before them.
    """

    checkpoint_version: int
    files_deleted: int
    expired: Expired | None = None


class Maintenance:
    """Maintains the log of one table. Called by one thread at a time.

    Without `expiry`, files that only expired versions name stay; they become orphans when the log's
    entries are deleted.
    """

    def __init__(
        self,
        store: Store,
        keeper: LogKeeper,
        clock: Clock,
        *,
        checkpoint_every: int,
        retention_seconds: float,
        expiry: Expiry | None = None,
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._clock = clock
        self._every = checkpoint_every
        self._retention_seconds = retention_seconds
        self._expiry = expiry
        self._checkpointed: int | None = None

    def care(self, snapshot: Snapshot) -> LogMaintenanceResult | None:
        """Write a checkpoint if one is due at `snapshot`, from time to time with a clean-up; else
        None.

        Blocks. `StorageError` if the store fails; the next call does what is missing.
        """
        if self._checkpointed is None:
            self._checkpointed = hinted_version(self._store)
        if snapshot.version - self._checkpointed < self._every:
            return None
        self._keeper.checkpoint(snapshot.version)
        before, self._checkpointed = self._checkpointed, snapshot.version
        span = self._every * CHECKPOINTS_PER_CLEAN_UP
        if before // span == snapshot.version // span:
            return LogMaintenanceResult(snapshot.version, 0)
        expired_ms = self._expired_ms()
        expired = self._expire(snapshot, expired_ms)
        if isinstance(expired, Conflict) or (expired is not None and not expired.done):
            return LogMaintenanceResult(snapshot.version, 0)
        kept_from = None if expired is None else expired.retained_from
        deleted = clean_up(self._store, expired_ms, kept_from)
        return LogMaintenanceResult(snapshot.version, deleted, expired)

    def expire(self, snapshot: Snapshot) -> Expired | Conflict | None:
        """Delete what only versions past the retention name; None without `expiry`.

        Errors and result as in `Expiry.run`.
        """
        return self._expire(snapshot, self._expired_ms())

    def _expire(self, snapshot: Snapshot, expired_ms: EpochMs) -> Expired | Conflict | None:
        if self._expiry is None:
            return None
        return self._expiry.run(snapshot, expired_ms, self._clock.now_ms())

    def _expired_ms(self) -> EpochMs:
        return earlier(self._clock.now_ms(), self._retention_seconds)


def clean_up(store: Store, expired_ms: EpochMs, kept_from: int | None = None) -> int:
    """Delete log files and manifests of versions that were replaced before `expired_ms`; return how
    many.

    The version that was current at that time and all later ones are kept, with what they are read
    from: the newest checkpoint at or below it. So are the versions from `kept_from` on, however old
    they are: while an Iceberg mirror reads their files, these must not become orphans.
    """
    paths = list(store.list(f"{LOG}/"))
    commits = sorted(version for path in paths if (version := commit_version(path)) is not None)
    names = [path.removeprefix(f"{LOG}/") for path in paths]
    oldest_kept = _oldest_needed(store, commits, expired_ms)
    if kept_from is not None:
        oldest_kept = min(oldest_kept, kept_from)
    checkpoint = _newest_sound(store, complete_checkpoints(names), oldest_kept)
    if checkpoint is None:
        return 0
    dated = [(version, path) for path in paths if (version := _version(path)) is not None]
    doomed = [path for version, path in sorted(dated) if version < checkpoint.version]
    for path in store.list(f"{MANIFESTS}/"):
        version = manifest_version(path)
        # Only the version in a manifest's name can name the manifest.
        if version is not None and version < checkpoint.version:
            doomed.append(path)
    for path in doomed:
        store.delete(path)
    return len(doomed)


def _oldest_needed(store: Store, commits: Sequence[int], expired_ms: EpochMs) -> int:
    """The version that was current at `expired_ms`: the last one committed before it, if any."""
    after = bisect_left(commits, expired_ms, key=partial(committed_ms, store))
    return commits[after - 1] if after else -1


def _newest_sound(
    store: Store, checkpoints: Sequence[Checkpoint], version_max: int
) -> Checkpoint | None:
    for checkpoint in reversed(checkpoints):
        if checkpoint.version <= version_max:
            try:
                checkpointed_snapshot(store, checkpoint)
            except (CorruptFileError, TableNotFoundError):  # the latter: from before an adoption
                continue
            return checkpoint
    return None


def _version(path: str) -> int | None:
    if path == LAST_CHECKPOINT:
        return None
    version = commit_version(path)
    return checkpoint_version(path.removeprefix(f"{LOG}/")) if version is None else version
