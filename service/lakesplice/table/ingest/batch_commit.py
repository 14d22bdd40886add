"""The result of a batch's tasks for one topic becomes the next version, or versions, of its table.

If an image has further columns, a first commit extends the schema; if another server took over as
source, a first commit records an epoch. What the tasks wrote is then not committed: they run again
for this topic. They also run again if another topic of the table changed the schema meanwhile. Only
the first batch of a new table needs no second run, if all of its partitions found the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import NO_LIMIT, DeadLetterLimit, ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.dead_letter_limit import excess
from lakesplice.planning.intake.order.emptied import is_behind
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.planning.schema.evolution import Fits, plan_evolution
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.schema.shard_columns import judged_the_same, presences_after
from lakesplice.planning.sources.epochs import open_epoch
from lakesplice.planning.sources.shards import unplaced
from lakesplice.table.files.dead_letters import dead_letters_of
from lakesplice.table.ingest.append import Appended
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.reports import (
    emptied_by,
    ingest_intent,
    moves_nothing,
    returned_by_partition,
    vacated_groups,
)
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.protocol.intents import Ingest

# The next round plans with the files that the compaction wrote. No other conflict would pass.
_MOVED_BY_COMPACTION = {ConflictCode.FILES, ConflictCode.DELTAS}
# How often a batch that moves rows rewrites their old files after a compaction replaced them.
_ATTEMPTS_MAX = 5
_REASONS_OF_COLUMNS = frozenset(("wrong-type", "out-of-range"))
_MOVED_BY_TOPICS = {ConflictCode.SCHEMA, ConflictCode.DELTAS}


@dataclass(frozen=True)
class CommitContribution:
    """The result of a batch's tasks for one topic, for the offsets `starts` to `ends` (exclusive).
    `planned_on` is the version of the table that the tasks were given.
    """

    planned_on: int
    starts: Offsets
    ends: Offsets
    reports: Sequence[PartitionReport]
    appended: Sequence[Appended]
    dead_letters: Sequence[DeadLetterRef]


class CommitOutcome(Enum):
    """`DONE`: committed, or nothing had to be committed. `AGAIN`: the tasks have to run again."""

    DONE = auto()
    AGAIN = auto()


def _send_nowhere(_letters: Sequence[DeadLetterRef]) -> None:
    """The default for `send`: dead letters are stored in the lake only."""


def commit_contribution(
    table: DriverTable,
    contribution: CommitContribution,
    policy: SchemaPolicy = DEFAULT_POLICY,
    limit: DeadLetterLimit = NO_LIMIT,
    send: Callable[[Sequence[DeadLetterRef]], None] = _send_nowhere,
) -> CommitOutcome | Conflict:
    """Commit a table's part of a batch; a `Conflict` says why it can't be committed. `policy` is
    the one that the tasks were given. `send` is called with the dead letters just before they are
    committed.

    The table may be parked afterwards: if `limit` is exceeded, it is parked at the offsets from
    before the batch. Blocks; errors as `DriverTable.commit`.
    """
    new_schemas = [seen for report in contribution.reports for seen in report.new_schemas]
    own = table.source.own_presences
    schema, verdicts = plan_evolution(table.schema, new_schemas, policy, own)
    schema = unplaced(schema, table.schema, table.source.shard)
    if schema != table.schema:
        if table.snapshot is None:
            table.create_or_open(schema)
            if _was_made_for(table.schema, contribution.reports):
                return _commit(table, contribution, limit, send)
        else:
            outcome = table.evolve(schema)
            if isinstance(outcome, Conflict) and outcome.reason not in _MOVED_BY_COMPACTION:
                return _conflict_or_retry(table, outcome)
        return CommitOutcome.AGAIN
    table.create_or_open(schema)
    if table.manifest.is_merged and any(isinstance(v, Fits) for v in verdicts.values()):
        return CommitOutcome.AGAIN  # another topic already added the columns that these tasks found
    return _commit(table, contribution, limit, send)


def _was_made_for(schema: TableSchema, reports: Sequence[PartitionReport]) -> bool:
    """Whether the tasks of a table without columns made changes for this schema, and none of them
    read a TRUNCATE, which a history table must have as a row.
    """
    if any(report.fence > BEFORE_ALL for report in reports):
        return False
    made_for = [report.first_schema for report in reports if report.first_schema is not None]
    return bool(made_for) and all(schema.stores_like(other) for other in made_for)


def _commit(
    table: DriverTable,
    contribution: CommitContribution,
    limit: DeadLetterLimit,
    send: Callable[[Sequence[DeadLetterRef]], None],
) -> CommitOutcome | Conflict:
    """Commit changes that were made for the table's present schema."""
    if mixed := _mixed_kinds(contribution.reports):
        table.park(mixed)
        return CommitOutcome.DONE
    if recorded := _record_first(table, contribution.reports):
        if isinstance(recorded, Conflict) and recorded.reason is not ConflictCode.VERSION:
            return recorded
        # Whatever was committed meanwhile, the next round finds the same again.
        return CommitOutcome.AGAIN
    if too_many := _parking_for_dead_letters(table, contribution, limit):
        table.park(too_many)
        return CommitOutcome.DONE
    if contribution.dead_letters:
        send(contribution.dead_letters)
    assert table.snapshot is not None
    lowest = {report.partition: report.lowest for report in contribution.reports if report.lowest}
    returned = returned_by_partition(contribution.reports)
    intent = ingest_intent(
        generation=table.generation,
        snapshot=table.snapshot,
        planned_on=contribution.planned_on,
        topic=table.source.topic,
        starts=contribution.starts,
        ends=contribution.ends,
        reports=contribution.reports,
        appended=contribution.appended,
        dead_letters=contribution.dead_letters,
        narrowed=table.narrowed_letters(contribution.dead_letters, returned, lowest),
    )
    intent = table.fenced(intent)
    if moves_nothing(intent, table.manifest):
        return CommitOutcome.DONE
    return _commit_intent(table, intent, vacated_groups(contribution.appended))


def _record_first(
    table: DriverTable, reports: Sequence[PartitionReport]
) -> Committed | Conflict | None:
    """Record what all partitions must know before their changes are committed; None if they knew
    it.
    """
    source = table.source
    if openings := [report.opening for report in reports if report.opening]:
        states = {report.partition: report.state for report in reports}
        return table.record_epoch(open_epoch(source, openings, states))
    emptied = emptied_by(source, reports)
    if emptied is not None and emptied != source.emptied and is_behind(emptied, source.epochs):
        return table.record_emptied(emptied)
    if presences := _presences_to_record_first(source, reports):
        return table.record_presences(presences)
    return None


def _commit_intent(
    table: DriverTable, intent: Ingest, vacated: Collection[int]
) -> CommitOutcome | Conflict:
    """Commit a batch. `vacated` are the file groups that rows moved from: their files are rewritten
    again, up to a bound, each time a compaction replaced them first.
    """
    retries = table.retries(_ATTEMPTS_MAX)
    while True:
        outcome = table.commit(
            table.with_moved_rows_deleted(intent, vacated) if vacated else intent
        )
        if not isinstance(outcome, Conflict):
            return CommitOutcome.DONE
        if not vacated or outcome.reason is not ConflictCode.FILES:
            return _conflict_or_retry(table, outcome)
        if not retries.allow_another():
            # The tasks run again with the files that the compaction wrote.
            return CommitOutcome.AGAIN


def _parking_for_dead_letters(
    table: DriverTable, contribution: CommitContribution, limit: DeadLetterLimit
) -> ParkReason | None:
    """Return why the table has to be parked if too many records can't be decoded, else None."""
    counts: Counter[str] = Counter()
    for report in contribution.reports:
        counts.update(report.counts)
    topic, is_empty = table.source.topic, table.source.ordering is None
    stored = sum(ref.rows for ref in table.manifest.letters_of(topic))
    found = excess(counts, stored, limit, is_empty=is_empty)
    if found is None:
        return None
    letters = dead_letters_of(table.store, contribution.dead_letters)
    first = next(letter for letter in letters if letter.reason == found.reason)
    # The state of a table must not show values: the column is named, not its value.
    what, says_where, _ = first.detail.partition(" is ")
    where = f" ({what})" if says_where and found.reason in _REASONS_OF_COLUMNS else ""
    return ParkReason(
        ParkCode.DEAD_LETTERS,
        f"{found.dead} of {found.records} records can't be decoded, most of them for"
        f" {found.reason}{where}; correct the connector's settings or the table's declared types,"
        " then unpark it; no record was skipped. To keep such records as dead letters and"
        " continue, raise dead_letters.share_max",
        topic,
        first.partition,
        first.offset,
    )


def _conflict_or_retry(table: DriverTable, conflict: Conflict) -> Conflict | CommitOutcome:
    """Return `AGAIN` if another topic of the table did what only a new plan can take into account,
    else the conflict.
    """
    again = conflict.reason in _MOVED_BY_TOPICS and table.manifest.is_merged
    return CommitOutcome.AGAIN if again else conflict


def _presences_to_record_first(
    source: SourceState, reports: Sequence[PartitionReport]
) -> ColumnPresences:
    """Return what the partitions of a shard know together of its columns, if one of them would have
    decided otherwise with that knowledge; else nothing.
    """
    observed_columns = [report.observed_columns for report in reports]
    after = presences_after(source.presences, observed_columns)
    return {} if judged_the_same(after, observed_columns) else after


def _mixed_kinds(reports: Sequence[PartitionReport]) -> ParkReason | None:
    """Return why the changes of the topic's partitions can't be in one table, if their kinds
    differ.

    Later batches find the kind in the manifest. The tasks of the first one see only their
    partition.
    """
    kinds_found = {(report.format, report.ordering) for report in reports if report.ordering}
    if len(kinds_found) < 2:
        return None
    kinds = " and ".join(
        sorted(f"{format_} ordered by {ordering}" for format_, ordering in kinds_found)
    )
    return ParkReason(
        ParkCode.FORMAT_CHANGED,
        f"the topic's partitions have changes of several formats or orders: {kinds}; let only one"
        " source write to the topic, and reload the table",
    )
