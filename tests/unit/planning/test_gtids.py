"""GTIDs as sources write them: single ones, tagged ones, sets, and texts that aren't GTIDs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import (
    NOTHING_MET,
    GtidRange,
    GtidRanges,
    MetGtids,
    Transaction,
)
from lakesplice.planning.sources.gtids import GtidStreams
from lakesplice.planning.sources.met_gtids import Gtid, Memory
from lakesplice.planning.sources.position_order import ComparedRows, check_order

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "85dc9e7c-0e29-4b5b-8e5e-0242ac110002"


@pytest.mark.parametrize(
    ("text", "highest"),
    [
        ("0-1-7", {"0": 7}),
        (f"{UUID}:7", {UUID: 7}),
        (f"{UUID}:backup:7", {f"{UUID}:backup": 7}),
        (f"{UUID}:1-5", {UUID: 5}),
        (f"{UUID}:1-5:8-9,\n{OTHER}:3", {UUID: 9, OTHER: 3}),
        (f"{UUID}:1-5:backup:2:4-6", {UUID: 5, f"{UUID}:backup": 6}),
        ("0-1-5,1-2-7", {"0": 5, "1": 7}),
        ("", {}),
        ("0-1", {}),
        (f"{UUID}:1-", {}),
        (f"{UUID}:1-5,nonsense", {}),
        (f"{UUID}:{10**18}", {}),
    ],
)
def test_a_gtid_tells_the_highest_number_of_each_stream(text: str, highest: dict[str, int]) -> None:
    gtid = pa.array([text, None], pa.string())
    assert GtidStreams.of(gtid, {}).highest({}) == highest


def test_a_set_stands_for_the_stream_that_it_brought_forward() -> None:
    sets = [f"{UUID}:1-5,{OTHER}:1-3", f"{UUID}:1-5,{OTHER}:1-4", f"{UUID}:1-6,{OTHER}:1-4"]
    streams = GtidStreams.of(pa.array(sets), {UUID: 5, OTHER: 3})
    assert [streams.at(row) for row in range(3)] == [(UUID, 5), (OTHER, 4), (UUID, 6)]
    every = np.ones(3, np.bool_)
    assert streams.met_before(every, {UUID: 5, OTHER: 3}).tolist() == [True, False, False]


def test_a_fall_back_under_a_set_met_before_is_a_repetition_and_under_a_larger_one_is_not() -> None:
    sets = [f"{UUID}:1-{number},{OTHER}:1-3" for number in (5, 6, 5, 6, 7)]

    def check(*files: int) -> int | None:
        file = np.array(files, np.int64)
        offset, gtid = np.zeros(len(file), np.int64), pa.array(sets[: len(files)])
        start = Position(0, 0)
        compared = ComparedRows.of(file, offset, gtid, start, MetGtids())
        return check_order(compared, start, MetGtids()).first_violation

    assert check(4, 5, 4, 5, 6) is None
    assert check(4, 5, 4, 5, 1) == 4


def test_of_the_last_transaction_changes_from_its_first_to_the_highest_position_are_read() -> None:
    memory, gtid = Memory(NOTHING_MET), Gtid("0-1", 7)

    def read() -> list[bool]:
        places = [Position(3, at) for at in (39, 40, 50, 51)]
        return [memory.is_surely_read(gtid, place, Position(3, 50)) for place in places]

    memory.note(gtid, Position(3, 40), BEFORE_ALL)
    assert read() == [False] * 4, "nothing shows that it began there"
    memory = Memory(NOTHING_MET)
    memory.note(Gtid("0-1", 6), Position(3, 20), BEFORE_ALL)
    memory.note(gtid, Position(3, 40), Position(3, 20))
    assert read() == [False, True, True, False]


def test_a_former_transaction_is_read_if_what_is_met_of_its_server_begins_just_below_it() -> None:
    former = GtidRange.of("0-1", (7, 8), Position(3, 39), from_start=False)
    last = Transaction("0-2", 9, Position(4, 10))
    ranges = (former, GtidRange.of("0-2", (9, 10), Position(4, 0), from_start=False))
    memory = Memory(MetGtids(GtidRanges(ranges), last))
    read = [
        memory.is_surely_read(Gtid("0-1", 7), Position(3, at), Position(4, 10))
        for at in (38, 39, 40, 41)
    ]
    assert read == [False, False, True, False]


def test_a_change_at_the_highest_position_again_is_not_above_it() -> None:
    """A row may have the first number's change there. Then the second one's would be lost at a
    lower position, so it must not count as proven.
    """
    memory, high = Memory(NOTHING_MET), BEFORE_ALL
    for number, offset in ((3, 4), (1, 4), (4, 6)):
        gtid, position = Gtid("0-1", number), Position(1, offset)
        assert position > high or memory.proves(gtid, position)
        memory.note(gtid, position, high)
        high = max(high, position)
    assert not memory.proves(Gtid("0-1", 2), Position(1, 3))
    assert memory.proves(Gtid("0-1", 2), Position(1, 5))
