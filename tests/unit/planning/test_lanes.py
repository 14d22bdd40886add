"""Lanes: a topic far behind must not hold up the others."""

from __future__ import annotations

from lakesplice.planning.sources.topic_lanes import BATCHES_BEHIND, catching_up

BATCH = 100
FAR = BATCH * BATCHES_BEHIND + 1


def test_a_topic_far_behind_leaves_the_others() -> None:
    assert catching_up({"late": FAR, "fresh": 3}, BATCH) == {"late"}


def test_a_topic_some_batches_behind_stays_with_the_others() -> None:
    assert catching_up({"slow": FAR - 1, "fresh": 3}, BATCH) == frozenset()


def test_a_topic_comes_back_only_when_it_has_caught_up() -> None:
    assert catching_up({"late": BATCH + 1, "fresh": 0}, BATCH, {"late"}) == {"late"}
    assert catching_up({"late": BATCH, "fresh": 0}, BATCH, {"late"}) == frozenset()


def test_topics_that_are_all_far_behind_share_one_lane() -> None:
    assert catching_up({"a": FAR, "b": FAR}, BATCH) == frozenset()
    assert catching_up({}, BATCH) == frozenset()
