"""How each intent changes the manifest and the log once its preconditions hold; without side
effects.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.manifest import Manifest
from lakesplice.table.protocol.intents import (
    Adopt,
    Backfill,
    ChangePins,
    Cluster,
    Create,
    EndVersions,
    Erase,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    ReplaceTable,
    Replay,
    Restore,
    SetChangeFeed,
    SetConstraints,
    Splice,
    Swap,
    Sweep,
    Upsert,
)
from lakesplice.table.protocol.transitions.erasure import after_end, after_erasure
from lakesplice.table.protocol.transitions.feed import (
    END_FEED,
    START_FEED,
    after_setting,
    without_images,
)
from lakesplice.table.protocol.transitions.parts import CommitPoint, Transition
from lakesplice.table.protocol.transitions.rows import (
    after_backfill,
    after_ingest,
    after_replay,
    after_upsert,
)
from lakesplice.table.protocol.transitions.tables import (
    after_adoption,
    after_constraints,
    after_create,
    after_redirect,
    after_replacement,
    after_restore,
    after_schema_change,
    after_swap,
)
from lakesplice.table.protocol.transitions.upkeep import (
    after_clustering,
    after_expiry,
    after_file_merge,
    after_index_merge,
    after_purge,
    after_splice,
    after_sweep,
)


def transition(before: Manifest, intent: Intent, moment: CommitPoint) -> Transition:
    """Return the result of `intent` on `before`; `UsageError` if the intent contradicts itself."""
    before = without_images(before)
    if not isinstance(intent, Upsert):  # an upsert has no driver and replaces none
        before = replace(before, generation=intent.generation)
    match intent:
        case Create() | Adopt():
            return _born(intent, moment)
        case Ingest():
            return after_ingest(before, intent, moment)
        case Upsert():
            return after_upsert(before, intent, moment)
        case Splice():
            return after_splice(before, intent, moment)
        case FileMerge():
            return after_file_merge(before, intent, moment)
        case Purge() | Erase() | Cluster():
            return _in_new_groups(before, intent, moment)
        case IndexMerge():
            return after_index_merge(before, intent)
        case Evolve() | SetConstraints():
            return _described_anew(before, intent, moment)
        case Redirect() | Replay() | Backfill():
            return _of_source(before, intent, moment)
        case _:
            return _of_versions(before, intent, moment)


def _born(intent: Create | Adopt, moment: CommitPoint) -> Transition:
    if isinstance(intent, Create):
        return after_create(intent, moment)
    return after_adoption(intent, moment)


def _in_new_groups(
    before: Manifest, intent: Purge | Erase | Cluster, moment: CommitPoint
) -> Transition:
    if isinstance(intent, Purge):
        return after_purge(before, intent, moment)
    if isinstance(intent, Cluster):
        return after_clustering(before, intent, moment)
    return after_erasure(before, intent, moment)


def _described_anew(
    before: Manifest, intent: Evolve | SetConstraints, moment: CommitPoint
) -> Transition:
    if isinstance(intent, Evolve):
        return after_schema_change(before, intent, moment)
    return after_constraints(before, intent, moment)


def _of_source(
    before: Manifest, intent: Redirect | Replay | Backfill, moment: CommitPoint
) -> Transition:
    if isinstance(intent, Backfill):
        return after_backfill(before, intent, moment)
    if isinstance(intent, Redirect):
        return after_redirect(before, intent, moment)
    return after_replay(before, intent, moment)


def _of_versions(
    before: Manifest,
    intent: Expire
    | ChangePins
    | Note
    | Sweep
    | Restore
    | Swap
    | ReplaceTable
    | SetChangeFeed
    | EndVersions,
    moment: CommitPoint,
) -> Transition:
    match intent:
        case Expire():
            kept, operation = after_expiry(before.retention, intent), "VACUUM"
            return Transition(replace(before, retention=kept), operation, counts=intent.counts)
        case ChangePins():
            kept = replace(before.retention, pins=intent.pins)
            return Transition(
                replace(before, retention=kept), intent.operation, counts=intent.counts
            )
        case Note():
            return Transition(before, intent.operation, counts=intent.counts)
        case Sweep():
            kept = after_sweep(before.retention, intent, moment.version, moment.timestamp_ms)
            return Transition(replace(before, retention=kept), "SWEEP")
        case EndVersions():
            return after_end(before, intent, moment)
        case Restore():
            return after_restore(before, intent, moment)
        case Swap():
            return after_swap(before, intent, moment)
        case ReplaceTable():
            return after_replacement(before, intent, moment)
        case SetChangeFeed():
            manifest, actions = after_setting(before, intent, moment.version, moment.metadata)
            return Transition(manifest, START_FEED if intent.on else END_FEED, actions)
