"""The states of a partition before some of its changes, such as those before dead letters.

Usually the connector went forward all along. Then all states follow from one comparison of the
changes. If it went forward between two of them only, the second state follows from the first one
and that comparison. To follow the path (`epochs.py`) for each of them would cost twenty times as
much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakesplice.model.offsets import Offset
from lakesplice.model.position import FILE_BITS
from lakesplice.model.progress.epochs import Epoch, entered_epochs, epoch_at
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.sources.epochs import ChangePositions, follow
from lakesplice.planning.sources.position_order import (
    ComparedRows,
    met_before_each,
    met_going_forward,
)


def states_before(
    positions: ChangePositions,
    partition: int,
    state: PartitionState,
    epochs: Sequence[Epoch],
    places: Iterable[int],
) -> dict[int, PartitionState]:
    """Return the states of a partition before some of its changes, given by their numbers.

    `state` is the one before all of them. At each place it must be known that the changes before it
    can be applied.
    """
    asked = sorted({*places})
    rows = _compared(positions.between(0, max(asked, default=0)), partition, state, epochs)
    found: dict[int, PartitionState] = {at: state for at in asked if not at}
    behind = asked[len(found) :]
    forward = None if rows is None else _all_going_forward(rows, state, behind)
    if forward is not None:
        return found | forward
    start = 0
    for at in behind:
        after = None if rows is None else _going_forward(rows.between(start, at), state)
        if after is None:
            course = follow(positions.between(start, at), partition, state, epochs)
            epochs = entered_epochs(epochs, partition, course.entered)
            rows = None if course.entered else rows
            after = course.state
        state, start = after, at
        found[at] = state
    return found


def _compared(
    positions: ChangePositions, partition: int, state: PartitionState, epochs: Sequence[Epoch]
) -> ComparedRows | None:
    """Compare all changes with the positions before them; None if they may be in several epochs, or
    their GTIDs are sets, each of which is read depending on those before it.
    """
    if not len(positions):
        return None
    first = Offset(int(positions.record[0]))
    if any(epoch.entered.get(partition, first + 1) > first for epoch in epochs):
        return None
    rows = ComparedRows.of(
        positions.file + (epoch_at(epochs, partition, first) << FILE_BITS),
        positions.offset,
        positions.gtid,
        state.position,
        state.met,
        known=positions.record < state.met_until,
        after_missing=positions.after_missing,
    )
    return None if rows.streams.from_sets else rows


def _all_going_forward(
    rows: ComparedRows, state: PartitionState, places: Sequence[int]
) -> dict[int, PartitionState] | None:
    """Return the states before some changes, whose numbers rise; None if the connector didn't go
    forward all along, or it isn't known.
    """
    if state.repeating or rows.below.any():
        return None
    met = met_before_each(rows, state.met, places)
    if met is None:
        return None
    gtids = rows.streams.highest_before_each(places, state.gtids)
    return {
        at: replace(state, position=rows.position(at - 1), gtids=highest).having_met(met_before)
        for at, met_before, highest in zip(places, met, gtids, strict=True)
    }


def _going_forward(rows: ComparedRows, state: PartitionState) -> PartitionState | None:
    """Return the state behind some changes, as `follow` does; None if it isn't known without it."""
    if not len(rows.file):
        return state
    met = None if state.repeating else met_going_forward(rows, state.met)
    if met is None:
        return None
    gtids = rows.streams.highest(state.gtids)
    return replace(state, position=rows.high(state.position), gtids=gtids).having_met(met)
