"""How each intent changes the manifest and the log once its preconditions hold; without side
effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import (
    FEED_PROPERTY,
    OUR_PROTOCOL,
    Action,
    Add,
    ApplicationTransaction,
    Remove,
)
from lakesplice.model.manifest import ChangeFeed, DeltaRef, Manifest, Retention, UpsertState
from lakesplice.table.protocol.feed_states import (
    END_FEED,
    START_FEED,
    after_setting,
    protocol_of,
    with_images,
    without_images,
)
from lakesplice.table.protocol.file_actions import adds_of, partition_values, removes_of
from lakesplice.table.protocol.intents import (
    Adopt,
    ChangePins,
    Create,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    Replay,
    Restore,
    SetChangeFeed,
    Splice,
    Sweep,
    Upsert,
)
from lakesplice.table.protocol.offsets import offsets_from, reached
from lakesplice.table.protocol.retention_states import after_expiry, after_sweep
from lakesplice.table.protocol.shadow_intents import Backfill, Swap
from lakesplice.table.protocol.shadow_transitions import backfilled, swapped
from lakesplice.table.protocol.source_states import fed, purged, redirected, replayed, stamp
from lakesplice.table.protocol.transition_parts import (
    COMMIT_TIMES,
    CommitPoint,
    Transition,
    stamped_runs,
    table_properties,
    with_replaced,
    with_schema,
)

RESTORE = "RESTORE"
RESET = "RESET"
ADOPT = "ADOPT"
PURGE = "PURGE"


def transition(before: Manifest, intent: Intent, moment: CommitPoint) -> Transition:
    """Return the result of `intent` on `before`; `UsageError` if the intent contradicts itself."""
    before = without_images(before)
    if not isinstance(intent, Upsert):  # which comes without a driver and deposes none
        before = replace(before, generation=intent.generation)
    match intent:
        case Create() | Adopt():
            return _born(intent, moment)
        case Ingest():
            return _ingest(before, intent, moment)
        case Upsert():
            return _upsert(before, intent, moment)
        case Splice():
            return _splice(before, intent, moment)
        case FileMerge():
            return _file_merge(before, intent, moment)
        case Purge():
            return _purge(before, intent, moment)
        case IndexMerge():
            return _index_merge(before, intent)
        case Evolve():
            return _evolve(before, intent, moment)
        case Redirect() | Replay() | Backfill():
            return _of_source(before, intent, moment)
        case Expire() | ChangePins() | Note() | Sweep() | Restore() | Swap() | SetChangeFeed():
            return _of_versions(before, intent, moment)


def _born(intent: Create | Adopt, moment: CommitPoint) -> Transition:
    return _create(intent, moment) if isinstance(intent, Create) else _adopt(intent, moment)


def _of_source(
    before: Manifest, intent: Redirect | Replay | Backfill, moment: CommitPoint
) -> Transition:
    if isinstance(intent, Backfill):
        return backfilled(before, intent, moment)
    if isinstance(intent, Redirect):
        return _redirect(before, intent, moment)
    return _replay(before, intent, moment)


def _of_versions(
    before: Manifest,
    intent: Expire | ChangePins | Note | Sweep | Restore | Swap | SetChangeFeed,
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
        case Restore():
            return _restore(before, intent, moment)
        case Swap():
            return swapped(before, intent, moment)
        case SetChangeFeed():
            manifest, actions = after_setting(before, intent, moment.version, moment.metadata)
            return Transition(manifest, START_FEED if intent.on else END_FEED, actions)


def _create(intent: Create, moment: CommitPoint) -> Transition:
    manifest = Manifest(
        intent.generation,
        intent.schema,
        {} if intent.source is None else {intent.source.topic: intent.source},
        files={new.base.path: new.base for new in intent.files},
        runs=stamped_runs(intent.runs, moment.version),
        parked=intent.parked,
        upserts=intent.upserts,
        backfill=intent.backfill,
        feed=ChangeFeed(moment.version) if intent.change_feed else None,
    )
    properties = table_properties(intent.log_retention_hours)
    if intent.change_feed:
        properties[FEED_PROPERTY] = "true"
    protocol = protocol_of(change_feed=intent.change_feed)
    metadata = with_schema(replace(moment.metadata, properties=properties), intent.schema)
    adds = adds_of(intent.schema, intent.files, moment.timestamp_ms)
    return Transition(manifest, "CREATE TABLE", (protocol, metadata, *adds), intent.counts)


def _adopt(intent: Adopt, moment: CommitPoint) -> Transition:
    """The commit adds the files once more, with the statistics that our commits have.

    Versions from before the adoption can't be read, and files that only they name aren't kept.
    """
    version = moment.version
    retention = Retention(retained_from=version, vacuumed=version)
    manifest = Manifest(
        intent.generation,
        intent.schema,
        files={new.base.path: new.base for new in intent.files},
        runs=stamped_runs(intent.runs, version),
        upserts=UpsertState(0, insert_only=intent.insert_only),
        retention=retention if version else Retention(),
    )
    properties = {**intent.properties, **table_properties(intent.log_retention_hours)}
    if version and intent.properties.get(COMMIT_TIMES) != "true":
        properties["delta.inCommitTimestampEnablementVersion"] = str(version)
        properties["delta.inCommitTimestampEnablementTimestamp"] = str(moment.timestamp_ms)
    metadata = with_schema(replace(moment.metadata, properties=properties), intent.schema)
    gone = tuple(
        Remove(
            add.path, add.bytes, moment.timestamp_ms, False, add.partition_values, add.log_spelling
        )
        for add in intent.gone
    )
    adds = adds_of(intent.schema, intent.files, moment.timestamp_ms, data_change=not version)
    return Transition(manifest, ADOPT, (OUR_PROTOCOL, metadata, *gone, *adds), intent.counts)


def _ingest(before: Manifest, intent: Ingest, moment: CommitPoint) -> Transition:
    _require_addressed(intent)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    files |= {new.base.path: new.base for new in intent.files}
    known = before.sources.get(intent.source_to.topic)
    floor = offsets_from(known, intent.source_from)
    before = fed(before, intent, moment.version)
    topic, now_ms = stamp(before, intent.source_to.topic), moment.timestamp_ms
    manifest = replace(
        before,
        files=files,
        deltas=before.deltas
        + tuple(replace(d, committed_ms=now_ms, floor=floor, topic=topic) for d in intent.deltas),
        runs=before.runs + stamped_runs(intent.runs, moment.version),
        dead_letters=before.dead_letters
        + tuple(
            replace(
                letters,
                committed_ms=now_ms,
                position=reached(known, intent.source_from),
                topic=topic,
            )
            for letters in intent.dead_letters
        ),
    )
    manifest, images = with_images(manifest, intent)
    new = adds_of(before.schema, intent.files, moment.timestamp_ms)
    return Transition(manifest, "INGEST", (*removes, *adds, *new, *images), intent.counts)


def _upsert(before: Manifest, intent: Upsert, moment: CommitPoint) -> Transition:
    _require_addressed(intent)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    left = (_without(delta, intent.consumed) for delta in before.deltas)
    manifest = replace(
        before,
        upserts=intent.upserts,
        files=files | {new.base.path: new.base for new in intent.files},
        deltas=tuple(delta for delta in left if delta.waiting)
        + tuple(replace(delta, committed_ms=moment.timestamp_ms) for delta in intent.deltas),
        runs=before.runs + stamped_runs(intent.runs, moment.version),
    )
    manifest, images = with_images(manifest, intent)
    inserts = adds_of(before.schema, intent.files, moment.timestamp_ms)
    actions: tuple[Action, ...] = (*removes, *adds, *inserts, *images)
    if intent.application:
        number = intent.upserts.transactions[intent.application]
        parameters = ApplicationTransaction(intent.application, number, moment.timestamp_ms)
        actions = (parameters, *actions)
    return Transition(manifest, "UPSERT", actions, intent.counts)


def _splice(before: Manifest, intent: Splice, moment: CommitPoint) -> Transition:
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    deltas = (_without(delta, intent.consumed) for delta in before.deltas)
    manifest = replace(before, files=files, deltas=tuple(d for d in deltas if d.waiting))
    manifest, images = with_images(manifest, intent)
    return Transition(manifest, "SPLICE", (*removes, *adds, *images), intent.counts)


def _file_merge(before: Manifest, intent: FileMerge, moment: CommitPoint) -> Transition:
    files, new = dict(before.files), intent.output
    merged = [files.pop(path) for path in intent.inputs]
    segments = tuple(segment for file in merged for segment in file.segments)
    partitions = {file.partition for file in merged}
    if segments != new.base.segments or partitions != {new.base.partition}:
        raise UsageError("a merge changed the files' segments", path=new.base.path)
    files[new.base.path] = new.base
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, [new], moment.timestamp_ms, data_change=False)
    manifest = replace(before, files=files)
    return Transition(manifest, "FILE MERGE", (*removes, *adds), intent.counts)


def _purge(before: Manifest, intent: Purge, moment: CommitPoint) -> Transition:
    """Readers that hide deleted rows see no change."""
    files = {path: file for path, file in before.files.items() if path not in intent.inputs}
    files |= {new.base.path: new.base for new in intent.outputs}
    runs = () if intent.run is None else (intent.run,)
    kept = before.runs + stamped_runs(runs, moment.version)
    manifest = replace(purged(before, intent), files=files, runs=kept)
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, intent.outputs, moment.timestamp_ms, data_change=False)
    return Transition(manifest, PURGE, removes + adds, intent.counts)


def _index_merge(before: Manifest, intent: IndexMerge) -> Transition:
    paths = [run.file.path for run in before.runs]
    start = paths.index(intent.inputs[0])
    stop = start + len(intent.inputs)
    newest = max(run.keys_version for run in before.runs[start:stop])
    output = replace(intent.output, keys_version=newest)
    manifest = replace(before, runs=(*before.runs[:start], output, *before.runs[stop:]))
    return Transition(manifest, "INDEX MERGE", counts={"numRuns": len(intent.inputs)})


def _evolve(before: Manifest, intent: Evolve, moment: CommitPoint) -> Transition:
    metadata = with_schema(moment.metadata, intent.schema)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    manifest = replace(before, schema=intent.schema, files=files)
    return Transition(manifest, "CHANGE SCHEMA", (metadata, *removes, *adds))


def _redirect(before: Manifest, intent: Redirect, moment: CommitPoint) -> Transition:
    runs = before.runs if intent.runs is None else stamped_runs(intent.runs, moment.version)
    return Transition(replace(redirected(before, intent, moment.version), runs=runs), "REDIRECT")


def _replay(before: Manifest, intent: Replay, moment: CommitPoint) -> Transition:
    before, source = replayed(before, intent, moment.version)
    floor, now_ms = offsets_from(source, {}), moment.timestamp_ms
    topic = stamp(before, intent.topic)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    stamped = tuple(replace(ref, committed_ms=now_ms, topic=topic) for ref in intent.kept)
    left = tuple(ref for ref in before.dead_letters if ref.file.path not in intent.removed)
    manifest = replace(
        before,
        files=files | {new.base.path: new.base for new in intent.files},
        deltas=before.deltas
        + tuple(replace(d, committed_ms=now_ms, floor=floor, topic=topic) for d in intent.deltas),
        runs=before.runs + stamped_runs(intent.runs, moment.version),
        dead_letters=(*stamped, *left),
    )
    manifest, images = with_images(manifest, intent)
    new = adds_of(before.schema, intent.files, moment.timestamp_ms)
    return Transition(manifest, intent.operation, (*removes, *adds, *new, *images), intent.counts)


def _restore(before: Manifest, intent: Restore, moment: CommitPoint) -> Transition:
    """The content becomes the older one, but what was promised about older versions is kept.

    Writers that run meanwhile located rows in a state that no longer exists: they have to write
    again.
    """
    retention = replace(
        before.retention,
        restores=(*before.retention.restores, moment.version),
        writers_from=moment.version,
    )
    manifest = replace(
        intent.manifest, generation=before.generation, retention=retention, feed=before.feed
    )
    gone = [path for path in before.files if path not in manifest.files]
    back = [file for path, file in manifest.files.items() if path not in before.files]
    schema: tuple[Action, ...] = ()
    if manifest.schema != before.schema:
        schema = (with_schema(moment.metadata, manifest.schema),)
    removes = removes_of(before, gone, moment.timestamp_ms)
    adds = tuple(
        Add(
            file.path,
            file.bytes,
            moment.timestamp_ms,
            True,
            intent.stats[file.path],
            partition_values(manifest.schema, file),
        )
        for file in back
    )
    if intent.version is None:
        return Transition(manifest, RESET, schema + removes, {"files_gone": len(gone)})
    counts = {"version": intent.version, "files_back": len(back), "files_gone": len(gone)}
    return Transition(manifest, RESTORE, schema + removes + adds, counts)


def _require_addressed(intent: Ingest | Upsert) -> None:
    for delta in intent.deltas:
        if not intent.addressed_groups >= delta.waiting.keys():
            raise UsageError(
                "a delta holds groups that its commit does not name", path=delta.file.path
            )


def _without(delta: DeltaRef, consumed: Mapping[str, frozenset[int]]) -> DeltaRef:
    done = consumed.get(delta.file.path, frozenset())
    if not done:
        return delta
    return replace(delta, waiting={g: n for g, n in delta.waiting.items() if g not in done})
