"""What must happen after a table's DROPs, by the ordering of its changes and by its policy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.events.ddl import TableDrop
from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.intake.order.truncations import counted, fence_of, parking_truncations
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.sources.dropped_tables import (
    DropDecision,
    DropHistory,
    Remedy,
    due,
    kept,
    open_after,
)


def _at(pos: int) -> Position:
    return Position.of(0, 3, pos, 0, 0)


def _source(
    reached: int = 100, ordering: Ordering | None = Ordering.BINLOG, fence: Position = BEFORE_ALL
) -> SourceState:
    partitions = {0: PartitionState(Offset(5)), 1: PartitionState(Offset(9), _at(reached))}
    return SourceState("db.shop.x", "t", partitions, ordering=ordering, fence=fence)


def _told(*drops: TableDrop, ordered: bool = True, since: int = 0) -> DropHistory:
    return DropHistory(drops, ordered, since, since)


def _remedy(found: DropDecision | None) -> tuple[Remedy, Position] | None:
    return None if found is None else (found.remedy, found.position)


OPEN = TableDrop(0, _at(200))
OVER = TableDrop(0, _at(200), again=True)


@pytest.mark.parametrize(
    ("behaviour", "drop", "remedy"),
    [
        (Behaviour.EVOLVE, OPEN, Remedy.FENCE),
        (Behaviour.TRY_EVOLVE, OPEN, Remedy.FENCE),
        (Behaviour.LENIENT, OPEN, None),
        (Behaviour.LENIENT, OVER, Remedy.FENCE),
        (Behaviour.IGNORE, OVER, None),
        (Behaviour.EXCEPTION, OPEN, Remedy.ASK),
    ],
)
def test_the_policy_says_what_a_drop_calls_for(
    behaviour: Behaviour, drop: TableDrop, remedy: Remedy | None
) -> None:
    found = due(_source(), _told(drop), SchemaPolicy(drop_table=behaviour))
    assert _remedy(found) == (None if remedy is None else (remedy, _at(200)))


def test_the_highest_of_several_drops_counts_and_a_fence_shows_it_was_handled() -> None:
    told = _told(OVER, TableDrop(1, _at(300)))
    policy = SchemaPolicy(drop_table=Behaviour.EVOLVE)
    assert _remedy(due(_source(), told, policy)) == (Remedy.FENCE, _at(300))
    assert _remedy(due(_source(fence=_at(200)), told, policy)) == (Remedy.FENCE, _at(300))
    assert due(_source(fence=_at(300)), told, policy) is None
    assert _remedy(due(_source(), told, SchemaPolicy())) == (Remedy.FENCE, _at(200))


@pytest.mark.parametrize("ordering", [Ordering.KAFKA, Ordering.TIDB])
def test_without_binlog_positions_only_a_new_drop_parks(
    ordering: Ordering,
) -> None:
    policy = SchemaPolicy(drop_table=Behaviour.EVOLVE)
    found = due(_source(ordering=ordering), _told(OPEN), policy)
    assert found is not None
    assert found.remedy is Remedy.PARK
    assert f"ordered by {ordering}" in found.detail
    assert due(_source(ordering=ordering), _told(OPEN, since=1), policy) is None


def test_after_positions_fell_back_only_a_new_drop_parks() -> None:
    policy = SchemaPolicy(drop_table=Behaviour.EVOLVE)
    found = due(_source(fence=_at(900)), _told(OPEN, ordered=False), policy)
    assert found is not None
    assert found.remedy is Remedy.PARK
    assert due(_source(), _told(OPEN, ordered=False, since=1), policy) is None
    ignoring = SchemaPolicy(drop_table=Behaviour.IGNORE)
    assert due(_source(), _told(OPEN, ordered=False), ignoring) is None


def test_where_places_tell_nothing_rows_that_stay_park_once_the_table_is_there_again() -> None:
    source, lenient = _source(reached=900, ordering=Ordering.KAFKA), SchemaPolicy()
    assert due(source, _told(OPEN), lenient) is None
    assert open_after(_told(OPEN), lenient) == 0, "it may still have to be dealt with"
    found = due(source, _told(OVER), lenient)
    assert found is not None
    assert found.remedy is Remedy.PARK
    assert open_after(_told(OVER), lenient) == 1


def test_a_table_that_read_nothing_yet_waits() -> None:
    policy = SchemaPolicy(drop_table=Behaviour.EVOLVE)
    assert due(_source(ordering=None), _told(OPEN), policy) is None


def test_a_drop_that_leaves_the_rows_is_reported_once() -> None:
    lenient, ignoring = SchemaPolicy(), SchemaPolicy(drop_table=Behaviour.IGNORE)
    assert kept(_told(OPEN), lenient) == (OPEN,)
    assert kept(_told(OVER), lenient) == ()
    assert kept(_told(OVER), ignoring) == (OVER,)
    assert kept(_told(OVER, since=1), ignoring) == ()
    for behaviour in (Behaviour.EVOLVE, Behaviour.EXCEPTION):
        assert kept(_told(OPEN), SchemaPolicy(drop_table=behaviour)) == ()


def _fences() -> Fences:
    """A TRUNCATE at record 3 and a DROP at record 5."""
    numbers = np.array([30, 50], np.int64)
    gtid = pa.array([None, None], pa.string())
    dropped = np.array([False, True])
    moments = pa.nulls(2, pa.timestamp("us", tz="UTC"))
    return Fences(
        np.array([3, 5], np.int64), np.zeros(2, np.int64), numbers, gtid, dropped, moments
    )


@pytest.mark.parametrize(
    ("drop", "truncate", "limit", "expected"),
    [
        (Behaviour.LENIENT, Behaviour.EVOLVE, 9, 50),
        (Behaviour.LENIENT, Behaviour.EVOLVE, 5, 30),
        (Behaviour.IGNORE, Behaviour.EVOLVE, 9, 30),
        (Behaviour.EVOLVE, Behaviour.IGNORE, 9, 50),
        (Behaviour.IGNORE, Behaviour.LENIENT, 9, None),
    ],
)
def test_among_records_each_kind_goes_by_its_own_policy(
    drop: Behaviour, truncate: Behaviour, limit: int, expected: int | None
) -> None:
    policy = SchemaPolicy(drop_table=drop, truncate_table=truncate)
    fences = _fences()
    found = fence_of(*counted(fences, fences.position_file, RecordIndex(limit), policy, ()))
    assert found == (BEFORE_ALL if expected is None else Position(0, expected))


def test_among_records_each_kind_parks_by_its_own_policy() -> None:
    policy = SchemaPolicy(drop_table=Behaviour.EXCEPTION, truncate_table=Behaviour.EXCEPTION)
    found = [(row, code) for row, code, _ in parking_truncations(_fences(), policy)]
    assert found == [(3, ParkCode.TRUNCATED), (5, ParkCode.DROPPED)]
    assert not list(parking_truncations(_fences(), SchemaPolicy()))
