"""Positions that fall back: repetitions are applied, anything unexplained stops the partition."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import (
    NOTHING_MET,
    GtidRanges,
    MetGtids,
    Transaction,
)
from lakesplice.planning.sources.met_gtids import RANGES_MAX
from lakesplice.planning.sources.position_order import (
    ComparedRows,
    OrderCheck,
    accept_repetitions,
    check_order,
)

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "85dc9e7c-0e29-4b5b-8e5e-0242ac110002"

Rows = Sequence[tuple[int, int, str | None]]  # binlog file, offset, GTID


def check(
    rows: Rows, start: Position = BEFORE_ALL, met: MetGtids | None = None, *missing: int
) -> OrderCheck:
    """What rows show; before those with the numbers in `missing` there are missing records."""
    positions = [at(file, offset) for file, offset, _ in rows]
    met = met or MetGtids()
    compared = ComparedRows.of(
        np.array([position.file for position in positions], np.int64),
        np.array([position.offset for position in positions], np.int64),
        pa.array([gtid for _, _, gtid in rows], pa.string()),
        start,
        met,
        after_missing=np.isin(np.arange(len(rows)), missing),
    )
    return check_order(compared, start, met)


def up_to(last: Position | None = None, **highest: int) -> MetGtids:
    """All numbers up to these are met; the last transaction of the first stream is at `last`."""
    numbers = {name.lstrip("_"): number for name, number in highest.items()}
    stream = next(iter(numbers), "")
    transaction = Transaction(stream, numbers[stream], last) if last else None
    return MetGtids(GtidRanges.up_to(numbers), transaction)


def at(file: int, offset: int) -> Position:
    return Position.of(0, file, offset, 0, 1)


def test_rising_and_equal_positions_are_in_order() -> None:
    rows = [(1, 4, None), (1, 4, None), (1, 9, "0-1-7"), (1, 9, "0-1-7"), (2, 4, "0-1-8")]
    assert check(rows) == OrderCheck(None, "", at(2, 4), up_to(at(2, 4), _0=8), 0)


def test_no_rows_leave_everything_as_it_was() -> None:
    for met in (up_to(at(3, 1), _0=5), NOTHING_MET, MetGtids()):
        assert check([], at(3, 4), met) == OrderCheck(None, "", at(3, 4), met, 0)


def test_a_restarted_connector_may_repeat_what_it_sent() -> None:
    sent = [(1, 100 * n, f"0-1-{n}") for n in range(1, 8)]
    result = check([*sent, *sent[3:], (1, 800, "0-1-8")])
    assert result == OrderCheck(None, "", at(1, 800), up_to(at(1, 800), _0=8), 3)


def test_a_repetition_of_an_earlier_batch_is_known_by_the_numbers_kept() -> None:
    rows = [(1, 500, "0-1-5"), (1, 600, "0-1-6"), (1, 700, "0-1-7")]
    later = check(rows, at(1, 600), up_to(_0=6))
    assert later == OrderCheck(None, "", at(1, 700), up_to(at(1, 700), _0=7), 1)
    forgotten = check(rows, at(1, 600))
    assert forgotten.first_violation == 0


def test_a_failover_stops_at_the_first_change_under_the_new_gtids() -> None:
    rows = [(7, 100, "0-1-41"), (7, 200, "0-1-42"), (1, 4, "0-2-43"), (1, 90, "0-2-44")]
    result = check(rows)
    assert result.first_violation == 2
    assert (result.high, result.met.highest, result.repetitions) == (at(7, 200), {"0": 42}, 0)
    assert "0-2-43" in result.detail
    assert str(at(7, 200)) in result.detail


def test_another_transaction_at_the_highest_position_comes_from_another_server() -> None:
    rows = [(2, 157, "0-1-41"), (2, 157, "0-1-41"), (2, 157, "0-2-42"), (2, 200, "0-2-43")]
    result = check(rows)
    assert (result.first_violation, result.high) == (2, at(2, 157))
    assert "0-2-42" in result.detail
    assert check(rows[2:], at(2, 157), up_to(_0=41)).first_violation == 0
    assert check(rows[:2], at(2, 157), up_to(_0=41)).first_violation is None
    behind_a_snapshot = [(2, 157, None), (2, 157, None), (2, 200, "0-1-1")]
    assert check(behind_a_snapshot).first_violation is None


def test_a_failover_between_batches_stops_at_its_first_row() -> None:
    met = MetGtids(GtidRanges.up_to({UUID: 900}))
    result = check([(1, 4, f"{OTHER}:1")], at(7, 200), met)
    assert (result.first_violation, result.high, result.met) == (0, at(7, 200), met)


def test_a_repetition_before_a_failover_is_still_applied_up_to_it() -> None:
    rows = [(7, 9, "0-1-1"), (7, 20, "0-1-2"), (7, 9, "0-1-1"), (7, 30, "0-1-3"), (1, 4, "0-2-4")]
    result = check(rows)
    assert (result.first_violation, result.repetitions, result.met.highest) == (4, 1, {"0": 3})


def test_server_ids_that_alternate_behind_a_replica_prove_nothing() -> None:
    rows = [(1, 100 * n, f"0-{1 + n % 2}-{n}") for n in range(1, 9)]
    assert check([*rows, *rows[5:]]).first_violation is None


def test_the_numbers_of_different_streams_are_kept_apart() -> None:
    tagged = [(1, 9, f"{UUID}:900"), (1, 20, f"{UUID}:backup:3"), (1, 30, "5-1-77")]
    result = check(tagged)
    assert result.met.highest == {UUID: 900, f"{UUID}:backup": 3, "5": 77}
    for new in (f"{UUID}:backup:4", f"{OTHER}:1", "6-1-1"):
        assert check([*tagged, (1, 10, new)]).first_violation == 3
    for old in (f"{UUID}:900", f"{UUID}:backup:3", "5-9-12"):
        assert check([*tagged, (1, 10, old)]).first_violation is None


@pytest.mark.parametrize("gtid", [None, "", "nonsense", "0-1", f"{UUID}:1-", "0-1-x", "a:b:c"])
def test_a_fall_back_without_a_readable_gtid_is_a_violation(gtid: str | None) -> None:
    result = check([(1, 9, "0-1-1"), (1, 4, gtid)])
    assert (result.first_violation, result.high) == (1, at(1, 9))


def test_rows_of_a_snapshot_share_one_position_but_must_not_fall_back() -> None:
    snapshot = [(1, 329, None)] * 3
    assert check([*snapshot, (1, 400, "0-1-5")]).first_violation is None
    assert check([*snapshot, (1, 400, "0-1-5"), (1, 329, None)]).first_violation == 4


def test_rows_of_one_transaction_may_be_met_again_from_its_middle() -> None:
    rows = [(1, 9, "0-1-1"), (1, 20, "0-1-1"), (1, 9, "0-1-1"), (1, 20, "0-1-1"), (1, 30, "0-1-1")]
    assert check(rows) == OrderCheck(None, "", at(1, 30), up_to(at(1, 9), _0=1), 1)


row = st.tuples(
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from([None, "0-1-1", "0-2-2", "0-1-3", "1-1-1", f"{UUID}:2", f"{UUID}:4"]),
)


@given(st.lists(row, max_size=12), st.integers(0, 12), st.sets(st.integers(0, 11), max_size=2))
def test_batches_of_any_size_come_to_what_their_rows_show_one_by_one(
    rows: Rows, cut: int, missing: set[int]
) -> None:
    state: tuple[Position, MetGtids] = BEFORE_ALL, MetGtids()
    found = None
    for number, one in enumerate(rows):
        result = check([one], *state, *([0] if number in missing else []))
        if result.first_violation is not None:
            found = number
            break
        state = result.high, result.met
    first = check(rows[:cut], BEFORE_ALL, None, *missing)
    second = check(rows[cut:], first.high, first.met, *(number - cut for number in missing))
    if first.first_violation is not None:
        assert (first.first_violation, first.high) == (found, state[0])
        return
    at_cut = second.first_violation
    assert (None if at_cut is None else cut + at_cut) == found
    assert second.high == state[0]
    if found is None:
        assert second.met == state[1]


def test_a_change_applied_again_at_a_higher_position_ends_what_is_proven_of_later_ones() -> None:
    rows = [
        *((3, 100, "0-1-8"), (3, 200, "0-1-9"), (3, 300, "1-1-1")),
        *((7, 100, "0-1-8"), (7, 100, "0-1-8"), (3, 200, "0-1-9")),
    ]
    assert check(rows[:3]).met.highest == {"0": 9, "1": 1}
    assert check(rows[:5]).met.highest == {"0": 8}
    assert check(rows).first_violation == 5
    assert check([*rows[:5], (3, 100, "0-1-7")]).first_violation is None
    assert check([*rows[:5], (3, 300, "1-1-1")]).first_violation == 5


def test_a_change_applied_again_between_others_covers_later_ones_up_to_its_position() -> None:
    sent = [(1, 100 * n, f"0-1-{n}") for n in range(1, 6)]
    other = [*sent, (1, 250, "0-2-1")]
    assert check([*other, (1, 350, "0-2-2"), (1, 500, "0-2-3")]).first_violation is None
    assert check([*other, (1, 200, "0-1-2")]).first_violation == 6
    again = [*other, (1, 350, "0-2-2"), (1, 450, "0-2-3"), (1, 100, "0-1-1"), (1, 200, "0-1-2")]
    assert check(again).first_violation is None
    assert check([*again, (1, 300, "0-1-3")]).first_violation == 10


def test_missing_records_that_come_later_are_told_from_those_of_another_server() -> None:
    rows = [(1, 100 * n, f"0-1-{n}") for n in (1, 2, 5, 6)]
    for again in (1, 2, 3, 4, 5, 6):
        assert check([*rows, (1, 100 * again, f"0-1-{again}")], BEFORE_ALL, None, 2) == (
            OrderCheck(None, "", at(1, 600), ANY, int(again < 6))
        )
    for lower in ((1, 150, "0-2-3"), (1, 200, "0-2-4"), (1, 150, "0-2-5"), (1, 550, "0-2-7")):
        assert check([*rows, lower], BEFORE_ALL, None, 2).first_violation == 4
    assert check([*rows, (1, 550, "0-2-7")], BEFORE_ALL, None, 4).first_violation == 4
    in_turn = [*rows, (1, 300, "0-1-3"), (1, 400, "0-1-4"), (1, 500, "0-1-5")]
    assert check(in_turn, BEFORE_ALL, None, 2).first_violation is None
    assert check([*rows, (1, 400, "0-1-3"), (1, 350, "0-2-4")], BEFORE_ALL, None, 2) == (
        OrderCheck(5, ANY, at(1, 600), ANY, 1)
    )


def test_behind_missing_records_a_stream_that_was_not_met_may_be_one_of_former_changes() -> None:
    rows = [(1, 100, "0-1-4"), (1, 200, "0-1-5"), (3, 10, "1-1-1"), (1, 100, "0-1-4")]
    assert check(rows).first_violation is None
    assert check(rows, BEFORE_ALL, None, 0).first_violation == 3
    forward = [*rows[:3], (3, 20, "0-1-6"), (3, 30, "1-1-2")]
    assert check([*forward, (3, 10, "1-1-1")], BEFORE_ALL, None, 0).first_violation is None


def test_of_many_ranges_the_oldest_are_joined() -> None:
    numbers = range(1, 400, 3)
    rows = [(1, 100 * n, f"0-1-{n}") for n in numbers]
    met = check(rows, BEFORE_ALL, None, *range(len(rows))).met
    assert len(met.read.ranges) == RANGES_MAX
    for known in (398, 397, 380):
        assert check([(1, 100 * known, f"0-1-{known}")], at(1, 39700), met).first_violation is None
    assert check([(1, 100, "0-1-1")], at(1, 39700), met).first_violation == 0


def test_a_transaction_that_another_server_continues_is_no_repetition() -> None:
    rows = [(5, 100, "0-1-8"), (5, 200, "0-1-9"), (5, 240, "0-1-9"), (5, 270, "0-1-9")]
    for again in ((5, 200, "0-1-9"), (5, 270, "0-1-9"), (2, 50, "0-1-8")):
        assert check([*rows, again]).first_violation is None
    for other in ((2, 50, "0-1-9"), (5, 199, "0-1-9")):
        assert check([*rows, other]).first_violation == 4
        assert check([other], at(5, 270), check(rows).met).first_violation == 0
    other_file = [*rows, (7, 10, "0-1-9")]
    assert check([*other_file, (6, 90, "0-1-9")]).first_violation == 5


@pytest.mark.parametrize("prefix", ["0-7-", "3e11fa47-71ca-11e1-9e33-c80aa9429562:", "u:tag:"])
def test_gtids_of_one_stream_are_read_as_beside_those_of_others(prefix: str) -> None:
    numbers = [5, 6, 6, 9, 10]
    alike = pa.array([f"{prefix}{number}" for number in numbers])
    mixed = pa.concat_arrays([alike, pa.array(["9-9-1", None, "nonsense", f"{prefix}x"])])
    rising = np.arange(len(mixed), dtype=np.int64)
    zeros = np.zeros(len(mixed), np.int64)
    one, many = (
        check_order(ComparedRows.of(*columns, BEFORE_ALL, MetGtids()), BEFORE_ALL, MetGtids())
        for columns in ((zeros[:5], rising[:5], alike), (zeros, rising, mixed))
    )
    highest = one.met.highest
    assert highest == dict.fromkeys(highest, 10)
    assert len(highest) == 1
    assert many.met.highest == {**highest, "9": 1}


def test_with_positions_from_one_clock_a_lower_one_is_a_repetition() -> None:
    files, offsets = np.zeros(4, np.int64), np.array([5, 9, 7, 9], np.int64)
    check = accept_repetitions(files, offsets, Position(0, 6), NOTHING_MET)
    assert (check.first_violation, check.high, check.repetitions) == (None, Position(0, 9), 2)
    assert check.met is NOTHING_MET
