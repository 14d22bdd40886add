"""What is from before a TRUNCATE, though its position is above it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.formats.manifests.source import source_in, source_out
from lakesplice.model.moments import EpochUs
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.epochs import Epoch, in_epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState, SourceState
from lakesplice.planning.intake.order.emptied import (
    CLOCKS_US,
    Truncation,
    emptied_after,
    is_behind,
    sent_again,
)
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.intake.order.truncations import sent_again_records
from lakesplice.planning.sources.operator_directions import LowerPositions, onward

PLACE = Position.of(0, 7, 100, 0, 1)
LIFTED = in_epoch(PLACE, 1)
MOMENT = EpochUs(10**15)
EMPTIED = Emptied(PLACE, {"a": 20}, MOMENT)
AT_THE_START = SourceState("topic", "id", {at: PartitionState(Offset(0)) for at in range(2)})


def is_older(gtid: str | None, *, place: Position = LIFTED, later_us: int = 0) -> bool:
    file, offset = (np.array([half], np.int64) for half in (place.file, place.offset))
    moments = pa.array([MOMENT + later_us], pa.timestamp("us", tz="UTC"))
    return bool(sent_again(EMPTIED, file, offset, pa.array([gtid], pa.string()), moments)[0])


@pytest.mark.parametrize(
    ("gtid", "expected"),
    [("a:20", True), ("a:1", True), ("a:21", False), ("b:1", False), (None, False), ("?", False)],
)
def test_a_number_up_to_the_truncates_is_older_and_nothing_else_is(
    gtid: str | None, expected: bool
) -> None:
    assert is_older(gtid) is expected


def test_what_stands_at_or_below_the_truncate_is_judged_by_its_position() -> None:
    assert not is_older("a:20", place=PLACE)
    assert not is_older("a:1", place=Position(PLACE.file, PLACE.offset - 1))


def test_numbers_that_begin_again_are_known_by_their_times() -> None:
    """After RESET MASTER the same numbers come a second time."""
    assert is_older("a:1", later_us=CLOCKS_US)
    assert not is_older("a:1", later_us=CLOCKS_US + 1)


@pytest.mark.parametrize(("epoch", "again"), [(0, frozenset()), (1, frozenset({0}))])
def test_a_truncate_that_is_sent_again_counts_where_positions_have_one_order(
    epoch: int, again: frozenset[int]
) -> None:
    place = in_epoch(Position(PLACE.file, PLACE.offset + 1), epoch)
    fences = Fences.of({0: Fence(place, "a:20", moment=MOMENT)})
    files = [fences.position_file]
    assert sent_again_records([fences], files, RecordIndex(1), EMPTIED, (Epoch(1),)) == again


def test_a_set_of_gtids_proves_nothing() -> None:
    assert not is_older("a:1-20,b:1-3")


def test_nothing_is_older_before_an_epoch_began_behind_the_truncate() -> None:
    assert not is_behind(EMPTIED, ())
    assert is_behind(EMPTIED, (Epoch(1),))
    assert not is_behind(replace(EMPTIED, position=in_epoch(PLACE, 1)), (Epoch(1),))


def read(number: int, *, place: Position = PLACE, **met: int) -> Truncation:
    return Truncation(place, "a", number, MOMENT, met)


def after(
    *truncations: Truncation, source: SourceState = AT_THE_START, **met: int
) -> Emptied | None:
    states = {1: PartitionState(Offset(9), gtids=met)}
    return emptied_after(source, states, truncations)


def test_a_truncate_that_is_sent_again_stands_where_it_was_read_first() -> None:
    again = read(20, place=in_epoch(PLACE, 1), a=25)
    assert after(again, read(20), a=25) == EMPTIED
    assert after(again, source=replace(AT_THE_START, emptied=EMPTIED), a=25) == EMPTIED


def test_of_two_truncates_the_later_one_counts() -> None:
    later = in_epoch(PLACE, 1)
    assert after(read(24, place=later), read(20)) == Emptied(later, {"a": 24}, MOMENT)


def test_another_stream_is_older_up_to_what_was_met_before() -> None:
    assert after(read(20, b=4), b=4) == Emptied(PLACE, {"a": 20, "b": 4}, MOMENT)
    assert after(read(20, b=4), b=5) is None, "another partition has more of it"
    epochs = (Epoch(1, "a", 15, PLACE, {"a": 14, "b": 5}),)
    opened = replace(AT_THE_START, epochs=epochs)
    place = in_epoch(PLACE, 1)
    assert after(read(20, place=place), source=opened, b=5) == Emptied(
        place, {"a": 20, "b": 5}, MOMENT
    )


def test_of_a_truncate_that_isnt_new_only_its_own_stream_is_known() -> None:
    states = {**AT_THE_START.partitions, 0: PartitionState(Offset(5), gtids={"a": 22})}
    met = replace(AT_THE_START, partitions=states)
    assert after(read(20, b=4), source=met, b=4) is None
    assert after(read(20), source=met) == EMPTIED


def test_a_declared_epoch_forgets_it_since_numbers_may_begin_again() -> None:
    source = replace(AT_THE_START, ordering=Ordering.BINLOG, emptied=EMPTIED)
    parked = ParkReason(ParkCode.POSITIONS_FELL_BACK, "", "topic", 0, Offset(0))
    assert onward(source, parked, {}, LowerPositions.REPEATED).emptied == EMPTIED
    assert onward(source, parked, {}, LowerPositions.NEW_EPOCH).emptied is None


def test_a_manifest_keeps_it() -> None:
    source = replace(AT_THE_START, emptied=EMPTIED)
    assert source_in(source_out(source)) == source
    assert "emptied" not in source_out(AT_THE_START)
