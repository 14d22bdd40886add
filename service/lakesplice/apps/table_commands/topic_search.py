"""Searches a table's topic for a place of its source, by the records' own positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from lakesplice.apps.record_reading import registry_of
from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.reset_target import ResetTarget
from lakesplice.errors import UsageError
from lakesplice.formats.events import decode
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges, Offsets
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.sources.position_search import (
    GtidPlace,
    PlacedRecords,
    find_offsets,
    placed_records,
)
from lakesplice.table.ingest.reset import TopicStart
from lakesplice.table.protocol.ports import schemas_of


def search_topic(
    table: CommandTable,
    source: SourceState,
    target: ResetTarget,
    topic: TopicStart,
) -> Offsets:
    """Return per partition the offset from which on all changes are that aren't before the target's
    place. Blocks: reads some records of the topic, again and again.

    `UsageError` if the records don't have such positions or can't be read, if the place can't be
    told from those of another server, or if no service runs.
    """
    place = target.place
    if place is None or table.records is None or table.settings is None:
        raise UsageError(
            "only a running service can search a topic; start it and run the command again, or"
            " give offsets"
        )
    ranges: OffsetRanges = _ranges(source, topic)
    if isinstance(place, GtidPlace):
        _require_streams(source, place)
    else:
        ranges = _of_present_server(source, ranges)
    reading, records_of = table.reading(source.topic), table.records
    registry = registry_of(table.settings.schema_registry)

    def probe(asked: OffsetRanges) -> Mapping[int, PlacedRecords]:
        found: dict[int, list[PlacedRecords]] = defaultdict(list)
        for at, records in records_of.read(source.topic, asked):
            schemas = schemas_of([records], registry)
            decoded = decode(records, reading.context(source.format, schemas))
            offsets = records.column("offset").to_numpy()
            found[at].append(placed_records(offsets, decoded, place))
        return {at: _joined(parts) for at, parts in found.items()}

    return find_offsets(ranges, probe)


def _joined(parts: list[PlacedRecords]) -> PlacedRecords:
    offsets: Integers = np.concatenate([part.offsets for part in parts])
    before: Mask = np.concatenate([part.before for part in parts])
    return PlacedRecords(offsets, before)


def _ranges(source: SourceState, topic: TopicStart) -> OffsetRanges:
    none = Offset(0)
    return {
        at: OffsetRange(topic.earliest.get(at, none), topic.ends.get(at, none))
        for at in source.partitions
    }


def _of_present_server(source: SourceState, ranges: OffsetRanges) -> OffsetRanges:
    """Leave out records of former servers, whose binlog files have numbers of their own."""
    if not source.epochs:
        return ranges
    entered = source.epochs[-1].entered
    return {
        at: OffsetRange(min(end, max(start, entered.get(at, end))), end)
        for at, (start, end) in ranges.items()
    }


def _require_streams(source: SourceState, place: GtidPlace) -> None:
    """A set that says nothing about a stream would have all of its transactions read again."""
    met = {name for state in source.partitions.values() for name in state.gtids}
    if missing := sorted(met - place.numbers.keys()):
        raise UsageError(
            "the set has no transactions of some streams that the table has read; give the whole"
            " set of a server (gtid_executed, or gtid_binlog_pos of MariaDB)",
            missing=missing,
        )
