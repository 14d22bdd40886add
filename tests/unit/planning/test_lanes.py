"""Lanes: a topic far behind, or many in their first load, must not delay the others."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.planning.sources.topic_lanes import BATCHES_BEHIND, TopicBacklog, catching_up

BATCH = 100
FAR = BATCH * BATCHES_BEHIND + 1
# More than any topic needs; a topic that waits longer starves.
BATCHES_MAX = 10_000


def backlogs(**records: int) -> dict[str, TopicBacklog]:
    return {topic: TopicBacklog(count) for topic, count in records.items()}


def test_a_topic_far_behind_leaves_the_others() -> None:
    assert catching_up(backlogs(late=FAR, fresh=3), BATCH) == {"late"}


def test_a_topic_some_batches_behind_stays_with_the_others() -> None:
    assert catching_up(backlogs(slow=FAR - 1, fresh=3), BATCH) == frozenset()


def test_a_topic_comes_back_only_when_it_has_caught_up() -> None:
    assert catching_up(backlogs(late=BATCH + 1, fresh=0), BATCH, {"late"}) == {"late"}
    assert catching_up(backlogs(late=BATCH, fresh=0), BATCH, {"late"}) == frozenset()


def test_topics_that_are_all_far_behind_share_one_lane() -> None:
    assert catching_up(backlogs(a=FAR, b=FAR), BATCH) == frozenset()
    assert catching_up({}, BATCH) == frozenset()
    assert catching_up(backlogs(a=0), BATCH) == frozenset()


def test_first_loads_stay_as_far_as_one_batch_reads_them_with_all_others() -> None:
    loading = {name: TopicBacklog(30, is_first_load=True) for name in ("a", "b", "c", "d")}
    assert catching_up({**loading, "hot": TopicBacklog(40)}, BATCH) == {"c", "d"}
    assert catching_up(loading, BATCH) == frozenset(), "they hold up nobody"


def test_a_first_load_that_is_with_the_others_leaves_them_only_if_it_grows() -> None:
    loading = {name: TopicBacklog(30, is_first_load=True) for name in ("a", "b", "c", "d")}
    hot = {"hot": TopicBacklog(40)}
    assert catching_up({**loading, **hot}, BATCH, {"c", "d"}) == {"c", "d"}
    assert catching_up({**loading, "hot": TopicBacklog(0)}, BATCH, {"d"}) == {"d"}
    half_read = {**loading, "d": TopicBacklog(15), "hot": TopicBacklog(4)}
    assert catching_up(half_read, BATCH, {"d"}) == frozenset()
    assert catching_up({**loading, "hot": TopicBacklog(499)}, BATCH, {"d"}) == {"a", "b", "c", "d"}


def test_topics_of_a_lower_priority_give_way() -> None:
    known = {
        "first": TopicBacklog(FAR, 5),
        "later": TopicBacklog(90),
        "least": TopicBacklog(20, -1),
    }
    assert catching_up(known, BATCH) == {"first", "least"}, "which is far behind by itself"
    known["first"] = TopicBacklog(50, 5)
    assert catching_up(known, BATCH) == {"later"}
    all_far = {
        "first": TopicBacklog(FAR, 5),
        "later": TopicBacklog(FAR),
        "loading": TopicBacklog(FAR, 0, True),
    }
    assert catching_up(all_far, BATCH) == {"later", "loading"}


TOPICS = st.dictionaries(
    st.sampled_from([f"t{number}" for number in range(12)]),
    st.builds(TopicBacklog, st.integers(0, 3 * FAR), st.integers(0, 2), st.booleans()),
    min_size=1,
)


def batch(waiting: Mapping[str, int]) -> dict[str, int]:
    """What is left of a lane's records after a batch, by the shares that Spark gives."""
    total = sum(waiting.values())
    if total <= BATCH:
        return dict.fromkeys(waiting, 0)
    shares = {topic: BATCH * count / total for topic, count in waiting.items()}
    return {
        topic: count - min(count, max(1, int(shares[topic])) if count else 0)
        for topic, count in waiting.items()
    }


@given(TOPICS)
def test_no_topic_waits_for_those_that_give_way_to_it_and_none_starves(
    topics: dict[str, TopicBacklog],
) -> None:
    behind = catching_up(topics, BATCH)
    main = {topic: one.records for topic, one in topics.items() if topic not in behind}
    late = {topic: topics[topic].records for topic in behind}
    first = min(one.rank for one in topics.values())
    come_first = {t for t, one in topics.items() if one.rank == first and t in main}
    others = sum(one.records for t, one in topics.items() if t in main and t not in come_first)
    if sum(main[topic] for topic in come_first) <= BATCH:
        assert sum(main.values()) <= BATCH, "one batch reads all"
    else:
        assert not others, "those that give way take nothing from the ones that come first"
    for lane in (main, late):
        before = dict(lane)
        for _ in range(BATCHES_MAX):
            if not any(before.values()):
                break
            after = batch(before)
            assert all(after[topic] < count for topic, count in before.items() if count)
            before = after
