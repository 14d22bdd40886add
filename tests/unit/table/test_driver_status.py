"""The status document: a reader finds the newest document of a driver, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.driver_status import (
    DriverStatus,
    FreshnessGoal,
    MirrorStatus,
    SuspectSetting,
    TopicCondition,
    TopicState,
    TopicStatus,
)
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.status import (
    StatusPublisher,
    decode_status,
    encode_status,
    newest_status,
)
from lakesplice.table.protocol.layout import STATUS

MOMENTS = st.integers(0, 2**53)
MAYBE = st.none() | MOMENTS
STANDINGS = st.builds(TopicCondition, st.sampled_from(TopicState), st.text(), st.text(), MAYBE)
SETTINGS = st.lists(st.builds(SuspectSetting, st.text(), st.text(), MOMENTS), max_size=2).map(tuple)
SECONDS = st.floats(1, 2**40)
GOALS = st.none() | st.builds(FreshnessGoal, SECONDS, SECONDS)
MIRRORS = st.none() | st.builds(
    MirrorStatus, st.none() | st.integers(0, 9), MAYBE, st.text(), MAYBE
)
TOPICS = st.builds(
    TopicStatus,
    *(st.text(), st.text(), STANDINGS, MOMENTS, MAYBE, MAYBE, MAYBE, SETTINGS, GOALS, MIRRORS),
)
STATUSES = st.builds(
    DriverStatus,
    MOMENTS,
    MOMENTS,
    st.booleans(),
    st.text(),
    st.lists(TOPICS, max_size=3).map(tuple),
    st.lists(st.text(), max_size=3).map(tuple),
)


def status(generation: int, written_ms: int, *topics: TopicStatus) -> DriverStatus:
    return DriverStatus(generation, EpochMs(written_ms), True, ".*", topics)


@given(STATUSES)
def test_a_document_is_read_as_it_was_written(written: DriverStatus) -> None:
    assert decode_status(encode_status(written)) == written


@given(st.binary())
def test_bytes_that_are_none_are_no_document(data: bytes) -> None:
    assert decode_status(data) is None


def test_fields_that_a_newer_driver_added_are_ignored() -> None:
    topic = TopicStatus("a.b.c", "b.c", TopicCondition(TopicState.RUNNING), EpochMs(5))
    told = json.loads(encode_status(status(1, 2, topic)))
    told["new"] = told["topics"][0]["new"] = told["topics"][0]["standing"]["new"] = 1
    assert decode_status(json.dumps(told).encode()) == status(1, 2, topic)
    told["format"] = 2
    assert decode_status(json.dumps(told).encode()) is None


def test_fields_that_an_older_driver_left_out_are_unknown() -> None:
    topic = TopicStatus("a.b.c", "b.c", TopicCondition(TopicState.RUNNING), EpochMs(5))
    told = json.loads(encode_status(status(1, 2, topic)))
    del told["topics"][0]["suspect_settings"], told["topics"][0]["goal"]
    del told["topics"][0]["mirror"], told["topics"][0]["missing_changes"]
    assert decode_status(json.dumps(told).encode()) == status(1, 2, topic)


def test_the_newest_document_of_the_newest_driver_counts_and_is_the_only_one(
    tmp_path: Path,
) -> None:
    lake = LocalStore(tmp_path)
    assert newest_status(lake) is None
    first = StatusPublisher(lake, 9)
    for at in range(11):
        first.publish(status(9, at))
    assert newest_status(lake) == status(9, 10)
    second = StatusPublisher(lake, 10)
    second.publish(status(10, 1))
    assert newest_status(lake) == status(10, 1)
    assert len(list(lake.list(f"{STATUS}/"))) == 1
    first.publish(status(9, 99))
    assert newest_status(lake) == status(10, 1), "a driver that was deposed says nothing more"


def test_a_topic_that_feeds_a_history_table_too_counts_once_in_the_worse_state() -> None:
    def fed(topic: str, table: str, state: TopicState) -> TopicStatus:
        return TopicStatus(topic, table, TopicCondition(state), EpochMs(5))

    shown = status(
        1,
        2,
        fed("a", "shop.a", TopicState.RUNNING),
        fed("a", "shop.a_history", TopicState.PARKED),
        fed("b", "shop.b", TopicState.RUNNING),
    )
    assert shown.topics_by_state() == {TopicState.PARKED: 1, TopicState.RUNNING: 1}
