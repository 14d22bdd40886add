"""Directions of an operator: where a table's source continues."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Ordering
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.sources.epochs import declare_epoch
from lakesplice.planning.sources.gaps import passed_over, read_until


class LowerPositions(StrEnum):
    """What lower positions mean, as the operator says: a `new-epoch`, or `repeated` changes."""

    NEW_EPOCH = "new-epoch"
    REPEATED = "repeated"


def onward(
    source: SourceState,
    parked: ParkReason,
    offsets: Offsets,
    fall_back: LowerPositions | None,
) -> SourceState:
    """Return the source as it continues: at `offsets`, given by partition, else where it stopped.

    Records that were read before are known as such when they are read again. A new epoch begins in
    every partition where it continues, or behind what it reads again. `repeated` is for the
    partition that the table is parked for, until it reaches its highest position again.
    `UsageError` for a partition that was never read, for positions that aren't from a binlog, if no
    position was lower, and if the new epoch would begin before records that were skipped.
    """
    source = moved(source, offsets)
    if fall_back is None:
        return source
    if (source.ordering or Ordering.BINLOG) is not Ordering.BINLOG:
        raise UsageError(
            "the table's changes have no position in a binlog that could fall back; give unpark"
            " without --new-epoch and --repeated",
            ordering=source.ordering,
        )
    if parked.code is not ParkCode.POSITIONS_FELL_BACK:
        raise UsageError(
            "no position fell back; give unpark without --new-epoch and --repeated",
            code=parked.code,
        )
    if fall_back is LowerPositions.NEW_EPOCH:
        entered = {
            at: offsets.get(at, read_until(state)) for at, state in source.partitions.items()
        }
        _require_behind_gaps(source, entered)
        entering = {at: state.forgetting() for at, state in source.partitions.items()}
        epochs = (*source.epochs, declare_epoch(source, entered))
        # Numbers may have started over.
        return replace(source, epochs=epochs, partitions=entering, emptied=None)
    at = parked.partition
    again = {**source.partitions, at: replace(source.partitions[at], repeating=True)}
    return replace(source, partitions=again)


def _require_behind_gaps(source: SourceState, entered: Offsets) -> None:
    """Refuse an epoch that begins in or before a gap: only the offsets behind it, at which others
    were read, say in which epoch its records are.
    """
    for gap in source.gaps:
        first = entered.get(gap.partition)
        ours = gap.topic_id == source.topic_id and gap.end is not None
        if ours and first is not None and first < (gap.end or 0):
            raise UsageError(
                "no epoch begins before records that were skipped, since they may be those of the"
                " former server; give --new-epoch together with --from-offset and the offset"
                " below, then return to the skipped ones with `lakesplice reset --offset`",
                partition=gap.partition,
                skipped=gap.text,
                offset=read_until(source.partitions[gap.partition]),
            )


def skipping(source: SourceState, offsets: Offsets) -> dict[int, Offset]:
    """Return by partition how many offsets would never be read if the source continued at
    `offsets`.
    """
    ways = {
        at: offset - read_until(source.partitions[at])
        for at, offset in offsets.items()
        if at in source.partitions
    }
    return {at: Offset(count) for at, count in ways.items() if count > 0}


def moved(source: SourceState, offsets: Offsets) -> SourceState:
    """Return the source as it continues at `offsets`, given by partition.

    Records that were read before are known as such when they are read again; records that are
    passed over are a gap. `UsageError` for a partition that was never read.
    """
    partitions = dict(source.partitions)
    for partition, offset in offsets.items():
        if partition not in partitions:
            raise UsageError(
                "the table has read no such partition; give offsets of known ones",
                partition=partition,
                known=sorted(partitions),
            )
        state = partitions[partition]
        met_until = read_until(state)
        partitions[partition] = replace(
            state.passed_to(offset),
            met_until=met_until if met_until > offset else 0,
            lossy=state.lossy or offset > state.next_offset,
        )
    return replace(source, partitions=partitions, gaps=passed_over(source, offsets))
