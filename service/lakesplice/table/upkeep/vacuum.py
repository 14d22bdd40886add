"""Vacuum in one call, for the library and the command line, or only a list of what it would delete;
and the clock by which both decide what is old.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.errors import RetryableError, UsageError
from lakesplice.model.moments import EpochMs, earlier, outside
from lakesplice.planning.upkeep.retention import (
    ORPHAN_SECONDS_MIN,
    RETENTION_SECONDS_MIN,
    deletion_moment,
)
from lakesplice.table.protocol.commit import CommitIntent, Conflict
from lakesplice.table.protocol.layout import probe_path
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.upkeep.expiry import Expiry, plan_expiry, there
from lakesplice.table.upkeep.orphans import Orphans, find_orphans

_VERSIONS_MAX = 1_000_000
_HOURS_MAX = 24 * 366 * 1000


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum deleted, or would delete: paths with their sizes in bytes.

    `expired` are the files that only versions below `retained_from` named, `orphans` those that no
    version ever named.
    """

    retained_from: int
    expired: Mapping[str, int] = field(default_factory=dict)
    orphans: Mapping[str, int] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.expired) + len(self.orphans)

    @property
    def bytes(self) -> int:
        """Their size in bytes."""
        return sum(self.expired.values()) + sum(self.orphans.values())


def require_hours(hours: object) -> None:
    """Check that the value is a length of time, which may be negative; `UsageError` if not."""
    if not isinstance(hours, int | float) or not -_HOURS_MAX <= hours <= _HOURS_MAX:
        raise UsageError("give a number of hours", hours=hours, most=_HOURS_MAX)


def require_safe_retention(seconds: float, *, readers_may_fail: bool) -> None:
    """Check that the retention harms no present reader or writer, unless that is allowed."""
    if seconds < RETENTION_SECONDS_MIN and not readers_may_fail:
        raise UsageError(
            "files could be deleted that a reader or a compaction still needs; set a longer"
            " retention, or state that readers may fail",
            retention_seconds=seconds,
            least=RETENTION_SECONDS_MIN,
        )


def plan_vacuum(
    store: Store, snapshot: Snapshot, now_ms: EpochMs, retention_seconds: float
) -> Vacuumed:
    """Return what a vacuum would delete, and change nothing. Blocks: lists the table."""
    expired_ms = earlier(now_ms, retention_seconds)
    plan = plan_expiry(store, snapshot, expired_ms, versions_max=_VERSIONS_MAX, now_ms=now_ms)
    expired = there(store, plan.files)
    orphans = find_orphans(store, snapshot, orphans_before_ms(now_ms, retention_seconds))
    others = {path: size for path, size in orphans.items() if path not in expired}
    return Vacuumed(plan.retained_from, expired, others)


def vacuum(
    store: Store,
    snapshot: Snapshot,
    commit: CommitIntent,
    now_ms: EpochMs,
    retention_seconds: float,
    generation: int | None = None,
) -> Vacuumed:
    """Delete the files of expired versions and, at once, orphans; present writers have to write
    again.

    `generation` as in `Expiry`. Blocks: lists the table. `RetryableError` if others vacuum it at
    the same time; what was deleted by then stays deleted.
    """
    expired_ms = earlier(now_ms, retention_seconds)
    expiry, done = Expiry(store, commit, generation), False
    expired: dict[str, int] = {}
    while not done:
        outcome = expiry.run(snapshot, expired_ms, now_ms)
        if isinstance(outcome, Conflict):
            raise RetryableError(f"{outcome.detail}; vacuum again", path=str(store))
        expired |= outcome.files
        done, retained_from = outcome.done, outcome.retained_from
        snapshot = latest(store, snapshot)
    before_ms = orphans_before_ms(now_ms, retention_seconds)
    swept = Orphans(store, commit, generation).sweep(snapshot, before_ms, at_once=True)
    return Vacuumed(retained_from, expired, swept.files)


def orphans_before_ms(now_ms: EpochMs, retention_seconds: float) -> EpochMs:
    """Return the moment before which a file must have been written to count as an orphan."""
    return earlier(now_ms, max(retention_seconds, ORPHAN_SECONDS_MIN))


def time_for_deletion(store: Store, clock: Clock, entropy: Entropy) -> EpochMs:
    """Return the present moment by the clock, or by the store's if the clock is ahead of it:
    otherwise what isn't old yet would be deleted.

    Blocks: writes an empty file into the log's folder of a table, and deletes it at once. Raises
    `StorageError`. In a folder of this machine both clocks are one.
    """
    path, before_ms = probe_path(entropy), clock.now_ms()
    store.put_new(path, b"")
    try:
        after_ms, written_ms = clock.now_ms(), store.modified_ms(path)
    finally:
        store.delete(path)
    ahead = 0.0 if written_ms is None else outside(written_ms, before_ms, after_ms)
    return deletion_moment(after_ms, ahead)
