"""What is known of a topic before a batch, and where its records stop since they are of another
kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.model.choices import FormatName
from lakesplice.model.manifest import Manifest
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, Ordering
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState, SourceState
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.repeated_numbers import first_repeated_number
from lakesplice.planning.intake.order.returned_records import Waiting
from lakesplice.planning.intake.order.shared_positions import SHARED, SharedPositions
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.late_order import LateRecords, ReadAround

_RELOAD = "give `lakesplice reset --anew` to reload the table from the topic"


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """What is known of a topic before a batch.

    `format` and `ordering` are those of its table's changes, None if it has none yet. `partitions`
    is the number of its partitions. `epochs` are those after the first one, ascending.
    `whole_snapshots` says whether a snapshot has all rows of the table. `presences` is what is
    known of the columns of the topic's shard; None if the table has no shards. `emptied` is what is
    known of the time before its newest TRUNCATE, `late` what is known of the dead letters that are
    replayed. `waiting` has, for each partition that reads earlier records again, what was read
    around these.
    """

    format: FormatName | None = None
    ordering: Ordering | None = None
    partitions: int = 1
    epochs: tuple[Epoch, ...] = ()
    whole_snapshots: bool = True
    presences: ColumnPresences | None = None
    emptied: Emptied | None = None
    late: LateRecords | None = None
    waiting: Mapping[int, Waiting] = field(default_factory=dict)


def known_topic(
    manifest: Manifest,
    source: SourceState,
    partitions: Iterable[int],
    *,
    whole_snapshots: bool,
    letters: Mapping[int, Mapping[int, ReadAround | None]] = MappingProxyType({}),
) -> KnownTopic:
    """Return what a table's manifest knows of a topic; `partitions` are some or all of its
    partitions. `letters` has, by partition and offset, what was read around the dead letters of
    those that are read again.
    """
    waiting = {at: Waiting.of(source, at, letters.get(at, {})) for at in source.partitions}
    return KnownTopic(
        source.format,
        source.ordering or manifest.met_ordering,
        len({*source.partitions, *partitions}),
        source.epochs,
        whole_snapshots,
        source.own_presences,
        emptied=None if manifest.schema.keeps_versions else source.emptied,
        waiting={at: found for at, found in waiting.items() if found},
    )


@dataclass(frozen=True, slots=True)
class PartitionStop:
    """Where the partition stops, and why. Without a code it waits there until the table's schema is
    extended.
    """

    record: RecordIndex
    code: ParkCode | None
    detail: str


def with_ordering(known: KnownTopic, state: PartitionState) -> KnownTopic:
    """Return what is known, with the binlog as the ordering if the partition has a position and no
    ordering was recorded: such positions are from before orderings were recorded.
    """
    if known.ordering is not None or state.position == BEFORE_ALL:
        return known
    return replace(known, ordering=Ordering.BINLOG)


def mixed_kinds(known: KnownTopic, decoded: Decoded) -> list[PartitionStop]:
    """Return where changes have another format or ordering than those before them, or where the
    order of the records would be needed although the topic has several partitions.
    """
    blocks = sorted(decoded.blocks, key=lambda block: int(block.rows[0]))
    if blocks and known.format not in (None, decoded.format):
        detail = (
            f"the records are {decoded.format}, the table was filled from {known.format}; {_RELOAD}"
        )
        return [PartitionStop(RecordIndex(int(blocks[0].rows[0])), ParkCode.FORMAT_CHANGED, detail)]
    stops, ordering = [], known.ordering
    for block in blocks:
        first = RecordIndex(int(block.rows[0]))
        if ordering not in (None, block.ordering):
            detail = f"the changes are ordered by {block.ordering}, those before by {ordering}"
            stops.append(PartitionStop(first, ParkCode.ORDER_UNKNOWN, f"{detail}; {_RELOAD}"))
        elif block.ordering is Ordering.KAFKA and known.partitions > 1:
            detail = (
                "the changes have no position, and the order of the records can't replace it,"
                f" since the topic has {known.partitions} partitions; let the source send"
                " positions (docs/formats.md says how), or use a topic with one partition"
            )
            stops.append(PartitionStop(first, ParkCode.ORDER_UNKNOWN, detail))
        ordering = ordering or block.ordering
    return stops


def shared_position(decoded: Decoded, positions: SharedPositions) -> Iterator[PartitionStop]:
    """Yield the first record whose position another change has as well."""
    if all(block.ordering is Ordering.BINLOG for block in decoded.blocks):
        record = positions.first_shared()
        if record is not None:
            yield PartitionStop(record, ParkCode.ORDER_UNKNOWN, SHARED)


def repeated_number(
    order: RecordOrder, course: EpochPath, state: PartitionState
) -> Iterator[PartitionStop]:
    """Yield the first record that has the GTID of another one, and not that one's change."""
    found = first_repeated_number(order, course, state)
    if found is not None:
        yield PartitionStop(found[0], ParkCode.POSITIONS_FELL_BACK, found[1])


NOTHING_KNOWN = KnownTopic()
