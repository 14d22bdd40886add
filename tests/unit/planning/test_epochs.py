"""Which changes may be below the highest position: those that are read again, and no others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.sources.epochs import (
    ChangePositions,
    EpochPath,
    epochs_of_late_records,
    follow,
)

FIRST = 10
HIGH = Position(1, 40)


def path(state: PartitionState, *places: tuple[int, int]) -> EpochPath:
    """What changes without GTIDs at these files and offsets show, one record each."""
    file, offset = np.array(places, np.int64).T
    record = np.arange(FIRST, FIRST + len(places))
    gtid = pa.nulls(len(places), pa.string())
    missing = np.zeros(len(places), np.bool_)
    return follow(ChangePositions(record, file, offset, gtid, missing), 0, state, ())


def test_records_that_were_read_before_may_fall_back_and_the_first_new_one_may_not() -> None:
    state = PartitionState(Offset(FIRST), HIGH, met_until=FIRST + 2)
    found = path(state, (1, 10), (1, 20), (1, 30), (1, 50))
    assert found.end == 2
    assert found.detail
    assert found.repetitions == 2
    assert path(state, (1, 10), (1, 20), (1, 40), (1, 50)).end == 4


@pytest.mark.parametrize(
    ("places", "end"),
    [
        (((1, 10), (1, 39), (1, 40), (1, 41)), 4),
        (((1, 10), (1, 40), (1, 20)), 2),
        (((0, 60), (1, 30), (1, 50), (1, 45)), 3),
        (((1, 10), (2, 5), (2, 4)), 2),
    ],
)
def test_a_repetition_that_an_operator_declared_ends_where_it_reaches_what_was_met(
    places: tuple[tuple[int, int], ...], end: int
) -> None:
    found = path(PartitionState(Offset(FIRST), HIGH, repeating=True), *places)
    assert found.end == end
    assert not found.state.repeating


@pytest.mark.parametrize("before", [{"a": 1}, {}])
def test_a_late_record_of_the_stream_that_opened_an_epoch_is_in_it_if_it_is_below_the_opening_one(
    before: dict[str, int],
) -> None:
    """Whether the stream was met before must not matter: its records may have been dead letters."""
    epoch = Epoch(1, "a", 5, Position(3, 50), before, {0: Offset(FIRST + 9)})
    file, offset = np.array([3, 3, 8], np.int64), np.array([40, 60, 60], np.int64)
    gtid = pa.array(["a:3", "a:4", "a:5"])
    late = ChangePositions(np.arange(FIRST, FIRST + 3), file, offset, gtid, np.zeros(3, np.bool_))
    assert epochs_of_late_records(late, 0, [epoch]).tolist() == [1, 0, 1]


def test_a_declared_repetition_continues_while_it_stays_below_what_was_met() -> None:
    found = path(PartitionState(Offset(FIRST), HIGH, repeating=True), (0, 60), (1, 10), (1, 5))
    assert (found.end, found.state.repeating, found.state.position) == (3, True, HIGH)
