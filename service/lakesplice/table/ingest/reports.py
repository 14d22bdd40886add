"""The reports of a batch's tasks for one topic of a table become one ingest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakesplice.model.manifest import DeadLetterRef, Manifest
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState, SourceState
from lakesplice.planning.intake.order.emptied import emptied_after
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.planning.schema.shard_columns import presences_after
from lakesplice.planning.sources.gaps import after_reading
from lakesplice.planning.sources.late_order import LateChange
from lakesplice.planning.sources.snapshots import fenced_at, snapshot_after
from lakesplice.table.ingest.append import Appended
from lakesplice.table.protocol.intents import Ingest
from lakesplice.table.protocol.snapshot import Snapshot


def ingest_intent(
    generation: int,
    snapshot: Snapshot,
    planned_on: int,
    topic: str,
    starts: Offsets,
    ends: Offsets,
    reports: Sequence[PartitionReport],
    appended: Sequence[Appended],
    dead_letters: Sequence[DeadLetterRef],
    narrowed: Mapping[str, DeadLetterRef],
) -> Ingest:
    """Return the ingest of one topic's batch, for the offsets `starts` to `ends` (exclusive).

    A partition that stopped ends at the record where it stopped. Every other one ends at its end,
    past offsets without a record (transaction markers, compacted records). `planned_on` is the
    version that the tasks were given; `snapshot` is the table now, and must have the source.
    `narrowed` is as in `Ingest`.
    """
    source = snapshot.manifest.sources.get(topic)
    assert source is not None, "only a table that was created can be ingested into"
    open_dead_letters = bool(snapshot.manifest.letters_of(topic) or dead_letters)
    keeps = snapshot.manifest.schema.keeps_versions
    to, whole = _source_to(
        source, ends, reports, open_dead_letters=open_dead_letters, keeps_versions=keeps
    )
    return Ingest(
        generation=generation,
        planned_on=planned_on,
        source_from=dict(starts),
        source_to=to,
        schema_version=snapshot.manifest.schema.version,
        addressed_groups=frozenset(
            group for part in appended for delta in part.deltas for group in delta.waiting
        ),
        files=tuple(file for part in appended for file in part.files),
        deltas=tuple(delta for part in appended for delta in part.deltas),
        runs=tuple(run for part in appended for run in part.runs),
        dead_letters=tuple(narrowed.get(ref.file.path, ref) for ref in dead_letters),
        narrowed=narrowed,
        parked=_parked(reports),
        counts=_counts(reports, appended),
        read=read_to_move(appended),
        lowest={report.partition: report.lowest for report in reports if report.lowest},
        whole_snapshot=whole,
    )


def read_to_move(appended: Sequence[Appended]) -> frozenset[str] | None:
    """Return the deltas that were read to move rows; None if no row moved."""
    read = [part.read for part in appended if part.read is not None]
    return frozenset().union(*read) if read else None


def vacated_groups(appended: Sequence[Appended]) -> frozenset[int]:
    """Return the file groups that rows moved from."""
    return frozenset[int]().union(*(part.left for part in appended))


def returned_by_partition(
    reports: Sequence[PartitionReport],
) -> dict[int, tuple[LateChange, ...]]:
    """Return, by partition, what was applied of the records that were returned to."""
    return {report.partition: report.returned for report in reports if report.returned}


def moves_nothing(intent: Ingest, manifest: Manifest) -> bool:
    """Whether the ingest would leave the manifest unchanged, so that no commit is needed."""
    written = intent.files or intent.deltas or intent.dead_letters
    return not written and intent.parked is None and intent.source_to in manifest.sources.values()


def _source_to(
    source: SourceState,
    ends: Offsets,
    reports: Sequence[PartitionReport],
    *,
    open_dead_letters: bool,
    keeps_versions: bool,
) -> tuple[SourceState, Position | None]:
    """Return the source after the batch; and the position of a snapshot that is read completely,
    unless it became a fence.
    """
    states = dict(source.partitions)
    for partition, end in ends.items():
        states[partition] = states.get(partition, PartitionState(Offset(0))).passed_to(end)
    for report in reports:
        end = report.state.next_offset if report.stopped else ends[report.partition]
        states[report.partition] = report.state.passed_to(end)
    # In a history table a fence would hide a DROP below it that is reported later.
    raised = [] if keeps_versions else [report.fence for report in reports]
    fence = max([source.fence, *raised])
    emptied = emptied_by(source, reports)
    presences = presences_after(source.presences, [report.observed_columns for report in reports])
    lowest = {report.partition: report.lowest for report in reports if report.lowest}
    source = replace(
        source,
        epochs=_entered(source, reports),
        fence=fence,
        emptied=emptied,
        presences=presences,
        gaps=after_reading(source, states, lowest, returned_by_partition(reports)),
    )
    seen = {report.partition: report.snapshot for report in reports if report.snapshot}
    source, whole = snapshot_after(
        source,
        states,
        seen,
        open_dead_letters=open_dead_letters,
        keeps_versions=keeps_versions,
    )
    if whole is not None and not keeps_versions:
        source, whole = fenced_at(source, whole), None
    source = replace(source, partitions=states)
    met = next((report for report in reports if report.ordering), None)
    if met is None:
        return source, whole
    format_, ordering = source.format or met.format, source.ordering or met.ordering
    return replace(source, format=format_, ordering=ordering), whole


def emptied_by(source: SourceState, reports: Sequence[PartitionReport]) -> Emptied | None:
    """Return what is known of the time before TRUNCATEs, once these were read."""
    states = {report.partition: report.state for report in reports}
    read = [one for report in reports for one in report.truncations]
    return emptied_after(source, states, read)


def _entered(source: SourceState, reports: Sequence[PartitionReport]) -> tuple[Epoch, ...]:
    epochs = {epoch.number: epoch for epoch in source.epochs}
    for report in reports:
        for number, offset in report.entered.items():
            epochs[number] = epochs[number].entered_by(report.partition, offset)
    return tuple(epochs.values())


def _parked(reports: Sequence[PartitionReport]) -> ParkReason | None:
    reasons = [report.parked for report in reports if report.parked]
    return min(reasons, key=lambda reason: reason.partition, default=None)


def _counts(reports: Sequence[PartitionReport], appended: Sequence[Appended]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in (*(report.counts for report in reports), *(part.counts for part in appended)):
        total.update(counts)
    return {name: count for name, count in sorted(total.items()) if count}
