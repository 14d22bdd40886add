"""The reported freshness of a table's views."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.apps.service.tables.freshness import Freshness, TopicProgress
from lakesplice.model.manifest import DeltaRef, FileRef, Manifest
from lakesplice.model.moments import EpochMs, EpochSeconds
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState, SourceState


def _manifest(next_offset: int, *floors: int) -> Manifest:
    """A table that stands at `next_offset` of one partition, with deltas from these offsets on."""
    source = SourceState("shop.orders", "id", {0: PartitionState(Offset(next_offset))})
    deltas = tuple(
        DeltaRef(
            FileRef(f"{at}.avro", 1, "0"),
            1,
            1,
            {0: 1},
            committed_ms=EpochMs(at * 1000),
            floor={0: Offset(at)},
        )
        for at in floors
    )
    return Manifest(1, sources={source.topic: source}, deltas=deltas)


def test_freshness_is_unknown_before_the_topic_was_seen() -> None:
    assert TopicProgress().freshness(_manifest(5), {0: Offset(5)}) == Freshness(None, None)


def test_a_table_behind_a_growing_topic_is_as_fresh_as_what_it_holds() -> None:
    progress = TopicProgress()
    for moment in range(10, 20):
        progress.add({0: Offset(moment)}, EpochSeconds(moment))
    assert progress.freshness(_manifest(15), {0: Offset(15)}) == Freshness(
        EpochSeconds(15), EpochSeconds(15)
    )


def test_a_silent_topic_makes_the_table_fresher_all_the_same() -> None:
    progress = TopicProgress()
    for moment in range(10, 20):
        progress.add({0: Offset(5)}, EpochSeconds(moment))
    assert progress.freshness(_manifest(5), {0: Offset(5)}) == Freshness(
        EpochSeconds(19), EpochSeconds(19)
    )


def test_every_partition_counts_also_one_that_the_table_has_not_met() -> None:
    progress = TopicProgress()
    progress.add({0: Offset(5), 1: Offset(0)}, EpochSeconds(10))
    progress.add({0: Offset(5), 1: Offset(1)}, EpochSeconds(11))
    assert progress.complete_up_to({0: Offset(5)}) == EpochSeconds(10)


def test_the_read_optimised_view_is_complete_to_where_the_oldest_delta_begins() -> None:
    progress = TopicProgress()
    for moment in range(10, 20):
        progress.add({0: Offset(moment)}, EpochSeconds(moment))
    assert progress.freshness(_manifest(19, 17, 12), {0: Offset(19)}) == Freshness(
        EpochSeconds(19), EpochSeconds(12)
    )


def test_deltas_from_before_the_first_sighting_are_judged_by_their_commit() -> None:
    progress = TopicProgress()
    progress.add({0: Offset(40)}, EpochSeconds(60))
    assert progress.freshness(_manifest(40, 30, 35), {0: Offset(40)}) == Freshness(
        EpochSeconds(60), EpochSeconds(30)
    )


@given(
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=400),
    stands=st.integers(0, 600),
)
def test_of_many_sightings_enough_are_kept_and_none_flatters(steps: list[int], stands: int) -> None:
    progress, ends, truth = TopicProgress(), 0, None
    for moment, step in enumerate(steps):
        ends += step
        progress.add({0: Offset(ends)}, EpochSeconds(moment))
        truth = moment if ends <= stands else truth
    known = progress.complete_up_to({0: Offset(stands)})
    if truth == len(steps) - 1:
        assert known == EpochSeconds(truth)
    elif known is not None:
        assert truth is not None
        assert known <= truth
