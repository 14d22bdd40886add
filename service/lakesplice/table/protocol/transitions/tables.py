"""How commits about a table as a whole change the manifest and the log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import FEED_PROPERTY, OUR_PROTOCOL, Action, Add, Remove
from lakesplice.formats.parquet import stats_with_nulls
from lakesplice.model.manifest import ChangeFeed, Manifest, Retention, UpsertState
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.intents import (
    Adopt,
    Create,
    Evolve,
    Redirect,
    ReplaceTable,
    Restore,
    SetConstraints,
    Swap,
)
from lakesplice.table.protocol.new_files import adds_again, adds_of, removes_of
from lakesplice.table.protocol.transitions.feed import protocol_of
from lakesplice.table.protocol.transitions.parts import (
    COMMIT_TIMES,
    CommitPoint,
    Transition,
    stamped_runs,
    table_properties,
    with_replaced,
    with_schema,
)
from lakesplice.table.protocol.transitions.sources import redirected

RESTORE = "RESTORE"
REPLACE = "REPLACE TABLE"
RESET = "RESET"
ADOPT = "ADOPT"
SWAP = "SWAP"
SET_CONSTRAINTS = "SET CONSTRAINTS"


def after_create(intent: Create, moment: CommitPoint) -> Transition:
    """Return version 0 of a table."""
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


def after_adoption(intent: Adopt, moment: CommitPoint) -> Transition:
    """Return the first version of a table that is ours from now on. The commit adds its files once
    more, with the statistics that our commits have.

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


def after_schema_change(before: Manifest, intent: Evolve, moment: CommitPoint) -> Transition:
    """Return the table with another schema."""
    metadata = with_schema(moment.metadata, intent.schema, before.upserts)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    manifest = replace(before, schema=intent.schema, files=files)
    told = _with_added_columns(before.files.keys() - intent.replaced.keys(), intent.schema, moment)
    return Transition(manifest, "CHANGE SCHEMA", (metadata, *removes, *adds, *told))


def _with_added_columns(
    paths: Collection[str], schema: TableSchema, moment: CommitPoint
) -> tuple[Add, ...]:
    """The actions by which files that lack columns say that these are null in all of their rows."""
    stats = {path: stats_with_nulls(moment.adds[path].stats, schema) for path in sorted(paths)}
    return tuple(
        replace(moment.adds[path], stats=told, data_change=False)
        for path, told in stats.items()
        if told is not None
    )


def after_redirect(before: Manifest, intent: Redirect, moment: CommitPoint) -> Transition:
    """Return the table with another source, index or parking."""
    runs = before.runs if intent.runs is None else stamped_runs(intent.runs, moment.version)
    return Transition(replace(redirected(before, intent, moment.version), runs=runs), "REDIRECT")


def after_restore(before: Manifest, intent: Restore, moment: CommitPoint) -> Transition:
    """Return the table with an older content; promises about older versions are kept.

    Writers that run meanwhile located rows in a state that no longer exists: they must rewrite
    their files.
    """
    retention = replace(
        before.retention,
        restores=(*before.retention.restores, moment.version),
        writers_from=moment.version,
    )
    manifest = replace(
        intent.manifest,
        generation=before.generation,
        retention=retention,
        feed=before.feed,
        erased=before.erased,
    )
    gone = [path for path in before.files if path not in manifest.files]
    back = [path for path in manifest.files if path not in before.files]
    schema: tuple[Action, ...] = ()
    if manifest.schema != before.schema or _constraints(manifest) != _constraints(before):
        schema = _metadata(manifest, moment)
    removes = removes_of(before, gone, moment.timestamp_ms)
    adds = adds_again(manifest, back, intent.stats, moment.timestamp_ms)
    if intent.version is None:
        return Transition(manifest, RESET, schema + removes, {"files_gone": len(gone)})
    actions = schema + removes + adds + intent.undoing
    counts = {
        "version": intent.version,
        "files_back": sum(isinstance(action, Add) for action in actions),
        "files_gone": sum(isinstance(action, Remove) for action in actions),
    }
    return Transition(manifest, RESTORE, actions, counts)


def after_replacement(before: Manifest, intent: ReplaceTable, moment: CommitPoint) -> Transition:
    """Return the table with other rows and another schema; promises about older versions are kept.

    Writers that run meanwhile must write their files again, since the rows that they located are
    gone.
    """
    manifest = Manifest(
        before.generation,
        intent.schema,
        files={new.base.path: new.base for new in intent.files},
        runs=stamped_runs(intent.runs, moment.version),
        upserts=intent.upserts,
        retention=_retained(before.retention, moment.version),
        feed=before.feed,
        erased=before.erased,
    )
    removes = removes_of(before, before.files, moment.timestamp_ms)
    adds = adds_of(intent.schema, intent.files, moment.timestamp_ms)
    actions = (*_metadata(manifest, moment), *removes, *adds)
    return Transition(manifest, REPLACE, actions, intent.counts)


def after_constraints(before: Manifest, intent: SetConstraints, moment: CommitPoint) -> Transition:
    """Return the table with other constraints. It counts as an upsert, so that those which were
    written without them are written again.
    """
    manifest = replace(before, upserts=replace(intent.upserts, position=moment.version))
    return Transition(manifest, SET_CONSTRAINTS, _metadata(manifest, moment))


def _constraints(manifest: Manifest) -> tuple[Mapping[str, str], tuple[str, ...]]:
    upserts = manifest.upserts
    return ({}, ()) if upserts is None else (upserts.checks, upserts.required)


def _metadata(manifest: Manifest, moment: CommitPoint) -> tuple[Action, ...]:
    """The actions for schema and constraints, with the feature that checks need."""
    metadata = with_schema(moment.metadata, manifest.schema, manifest.upserts)
    if not _constraints(manifest)[0]:
        return (metadata,)
    has_feed = FEED_PROPERTY in metadata.properties
    return protocol_of(change_feed=has_feed, checks=True), metadata


def after_swap(before: Manifest, intent: Swap, moment: CommitPoint) -> Transition:
    """Return the table with the shadow's content; promises about older versions are kept.

    Rows were located in a state that no longer exists, so all present writers must rewrite their
    files.
    """
    if intent.manifest.backfill is None:
        raise UsageError("only a shadow can take a table's place")
    is_new = intent.planned_on is None
    manifest = replace(
        intent.manifest,
        generation=before.generation,
        retention=Retention() if is_new else _retained(before.retention, moment.version),
        backfill=None,
        feed=before.feed,
        erased=before.erased,
        runs=stamped_runs(intent.manifest.runs, moment.version),
        sources={
            topic: _located(source, moment.version, merged=intent.manifest.is_merged)
            for topic, source in intent.manifest.sources.items()
        },
    )
    adds = adds_again(manifest, manifest.files, intent.stats, moment.timestamp_ms)
    removes = removes_of(before, before.files, moment.timestamp_ms)
    counts = {"files": len(adds), "files_gone": len(removes)}
    head = _head(before, intent, moment, manifest)
    return Transition(manifest, SWAP, (*head, *removes, *adds), counts)


def _head(
    before: Manifest, intent: Swap, moment: CommitPoint, manifest: Manifest
) -> tuple[Action, ...]:
    """Return the actions for metadata and protocol that differ between the two."""
    if intent.planned_on is None:
        properties = table_properties(intent.log_retention_hours)
        metadata = replace(moment.metadata, properties=properties)
        return OUR_PROTOCOL, with_schema(metadata, manifest.schema)
    if manifest.schema == before.schema:
        return ()
    return (with_schema(moment.metadata, manifest.schema),)


def _retained(retention: Retention, version: int) -> Retention:
    return replace(retention, restores=(*retention.restores, version), writers_from=version)


def _located(source: SourceState, version: int, *, merged: bool) -> SourceState:
    return replace(source, keys_version=version) if merged else source
