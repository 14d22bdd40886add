"""Gaps: records that were passed over are recorded, and what closes a gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.manifests.source import source_in, source_out
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.met_gtids import GtidRanges, MetGtids, Transaction
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.returned_records import Waiting, follow_returned
from lakesplice.planning.sources.epochs import ChangePositions
from lakesplice.planning.sources.gaps import (
    after_reading,
    around,
    closed_by,
    lowest_above,
    may_hold,
    narrowed_gaps,
    passed_over,
)
from lakesplice.planning.sources.late_order import LateChange
from lakesplice.planning.sources.missing_offsets import after_loss, can_continue
from lakesplice.planning.sources.operator_directions import moved, skipping

LOW, HIGH, HIGHER = Position(7, 10), Position(7, 100), Position(8, 1)
SOURCE = SourceState(
    "t", "id", {0: PartitionState(Offset(40), HIGH), 1: PartitionState(Offset(50), LOW)}
)
MET = MetGtids()
GAP = Gap("id", 0, Offset(40), Offset(60), HIGH, met=MET)
SKIPPED = moved(SOURCE, {0: Offset(60)})


def read_on(source: SourceState, to: int, *lowest: Position) -> tuple[Gap, ...]:
    """The gaps once partition 0 was read to an offset, by changes of this lowest position."""
    states = {0: replace(source.partitions[0], next_offset=Offset(to))}
    return after_reading(source, states, dict.fromkeys((0,), *lowest) if lowest else {})


def test_offsets_that_an_operator_skips_are_a_gap() -> None:
    assert SKIPPED.gaps == (GAP,)
    assert (GAP.text, GAP.offsets) == ("0:40-60", 20)
    assert moved(SOURCE, {0: Offset(10)}).gaps == ()


def test_records_that_were_read_before_are_not_passed_over() -> None:
    back = moved(SOURCE, {0: Offset(10)})
    assert skipping(back, {0: Offset(40)}) == {}
    assert moved(back, {0: Offset(40)}).gaps == ()
    assert skipping(back, {0: Offset(45)}) == {0: 5}
    gap = Gap("id", 0, Offset(40), Offset(45), HIGH, met=MET)
    assert moved(back, {0: Offset(45)}).gaps == (gap,)


def test_a_gap_is_closed_as_far_as_it_is_read_after_all() -> None:
    back = moved(SKIPPED, {0: Offset(45)})
    assert back.gaps == (GAP,), "nothing is read yet"
    first, last = read_on(back, 50)
    assert first == replace(GAP, end=Offset(45))
    assert last == replace(GAP, start=Offset(50), met=MET.before_missing())
    assert read_on(moved(SKIPPED, {0: Offset(30)}), 70) == ()
    assert read_on(moved(SKIPPED, {0: Offset(30)}), 40) == (GAP,)


def test_a_gap_stays_open_if_a_purge_may_have_made_its_changes_useless() -> None:
    purged = replace(moved(SKIPPED, {0: Offset(30)}), purge_floor=HIGHER)
    assert read_on(purged, 70) == (replace(GAP, met=None),)


def test_records_after_a_gap_bound_the_positions_in_it() -> None:
    assert read_on(SKIPPED, 70) == (GAP,)
    assert read_on(SKIPPED, 70, LOW) == (GAP,), "a change that was sent again says nothing"
    assert read_on(SKIPPED, 70, HIGHER) == (replace(GAP, before=HIGHER),)
    bounded = replace(SKIPPED, gaps=(replace(GAP, before=HIGHER),))
    assert read_on(bounded, 70, Position(9, 1)) == bounded.gaps


def test_what_is_applied_of_a_gap_bounds_what_is_left_of_it_and_of_its_group() -> None:
    low, high = Position(8, 0), Position(8, 7)
    after = PartitionState(Offset(0), high)
    applied = LateChange(Offset(49), low, None, None, after)
    back = moved(SKIPPED, {0: Offset(45)})
    states = {0: replace(back.partitions[0], next_offset=Offset(50))}
    first, last = after_reading(back, states, {}, {0: [applied]})
    assert (first.after, first.before) == (HIGH, low)
    assert (last.after, last.before, last.met) == (high, None, after.met)
    other = replace(GAP, before=HIGHER)
    assert narrowed_gaps([other], "id", {0: [applied]}) == (other,), "it is of another group"
    assert narrowed_gaps([GAP], "another id", {0: [applied]}) == (GAP,)


def test_a_manifest_keeps_what_was_read_around_a_gap() -> None:
    met = MetGtids(GtidRanges.up_to({"0": 7}), Transaction("0", 7, LOW))
    gaps = (GAP, replace(GAP, met=met, before=HIGHER), replace(GAP, met=None))
    source = replace(SOURCE, gaps=gaps)
    assert source_in(source_out(source)) == source


def test_gaps_that_became_one_are_not_bounded_any_more() -> None:
    assert around(GAP) is not None
    assert around(replace(GAP, met=None)) is None


def test_a_snapshot_closes_what_is_surely_before_it() -> None:
    within = Position(7, 500)
    assert may_hold(GAP, within)
    assert not closed_by(GAP, within)
    bounded = replace(GAP, before=HIGHER)
    assert may_hold(bounded, within)
    assert not closed_by(bounded, within)
    assert not may_hold(bounded, Position(9, 1))
    assert closed_by(bounded, Position(9, 1))
    assert not may_hold(bounded, HIGH), "its rows were read before"
    assert not closed_by(bounded, HIGH)


def test_beyond_a_limit_the_oldest_gaps_become_one() -> None:
    source = SOURCE
    for turn in range(100):
        state = replace(source.partitions[0], next_offset=Offset(100 + 10 * turn))
        gaps = passed_over(replace(source, partitions={0: state}), {0: Offset(105 + 10 * turn)})
        source = replace(source, gaps=gaps)
    assert len(source.gaps) == 32
    assert (source.gaps[0].start, source.gaps[0].end) == (100, 785)
    assert (source.gaps[-1].start, source.gaps[-1].end) == (1090, 1095)
    assert [gap.met is None for gap in source.gaps] == [True] + [False] * 31


def test_the_lowest_position_above_another_is_found() -> None:
    file, offset = np.array([8, 7, 7, 9]), np.array([5, 10, 11, 0])
    assert lowest_above(file, offset, LOW) == Position(7, 11)
    assert lowest_above(file, offset, Position(7, 11)) == Position(8, 5)
    assert lowest_above(file, offset, Position(9, 0)) is None


def test_a_table_continues_where_the_broker_still_has_records() -> None:
    assert can_continue(SOURCE, "id", {0: Offset(90), 1: Offset(90)})
    after = after_loss(SOURCE, "id", {0: Offset(60), 1: Offset(20), 2: Offset(5)})
    assert {at: state.next_offset for at, state in after.partitions.items()} == {0: 60, 1: 50, 2: 5}
    assert [gap.text for gap in after.gaps] == ["0:40-60", "2:0-5"]
    assert [state.lossy for state in after.partitions.values()] == [True, False, True]


@pytest.mark.parametrize("latest", [{0: 39, 1: 50}, {0: 40}])
def test_a_table_does_not_continue_in_a_topic_that_lost_what_was_read(
    latest: dict[int, Offset],
) -> None:
    assert not can_continue(SOURCE, "id", latest)


def test_in_a_recreated_topic_only_the_sources_positions_show_what_is_newer() -> None:
    assert can_continue(SOURCE, "new id", {0: Offset(3)})
    assert not can_continue(replace(SOURCE, ordering=Ordering.KAFKA), "new id", {0: Offset(3)})
    assert not can_continue(replace(SOURCE, epochs=(Epoch(1),)), "new id", {0: Offset(3)})
    after = after_loss(SOURCE, "new id", {0: Offset(2)})
    assert after.topic_id == "new id"
    assert after.partitions == {0: PartitionState(Offset(2), HIGH, lossy=True).before_missing()}
    assert [(gap.topic_id, gap.text) for gap in after.gaps] == [
        ("id", "0:40-"),
        ("id", "1:50-"),
        ("new id", "0:0-2"),
    ]
    bounded = read_on(after, 9, HIGHER)
    assert [gap.before for gap in bounded] == [HIGHER] * 3


def test_records_are_missing_where_offsets_are_left_out_behind_what_was_read() -> None:
    state = PartitionState(Offset(40))
    missing = MissingRecords.among(np.array([40, 41, 43, 44]), state)
    assert missing.before.tolist() == [0, 0, 1, 1, 1]
    assert MissingRecords.among(np.array([41, 42]), state).before.tolist() == [1, 1, 1]


def test_of_records_applied_between_two_that_wait_the_first_and_the_last_are_kept() -> None:
    def applied(at: int) -> LateChange:
        state = PartitionState(Offset(at + 1), Position(7, at))
        return LateChange(Offset(at), Position(7, at), None, HIGHER, state)

    def kept(waiting: Waiting, *offsets: int) -> list[int]:
        return [one.offset for one in waiting.with_applied(map(applied, offsets)).applied]

    assert kept(Waiting((GAP,)), 41, 42, 43, 44, 45) == [41, 45]
    assert kept(Waiting((GAP,), {44: None}), 41, 42, 43, 45, 46, 47) == [41, 43, 45, 47]


def test_records_of_a_gap_are_applied_in_runs_of_consecutive_offsets() -> None:
    record, nothing = np.array([40, 41, 43, 44]), pa.nulls(4, pa.string())
    places = np.full(4, HIGH.file), np.arange(4) + HIGH.offset + 1
    positions = ChangePositions(record, *places, nothing, np.zeros(4, np.bool_))
    state = PartitionState(Offset(40), HIGH, met_until=60)
    path = follow_returned(positions, 0, state, (), Waiting((GAP,), began=Offset(40)))
    assert not path.unproven
    assert [one.offset for one in path.applied] == [41, 44]
