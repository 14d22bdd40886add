"""Positions that fall back: repetitions are applied, anything unexplained stops the partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.sources.position_order import OrderCheck, accept_repetitions, check_order

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "85dc9e7c-0e29-4b5b-8e5e-0242ac110002"

Rows = Sequence[tuple[int, int, str | None]]  # binlog file, offset, GTID


def check(
    rows: Rows, start: Position = BEFORE_ALL, recent: Mapping[str, int] | None = None
) -> OrderCheck:
    positions = [at(file, offset) for file, offset, _ in rows]
    return check_order(
        np.array([position.file for position in positions], np.int64),
        np.array([position.offset for position in positions], np.int64),
        pa.array([gtid for _, _, gtid in rows], pa.string()),
        start,
        recent or {},
    )


def at(file: int, offset: int) -> Position:
    return Position.of(0, file, offset, 0, 1)


def test_rising_and_equal_positions_are_in_order() -> None:
    rows = [(1, 4, None), (1, 4, None), (1, 9, "0-1-7"), (1, 9, "0-1-7"), (2, 4, "0-1-8")]
    assert check(rows) == OrderCheck(None, "", at(2, 4), {"0": 8}, 0)


def test_no_rows_leave_everything_as_it_was() -> None:
    assert check([], at(3, 4), {"0": 5}) == OrderCheck(None, "", at(3, 4), {"0": 5}, 0)


def test_a_restarted_connector_may_repeat_what_it_sent() -> None:
    sent = [(1, 100 * n, f"0-1-{n}") for n in range(1, 8)]
    result = check([*sent, *sent[3:], (1, 800, "0-1-8")])
    assert result == OrderCheck(None, "", at(1, 800), {"0": 8}, 3)


def test_a_repetition_of_an_earlier_batch_is_known_by_the_numbers_kept() -> None:
    rows = [(1, 500, "0-1-5"), (1, 600, "0-1-6"), (1, 700, "0-1-7")]
    assert check(rows, at(1, 600), {"0": 6}) == OrderCheck(None, "", at(1, 700), {"0": 7}, 1)
    forgotten = check(rows, at(1, 600))
    assert forgotten.first_violation == 0


def test_a_failover_stops_at_the_first_change_under_the_new_gtids() -> None:
    rows = [(7, 100, "0-1-41"), (7, 200, "0-1-42"), (1, 4, "0-2-43"), (1, 90, "0-2-44")]
    result = check(rows)
    assert result.first_violation == 2
    assert (result.high, result.recent, result.repetitions) == (at(7, 200), {"0": 42}, 0)
    assert "0-2-43" in result.detail
    assert str(at(7, 200)) in result.detail


def test_another_transaction_at_the_highest_position_comes_from_another_server() -> None:
    rows = [(2, 157, "0-1-41"), (2, 157, "0-1-41"), (2, 157, "0-2-42"), (2, 200, "0-2-43")]
    result = check(rows)
    assert (result.first_violation, result.high) == (2, at(2, 157))
    assert "0-2-42" in result.detail
    assert check(rows[2:], at(2, 157), {"0": 41}).first_violation == 0
    assert check(rows[:2], at(2, 157), {"0": 41}).first_violation is None
    behind_a_snapshot = [(2, 157, None), (2, 157, None), (2, 200, "0-1-1")]
    assert check(behind_a_snapshot).first_violation is None


def test_a_failover_between_batches_stops_at_its_first_row() -> None:
    result = check([(1, 4, f"{OTHER}:1")], at(7, 200), {UUID: 900})
    assert (result.first_violation, result.high, result.recent) == (0, at(7, 200), {UUID: 900})


def test_a_repetition_before_a_failover_is_still_applied_up_to_it() -> None:
    rows = [(7, 9, "0-1-1"), (7, 20, "0-1-2"), (7, 9, "0-1-1"), (7, 30, "0-1-3"), (1, 4, "0-2-4")]
    result = check(rows)
    assert (result.first_violation, result.repetitions, result.recent) == (4, 1, {"0": 3})


def test_server_ids_that_alternate_behind_a_replica_prove_nothing() -> None:
    rows = [(1, 100 * n, f"0-{1 + n % 2}-{n}") for n in range(1, 9)]
    assert check([*rows, *rows[5:]]).first_violation is None


def test_the_numbers_of_different_streams_are_kept_apart() -> None:
    tagged = [(1, 9, f"{UUID}:900"), (1, 20, f"{UUID}:backup:3"), (1, 30, "5-1-77")]
    result = check(tagged)
    assert result.recent == {UUID: 900, f"{UUID}:backup": 3, "5": 77}
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
    assert check(rows) == OrderCheck(None, "", at(1, 30), {"0": 1}, 1)


row = st.tuples(
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from([None, "0-1-1", "0-2-2", "0-1-3", "1-1-1", f"{UUID}:2", f"{UUID}:4"]),
)


@dataclass
class RowByRow:
    """The rule, applied to one row after the other: what it says about rows of two batches."""

    violation: int | None = None
    high: Position = BEFORE_ALL
    recent: dict[str, int] = field(default_factory=dict)
    repetitions: int = 0

    def take(self, rows: Rows) -> None:
        before = None
        for number, (file, offset, gtid) in enumerate(rows):
            stream, sequence = None, -1
            if gtid is not None:
                parts = gtid.split(":") if ":" in gtid else gtid.split("-")
                stream, sequence = parts[0], int(parts[-1])
            position = at(file, offset)
            met = stream is not None and sequence <= self.recent.get(stream, -1)
            if not met and (position < self.high or (position == self.high and stream)):
                self.violation = number
                return
            if stream is not None:
                if met and position > self.high and (stream, sequence) != before:
                    self.recent = {}
                self.recent[stream] = max(sequence, self.recent.get(stream, -1))
                before = stream, sequence
            self.repetitions += position < self.high
            self.high = max(self.high, position)


@given(st.lists(row, max_size=12), st.integers(0, 12))
def test_batches_of_any_size_come_to_what_the_rule_says_row_by_row(rows: Rows, cut: int) -> None:
    rule = RowByRow()
    rule.take(rows[:cut])
    first = check(rows[:cut])
    assert first == found(rule, first.detail)
    if first.first_violation is None:
        rule.take(rows[cut:])
        rest = check(rows[cut:], first.high, first.recent)
        rule.repetitions -= first.repetitions
        assert rest == found(rule, rest.detail)


def found(rule: RowByRow, detail: str) -> OrderCheck:
    return OrderCheck(rule.violation, detail, rule.high, rule.recent, rule.repetitions)


def test_after_repetitions_at_higher_positions_only_these_count_as_met() -> None:
    rows = [
        *((3, 100, "0-1-8"), (3, 200, "0-1-9"), (3, 300, "1-1-1")),
        *((7, 100, "0-1-9"), (7, 100, "0-1-9"), (3, 300, "1-1-1")),
    ]
    assert check(rows[:3]).recent == {"0": 9, "1": 1}
    assert check(rows[:5]).recent == {"0": 9}
    assert check(rows).first_violation == 5


@pytest.mark.parametrize("prefix", ["0-7-", "3e11fa47-71ca-11e1-9e33-c80aa9429562:", "u:tag:"])
def test_gtids_of_one_stream_are_read_as_beside_those_of_others(prefix: str) -> None:
    numbers = [5, 6, 6, 9, 10]
    alike = pa.array([f"{prefix}{number}" for number in numbers])
    mixed = pa.concat_arrays([alike, pa.array(["9-9-1", None, "nonsense", f"{prefix}x"])])
    rising = np.arange(len(mixed), dtype=np.int64)
    zeros = np.zeros(len(mixed), np.int64)
    one = check_order(zeros[:5], rising[:5], alike, BEFORE_ALL, {})
    many = check_order(zeros, rising, mixed, BEFORE_ALL, {})
    assert one.recent == dict.fromkeys(one.recent, 10)
    assert len(one.recent) == 1
    assert many.recent == {**one.recent, "9": 1}


def test_with_positions_from_one_clock_a_lower_one_is_a_repetition() -> None:
    files, offsets = np.zeros(4, np.int64), np.array([5, 9, 7, 9], np.int64)
    check = accept_repetitions(files, offsets, Position(0, 6), {"a": 1})
    assert (check.first_violation, check.high, check.repetitions) == (None, Position(0, 9), 2)
    assert check.recent == {"a": 1}
