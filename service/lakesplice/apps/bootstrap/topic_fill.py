"""Fills shadows only from their topic: its records are read again from the first one, or from where
the newest snapshot of the table begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakesplice.apps.bootstrap.fill_request import FillRequest
from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.bootstrap.shadow_upkeep import ShadowUpkeep
from lakesplice.errors import UsageError
from lakesplice.formats.events import DecodeContext, Decoded, decode
from lakesplice.model.arrays import Integers
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges, Offsets
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.snapshot_search import SnapshotSearch, TopicSnapshot
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.layout import random_name
from lakesplice.table.protocol.ports import schemas_of

# How many records are searched at once, over all partitions.
_RECORDS = 20_000
_POLL_SECONDS = 1.0


@dataclass
class TopicFill:
    """Fills shadows of the table `name`; its table at the source is `origin`."""

    tools: FillTools
    request: FillRequest
    name: TableName
    origin: TableName
    topic: Topic

    def plan(self) -> ShadowPlan:
        """Return a plan that starts at the topic's first record, or at the newest snapshot. Blocks.

        Raises `UsageError` if the broker has deleted records, since rows that didn't change later
        would be missing, or if it isn't proven that the topic has all rows of the snapshot.
        """
        start, ends = BEFORE_ALL, dict.fromkeys(self.topic.latest, Offset(0))
        if self.request.filled_from is FilledFrom.SNAPSHOT:
            found = self._snapshot()
            start, ends = found.position, dict(found.starts)
        else:
            require_all_records(self.topic.earliest)
        return ShadowPlan(
            shadow=random_name(self.tools.entropy),
            topic=self.topic.name,
            topic_id=self.topic.id,
            server="",
            database=self.origin.database,
            table=self.origin.table,
            start=start,
            created_ms=self.tools.clock.now_ms(),
            ends=ends,
            filled_from=self.request.filled_from,
        )

    def fill(self, table: DriverTable, _plan: ShadowPlan) -> bool:
        """Read all records from the plan's offsets on; then the shadow equals the source at one
        moment. Blocks.
        """
        upkeep = ShadowUpkeep(table, self.tools.entropy)
        self.tools.feed(table, self.name, self.origin, upkeep.after_batch)
        return True

    def _snapshot(self) -> TopicSnapshot:
        """Return the topic's newest snapshot, once what is required of it is proven. Blocks: reads
        the whole topic, and waits for the rest of a snapshot that has begun.
        """
        tools, request = self.tools, self.request
        policy = tools.settings.table(self.origin)
        if policy is not None and not policy.whole_snapshots:
            raise UsageError(
                "the connector's snapshots lack rows (whole_snapshots: false), which would be lost;"
                " give --from bootstrap",
                table=str(self.name),
            )
        until = tools.clock.monotonic() + request.settle_seconds
        search, searched = SnapshotSearch(), dict[int, Offset]()
        while True:
            topic = tools.catalogue.describe([self.topic.name])[self.topic.name]
            search.expect(topic.earliest)
            starts = {
                at: max(first, searched.get(at, first)) for at, first in topic.earliest.items()
            }
            self._search(search, starts, topic.latest)
            searched = dict(topic.latest)
            found = search.newest()
            problem = unproven(found, compared=request.verify)
            if found is not None and not problem:
                return found
            if found is None or tools.clock.monotonic() >= until:
                raise UsageError(problem, topic=topic.name)
            tools.clock.wait(_POLL_SECONDS)

    def _search(self, search: SnapshotSearch, starts: Offsets, ends: Offsets) -> None:
        tools = self.tools
        reading = tools.reading(self.origin, SourceState(self.topic.name, self.topic.id))
        windows = list(_windows(starts, ends))
        tools.progress.expect(len(windows))
        for ranges in windows:
            for partition, batch in tools.reader.read(self.topic.name, ranges):
                schemas = schemas_of([batch], tools.shadow_feed.schemas)
                for offsets, decoded in _decoded(batch, reading.context(None, schemas)):
                    search.take(partition, offsets, decoded)
            tools.progress.advance(1)


def require_all_records(earliest: Offsets) -> None:
    """Check by the first offset of each partition that a topic still has all its records; raises
    `UsageError` if not. Log compaction keeps the newest record of each key, which is enough, and
    leaves the first offset at 0.
    """
    if lacking := {at: first for at, first in sorted(earliest.items()) if first}:
        raise UsageError(
            "the topic's retention deleted its first records, so rows that didn't change since"
            " would be missing; give --from bootstrap, which reads them from the database, or"
            " --from snapshot",
            first_offsets=lacking,
        )


def unproven(found: TopicSnapshot | None, *, compared: bool) -> str:
    """Return what isn't proven of a topic's newest snapshot, and what to do; empty if it can fill a
    shadow. If that is `compared` with the database, the comparison finds rows that it lacks.
    """
    if found is None:
        return (
            "the topic has no snapshot of the whole table (an incremental one doesn't say which row"
            " is its last); let the connector take a blocking one, or give --from bootstrap"
        )
    place = _place(found.position)
    if not found.ended:
        return (
            f"the last row of the snapshot at {place} isn't in the topic; run the command again"
            f" once the connector has sent it, or let the connector take another snapshot"
        )
    if compared:
        return ""
    doubts = {
        "the broker may have deleted rows of it": found.cut,
        "rows of it may be missing before the next change": found.open,
        "it isn't known which changes are later": found.unclear,
    }
    told = [f"{why} (partitions {_listed(at)})" for why, at in doubts.items() if at]
    if not told:
        return ""
    return (
        f"it isn't proven that the topic has all rows of the snapshot at {place}:"
        f" {'; '.join(told)}; leave out --no-verify, then they are compared with the database"
    )


def _windows(starts: Offsets, ends: Offsets) -> Iterator[OffsetRanges]:
    share, at = max(1, _RECORDS // max(1, len(ends))), dict(starts)
    while left := {number: end for number, end in ends.items() if at[number] < end}:
        ranges = {
            number: OffsetRange(at[number], min(end, Offset(at[number] + share)))
            for number, end in left.items()
        }
        at |= {number: end for number, (_, end) in ranges.items()}
        yield ranges


def _decoded(batch: pa.RecordBatch, context: DecodeContext) -> Iterator[tuple[Integers, Decoded]]:
    """Yield what records of a partition say, with their offsets; records that would park the table
    are left out.
    """
    decoded = decode(batch, context)
    if decoded.stops and len(batch) > 1:
        middle = len(batch) // 2
        yield from _decoded(batch.slice(0, middle), context)
        yield from _decoded(batch.slice(middle), context)
    else:
        yield batch.column("offset").to_numpy(), decoded


def _place(position: Position) -> str:
    _, file, offset, _, _ = position.parts
    return f"file {file} of the binlog, offset {offset}"


def _listed(partitions: tuple[int, ...]) -> str:
    return ", ".join(map(str, partitions))
