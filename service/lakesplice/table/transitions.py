"""What each intent makes of a manifest and of the log: pure, once its preconditions hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import (
    OUR_PROTOCOL,
    Action,
    Add,
    ApplicationTransaction,
    Remove,
    TableMetadata,
)
from lakesplice.formats.log.schema_json import encode_schema
from lakesplice.formats.parquet import stats_columns
from lakesplice.model.manifest import DeltaRef, Manifest, RunRef, SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.table.intents import (
    Counts,
    Create,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    NewFile,
    Redirect,
    Restore,
    Splice,
    Sweep,
    Upsert,
)

STATS_COLUMNS = "delta.dataSkippingStatsColumns"

RESTORE = "RESTORE"


@dataclass(frozen=True, slots=True)
class Moment:
    """Where and when a commit stands: its version, its time, and the table's metadata before it."""

    version: int
    timestamp_ms: int
    metadata: TableMetadata


@dataclass(frozen=True, slots=True)
class Transition:
    """The next manifest, the actions beside commit info and pointer, and what to say of it."""

    manifest: Manifest
    operation: str
    actions: tuple[Action, ...] = ()
    counts: Counts | None = None


def transition(before: Manifest, intent: Intent, moment: Moment) -> Transition:
    """Return what `intent` makes of `before`; `UsageError` if it contradicts itself."""
    if not isinstance(intent, Upsert):  # which comes without a driver and deposes none
        before = replace(before, generation=intent.generation)
    match intent:
        case Create():
            return _create(intent, moment)
        case Ingest():
            return _ingest(before, intent, moment)
        case Upsert():
            return _upsert(before, intent, moment)
        case Splice():
            return _splice(before, intent, moment)
        case FileMerge():
            return _file_merge(before, intent, moment)
        case IndexMerge():
            return _index_merge(before, intent)
        case Evolve():
            return _evolve(before, intent, moment)
        case Redirect():
            return _redirect(before, intent, moment)
        case Expire() | Sweep() | Restore():
            return _of_versions(before, intent, moment)


def _of_versions(before: Manifest, intent: Expire | Sweep | Restore, moment: Moment) -> Transition:
    match intent:
        case Expire():
            return _expire(before, intent)
        case Sweep():
            return _sweep(before, intent, moment)
        case Restore():
            return _restore(before, intent, moment)


def view_floor(manifest: Manifest) -> dict[int, int]:
    """Per partition the offset below which every change is in the read-optimised view."""
    if manifest.source is None:
        return {}
    floor = {number: state.next_offset for number, state in manifest.source.partitions.items()}
    for delta in manifest.deltas:
        for partition, offset in delta.floor.items():
            floor[partition] = min(offset, floor.get(partition, offset))
    return floor


def _create(intent: Create, moment: Moment) -> Transition:
    manifest = Manifest(
        intent.generation,
        intent.schema,
        intent.source,
        files={new.base.path: new.base for new in intent.files},
        runs=_stamped(intent.runs, moment.version),
        parked=intent.parked,
        upserts=intent.upserts,
    )
    retention = f"interval {intent.log_retention_hours} hours"
    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.logRetentionDuration": retention,
        # Delta's own Spark connector opens no version older than this.
        "delta.deletedFileRetentionDuration": retention,
    }
    metadata = _with_schema(replace(moment.metadata, properties=properties), intent.schema)
    adds = tuple(_add(new, moment) for new in intent.files)
    return Transition(manifest, "CREATE TABLE", (OUR_PROTOCOL, metadata, *adds), intent.counts)


def _ingest(before: Manifest, intent: Ingest, moment: Moment) -> Transition:
    _require_addressed(intent)
    files = dict(before.files) | {new.base.path: new.base for new in intent.files}
    floor = _floor(before.source, intent.source_from)
    manifest = replace(
        before,
        source=intent.source_to,
        files=files,
        deltas=before.deltas
        + tuple(replace(d, committed_ms=moment.timestamp_ms, floor=floor) for d in intent.deltas),
        runs=before.runs + _stamped(intent.runs, moment.version),
        dead_letters=before.dead_letters
        + tuple(replace(d, committed_ms=moment.timestamp_ms) for d in intent.dead_letters),
        parked=intent.parked,
    )
    actions = tuple(_add(new, moment) for new in intent.files)
    return Transition(manifest, "INGEST", actions, intent.counts)


def _upsert(before: Manifest, intent: Upsert, moment: Moment) -> Transition:
    _require_addressed(intent)
    manifest = replace(
        before,
        upserts=intent.upserts,
        files=dict(before.files) | {new.base.path: new.base for new in intent.files},
        deltas=before.deltas
        + tuple(replace(delta, committed_ms=moment.timestamp_ms) for delta in intent.deltas),
        runs=before.runs + _stamped(intent.runs, moment.version),
    )
    actions: tuple[Action, ...] = tuple(_add(new, moment) for new in intent.files)
    if intent.application:
        number = intent.upserts.transactions[intent.application]
        told = ApplicationTransaction(intent.application, number, moment.timestamp_ms)
        actions = (told, *actions)
    return Transition(manifest, "UPSERT", actions, intent.counts)


def _splice(before: Manifest, intent: Splice, moment: Moment) -> Transition:
    files = dict(before.files)
    for path, new in intent.replaced.items():
        if files.pop(path).segments != new.base.segments:
            raise UsageError("a splice changed a file's segments", path=path, new=new.base.path)
        files[new.base.path] = new.base
    deltas = (_without(delta, intent.consumed) for delta in before.deltas)
    manifest = replace(before, files=files, deltas=tuple(d for d in deltas if d.waiting))
    removes = tuple(_remove(before, path, moment) for path in intent.replaced)
    adds = tuple(_add(new, moment) for new in intent.replaced.values())
    return Transition(manifest, "SPLICE", removes + adds, intent.counts)


def _file_merge(before: Manifest, intent: FileMerge, moment: Moment) -> Transition:
    files, new = dict(before.files), intent.output
    segments = tuple(segment for path in intent.inputs for segment in files.pop(path).segments)
    if segments != new.base.segments:
        raise UsageError("a merge changed the files' segments", path=new.base.path)
    files[new.base.path] = new.base
    removes = tuple(_remove(before, path, moment, data_change=False) for path in intent.inputs)
    add = _add(new, moment, data_change=False)
    manifest = replace(before, files=files)
    return Transition(manifest, "FILE MERGE", (*removes, add), intent.counts)


def _index_merge(before: Manifest, intent: IndexMerge) -> Transition:
    paths = [run.file.path for run in before.runs]
    start = paths.index(intent.inputs[0])
    stop = start + len(intent.inputs)
    newest = max(run.keys_version for run in before.runs[start:stop])
    output = replace(intent.output, keys_version=newest)
    manifest = replace(before, runs=(*before.runs[:start], output, *before.runs[stop:]))
    return Transition(manifest, "INDEX MERGE", counts={"numRuns": len(intent.inputs)})


def _evolve(before: Manifest, intent: Evolve, moment: Moment) -> Transition:
    metadata = _with_schema(moment.metadata, intent.schema)
    return Transition(replace(before, schema=intent.schema), "CHANGE SCHEMA", (metadata,))


def _with_schema(metadata: TableMetadata, schema: TableSchema) -> TableMetadata:
    properties = dict(metadata.properties)
    if columns := stats_columns(schema):
        properties[STATS_COLUMNS] = ",".join(columns)
    return replace(metadata, schema_json=encode_schema(schema), properties=properties)


def _redirect(before: Manifest, intent: Redirect, moment: Moment) -> Transition:
    runs = before.runs if intent.runs is None else _stamped(intent.runs, moment.version)
    source = before.source if intent.source is None else intent.source
    manifest = replace(before, source=source, parked=intent.parked, runs=runs)
    return Transition(manifest, "REDIRECT")


def _expire(before: Manifest, intent: Expire) -> Transition:
    retention = replace(
        before.retention,
        retained_from=intent.retained_from,
        vacuumed=intent.vacuumed,
        restores=tuple(v for v in before.retention.restores if v >= intent.retained_from),
    )
    return Transition(replace(before, retention=retention), "VACUUM", counts=intent.counts)


def _sweep(before: Manifest, intent: Sweep, moment: Moment) -> Transition:
    asked = moment.version if intent.writers_from is None else intent.writers_from
    retention = replace(
        before.retention,
        writers_from=max(before.retention.writers_from, asked),
        swept=moment.version,
        swept_ms=moment.timestamp_ms,
    )
    return Transition(replace(before, retention=retention), "SWEEP")


def _restore(before: Manifest, intent: Restore, moment: Moment) -> Transition:
    """The old content, but what was promised of older versions stays promised.

    Who writes now located rows in a state that is no more: all have to write again.
    """
    retention = replace(
        before.retention,
        restores=(*before.retention.restores, moment.version),
        writers_from=moment.version,
    )
    manifest = replace(intent.manifest, generation=before.generation, retention=retention)
    gone = [path for path in before.files if path not in manifest.files]
    back = [file for path, file in manifest.files.items() if path not in before.files]
    schema: tuple[Action, ...] = ()
    if manifest.schema != before.schema:
        schema = (_with_schema(moment.metadata, manifest.schema),)
    removes = tuple(_remove(before, path, moment) for path in gone)
    adds = tuple(
        Add(file.path, file.bytes, moment.timestamp_ms, True, intent.stats[file.path])
        for file in back
    )
    counts = {"version": intent.version, "files_back": len(back), "files_gone": len(gone)}
    return Transition(manifest, RESTORE, schema + removes + adds, counts)


def _require_addressed(intent: Ingest | Upsert) -> None:
    for delta in intent.deltas:
        if not intent.addressed_groups >= delta.waiting.keys():
            raise UsageError(
                "a delta holds groups that its commit does not name", path=delta.file.path
            )


def _floor(source: SourceState | None, source_from: Mapping[int, int]) -> dict[int, int]:
    partitions = {} if source is None else source.partitions
    return {number: state.next_offset for number, state in partitions.items()} | dict(source_from)


def _stamped(runs: tuple[RunRef, ...], version: int) -> tuple[RunRef, ...]:
    return tuple(replace(run, keys_version=version) for run in runs)


def _without(delta: DeltaRef, consumed: Mapping[str, frozenset[int]]) -> DeltaRef:
    done = consumed.get(delta.file.path, frozenset())
    if not done:
        return delta
    return replace(delta, waiting={g: n for g, n in delta.waiting.items() if g not in done})


def _add(new: NewFile, moment: Moment, *, data_change: bool = True) -> Add:
    base = new.base
    return Add(base.path, base.bytes, moment.timestamp_ms, data_change, new.stats)


def _remove(before: Manifest, path: str, moment: Moment, *, data_change: bool = True) -> Remove:
    return Remove(path, before.files[path].bytes, moment.timestamp_ms, data_change)
