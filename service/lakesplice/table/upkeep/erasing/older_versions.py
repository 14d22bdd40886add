"""Ends all older versions of a table, with every file that only they named.

The order, and what remains to be done after a crash at each step:

    1  commit a `Sweep`        from now on writers that began before are refused
    2  delete what no version names, however young
    3  commit `EndVersions`    its version is the oldest one that can be read or restored
    4  end Iceberg mirrors     theirs is the only other metadata with bounds of values
    5  delete what only older versions name
    6  write a checkpoint of that version, without the removed files that the log still knows
    7  delete older entries of the log, checkpoints and manifests, and what other writers left there

A file that a later version names is never deleted: the list for step 2 is made before its writer
can have started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakesplice.errors import RetryableError
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.table.protocol.commit import CommitIntent, Committed
from lakesplice.table.protocol.intents import EndVersions
from lakesplice.table.protocol.layout import LAST_CHECKPOINT, LOG
from lakesplice.table.protocol.ports import LogKeeper, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.upkeep.expiry import first_there, plan_expiry, there
from lakesplice.table.upkeep.log_maintenance import clean_up
from lakesplice.table.upkeep.mirroring.mirror_floor import end_mirrors
from lakesplice.table.upkeep.orphans import Orphans

# Later than all times of commits and files.
_ALWAYS = EpochMs(1 << 60)
_VERSIONS_MAX = 1_000_000_000
_OURS = re.compile(r"\d{20}(?:\.checkpoint(?:\.\d{10}\.\d{10})?\.parquet|\.json)|_lakesplice_.*")


@dataclass(frozen=True, slots=True)
class EndedVersions:
    """What was deleted: the number of files and their bytes, and of entries of the log and of
    Iceberg mirrors' metadata. `version` is the only one left.
    """

    version: int
    versions: int
    files: int
    bytes: int
    log_files: int


def end_older_versions(
    store: Store,
    snapshot: Snapshot,
    commit: CommitIntent,
    keeper: LogKeeper,
    generation: int,
    counts: Mapping[str, int],
    retries: Callable[[], Retries],
) -> EndedVersions:
    """End all versions of the table but a new one; `counts` are for its entry in the history.

    Blocks: lists the table. May be called again after any error, and does what is missing. Raises
    `RetryableError` if other writers always committed first; also `StorageError` and
    `CorruptFileError`.
    """
    swept = Orphans(store, commit, generation).sweep(snapshot, _ALWAYS, at_once=True)
    snapshot = _ended(store, snapshot, commit, generation, counts, retries())
    # Not earlier: a mirror that begins before that commit would show an older version.
    mirrored = end_mirrors(store)
    start = first_there(store, snapshot.manifest.retention.vacuumed)
    plan = plan_expiry(store, snapshot, NO_MOMENT, start, _VERSIONS_MAX)
    files = there(store, plan.files)
    for path in files:
        store.delete(path)
    keeper.checkpoint_without_removed(snapshot.version)
    deleted = {**swept.files, **files}
    return EndedVersions(
        version=snapshot.version,
        versions=snapshot.version - start,
        files=len(deleted),
        bytes=sum(deleted.values()),
        log_files=mirrored + clean_up(store, _ALWAYS) + _delete_of_others(store),
    )


def _ended(
    store: Store,
    snapshot: Snapshot,
    commit: CommitIntent,
    generation: int,
    counts: Mapping[str, int],
    retries: Retries,
) -> Snapshot:
    while True:
        snapshot = latest(store, snapshot)
        retention = snapshot.manifest.retention
        outcome = commit(EndVersions(generation, retention, retention.vacuumed, counts))
        if isinstance(outcome, Committed):
            return outcome.snapshot
        if snapshot.manifest.retention.pins:
            raise RetryableError("a version was pinned meanwhile; unpin it and erase again")
        retries.require_another("other writers committed first every time; erase again")


def _delete_of_others(store: Store) -> int:
    """Delete files that another writer left in the log before the table was adopted, since they
    contain bounds of values.
    """
    deleted = 0
    for path in list(store.list(f"{LOG}/")):
        if path != LAST_CHECKPOINT and not _OURS.fullmatch(path.removeprefix(f"{LOG}/")):
            store.delete(path)
            deleted += 1
    return deleted
