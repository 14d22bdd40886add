"""How a shadow takes chunks of the source's rows, and how it becomes the table."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import OUR_PROTOCOL, Action, Add
from lakesplice.model.manifest import Manifest, Retention, SourceState
from lakesplice.table.protocol.file_actions import adds_of, partition_values, removes_of
from lakesplice.table.protocol.offsets import offsets_from
from lakesplice.table.protocol.shadow_intents import Backfill, Swap
from lakesplice.table.protocol.source_states import stamp
from lakesplice.table.protocol.transition_parts import (
    CommitPoint,
    Transition,
    stamped_runs,
    table_properties,
    with_replaced,
    with_schema,
)

BACKFILL = "BACKFILL"
SWAP = "SWAP"


def backfilled(before: Manifest, intent: Backfill, moment: CommitPoint) -> Transition:
    """Return what rows read from the source make of a shadow."""
    backfill = before.backfill
    assert backfill is not None, "a precondition"
    source = before.sources[intent.topic]
    floor, topic = offsets_from(source, {}), stamp(before, intent.topic)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    if before.is_merged and intent.runs:
        before = before.with_source(replace(source, keys_version=moment.version))
    manifest = replace(
        before,
        files=files | {new.base.path: new.base for new in intent.files},
        deltas=before.deltas
        + tuple(
            replace(delta, committed_ms=moment.timestamp_ms, floor=floor, topic=topic)
            for delta in intent.deltas
        ),
        runs=before.runs + stamped_runs(intent.runs, moment.version),
        backfill=backfill.with_chunks(intent.chunks, intent.highest, intent.read_rows),
    )
    new = adds_of(before.schema, intent.files, moment.timestamp_ms)
    counts = {"chunks": len(intent.chunks), "read": intent.read_rows, **intent.counts}
    return Transition(manifest, BACKFILL, (*removes, *adds, *new), counts)


def swapped(before: Manifest, intent: Swap, moment: CommitPoint) -> Transition:
    """Return the table with the shadow's content; promises about older versions are kept.

    Rows were located in a state that no longer exists, so all present writers have to write again.
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
        runs=stamped_runs(intent.manifest.runs, moment.version),
        sources={
            topic: _located(source, moment.version, merged=intent.manifest.is_merged)
            for topic, source in intent.manifest.sources.items()
        },
    )
    adds = tuple(
        Add(
            file.path,
            file.bytes,
            moment.timestamp_ms,
            True,
            intent.stats[file.path],
            partition_values(manifest.schema, file),
        )
        for file in manifest.files.values()
    )
    removes = removes_of(before, before.files, moment.timestamp_ms)
    counts = {"files": len(adds), "files_gone": len(removes)}
    head = _head(before, intent, moment, manifest)
    return Transition(manifest, SWAP, (*head, *removes, *adds), counts)


def _head(
    before: Manifest, intent: Swap, moment: CommitPoint, manifest: Manifest
) -> tuple[Action, ...]:
    """Return the actions that say what the table is, as far as they differ."""
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
