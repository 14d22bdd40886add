"""What the purge floor of a topic must stay below, and which files are purged at a time."""

from __future__ import annotations

import pytest

from lakesplice.errors import UsageError
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.manifest import DeadLetterRef, FileRef, Manifest, UpsertState
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.upkeep.purging import ROWS_MAX, plan_purge, purge_bound, purge_bounds


def source(topic: str, *reached: Position) -> SourceState:
    partitions = {at: PartitionState(Offset(1), position) for at, position in enumerate(reached)}
    return SourceState(topic, "id", partitions)


def letter(offset: int, topic: str = "") -> DeadLetterRef:
    return DeadLetterRef(FileRef("x", 1, "0" * 32), 1, position=Position(1, offset), topic=topic)


def manifest(*sources: SourceState, letters: tuple[DeadLetterRef, ...] = ()) -> Manifest:
    return Manifest(1, sources={one.topic: one for one in sources}, dead_letters=letters)


AHEAD, BEHIND = Position(1, 9), Position(1, 5)


def test_the_purge_floor_is_the_position_that_every_partition_has_reached() -> None:
    assert purge_bound(manifest(source("a", AHEAD, BEHIND))) == BEHIND
    assert purge_bound(manifest(source("a", BEHIND, AHEAD)), "a") == BEHIND
    assert purge_bound(manifest(source("a", AHEAD, BEFORE_ALL))) == BEFORE_ALL


@pytest.mark.parametrize(("offset", "bound"), [(7, Position(1, 7)), (12, AHEAD)])
@pytest.mark.parametrize("told", ["", "a"])
def test_the_purge_floor_is_not_above_the_position_of_a_dead_letter(
    offset: int, bound: Position, told: str
) -> None:
    assert purge_bound(manifest(source("a", AHEAD), letters=(letter(offset, told),))) == bound


def test_dead_letters_of_another_topic_do_not_count() -> None:
    two = manifest(source("a", AHEAD), source("b", BEHIND), letters=(letter(1, "b"),))
    assert purge_bound(two, "a") == AHEAD
    assert purge_bound(two, "b") == Position(1, 1)
    bounds = purge_bounds(two)
    assert bounds is not None
    assert [(one.topic, one.position) for one in bounds] == [("a", AHEAD), ("b", Position(1, 1))]


def test_without_a_source_or_a_partition_nothing_may_go() -> None:
    assert purge_bound(manifest()) == BEFORE_ALL
    assert purge_bound(manifest(source("a"))) == BEFORE_ALL
    assert purge_bound(manifest(source("a", AHEAD)), "other") == BEFORE_ALL
    assert purge_bounds(manifest()) == ()


def test_of_several_topics_one_has_to_be_named() -> None:
    with pytest.raises(UsageError):
        purge_bound(manifest(source("a"), source("b")))


def test_a_table_fed_by_hand_has_no_purge_floor() -> None:
    by_hand = Manifest(1, upserts=UpsertState(3))
    assert purge_bound(by_hand) is None
    assert purge_bounds(by_hand) is None


def test_the_files_with_most_to_go_come_first_as_far_as_their_rows_go() -> None:
    rows = ROWS_MAX * 2 // 5
    files = [
        (BaseFile(f"{name}.parquet", 1, (Segment(at, rows),)), rows * share // 10)
        for at, (name, share) in enumerate({"a": 3, "b": 9, "c": 5, "d": 1, "e": 0}.items())
    ]
    chosen = plan_purge(Manifest(1), files, 0.2)
    assert [file.path for file in chosen] == ["b.parquet", "c.parquet"]
    large = BaseFile("large.parquet", 1, (Segment(9, 2 * ROWS_MAX),))
    assert plan_purge(Manifest(1), [*files, (large, 2 * ROWS_MAX)], 0.2) == [large]
