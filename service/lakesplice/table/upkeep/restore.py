"""Restore: an older version's state becomes a new commit.

Files, deltas, index runs and schema are the older version's, and so are the offsets: later records
are read again. The rows end the same, since no change makes a row older.
"""

from __future__ import annotations

from lakesplice.errors import UsageError
from lakesplice.table.protocol.commit import CommitIntent, Committed
from lakesplice.table.protocol.intents import Restore
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest, open_retained


def plan_restore(
    store: Store, snapshot: Snapshot, version: int, generation: int | None = None
) -> Restore:
    """Return the intent that makes the state of `version` the next one after `snapshot`, the
    newest.

    `generation` is that of the driver or command, None for a table fed by hand. Blocks.
    `VersionNotFoundError` for a version that is past its retention or doesn't exist, `UsageError`
    for the newest version.
    """
    if version == snapshot.version:
        raise UsageError("the version is the newest one; nothing to restore", version=version)
    target = open_retained(store, snapshot, version)
    stats = {path: add.stats for path, add in target.log.adds.items()}
    number = snapshot.manifest.generation if generation is None else generation
    return Restore(number, snapshot.version, version, target.manifest, stats)


def restore(
    store: Store,
    snapshot: Snapshot,
    version: int,
    commit: CommitIntent,
    generation: int | None = None,
    *,
    retries: Retries,
) -> Snapshot:
    """Make the state of `version` the table's newest one, and return the new version.

    `commit` makes an intent the next version. Errors as in `plan_restore`; `RetryableError` if
    others always committed first, as often as `retries` allow.
    """
    while True:
        snapshot = latest(store, snapshot)
        outcome = commit(plan_restore(store, snapshot, version, generation))
        if isinstance(outcome, Committed):
            return outcome.snapshot
        retries.require_another()
