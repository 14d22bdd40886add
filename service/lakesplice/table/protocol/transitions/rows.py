"""How commits that add rows change the manifest and the log."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.formats.log.actions import Action, ApplicationTransaction
from lakesplice.model.manifest import Manifest
from lakesplice.table.protocol.intents import Backfill, Ingest, Replay, Upsert
from lakesplice.table.protocol.new_files import adds_of
from lakesplice.table.protocol.offsets import offsets_from, reached
from lakesplice.table.protocol.transitions.feed import with_images
from lakesplice.table.protocol.transitions.parts import (
    CommitPoint,
    Transition,
    stamped_runs,
    with_replaced,
    without_consumed,
)
from lakesplice.table.protocol.transitions.sources import fed, replayed, stamp

BACKFILL = "BACKFILL"


def after_ingest(before: Manifest, intent: Ingest, moment: CommitPoint) -> Transition:
    """Return the table with the changes and dead letters of a batch."""
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
        dead_letters=tuple(
            letters.read_on(intent.lowest) if letters.topic == topic else letters
            for letters in (intent.narrowed.get(one.file.path, one) for one in before.dead_letters)
        )
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


def after_upsert(before: Manifest, intent: Upsert, moment: CommitPoint) -> Transition:
    """Return the table with the rows of an upsert."""
    _require_addressed(intent)
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    left = (without_consumed(delta, intent.consumed) for delta in before.deltas)
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
    return Transition(manifest, intent.operation, actions, intent.counts)


def after_replay(before: Manifest, intent: Replay, moment: CommitPoint) -> Transition:
    """Return the table after dead letters were replayed or dropped."""
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


def after_backfill(before: Manifest, intent: Backfill, moment: CommitPoint) -> Transition:
    """Return the shadow with rows that were read from the source."""
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


def _require_addressed(intent: Ingest | Upsert) -> None:
    for delta in intent.deltas:
        if not intent.addressed_groups >= delta.waiting.keys():
            raise UsageError(
                "a delta holds groups that its commit does not name", path=delta.file.path
            )
