"""A consumer group that gets the tables' offsets, and that other clients reset; rights and
credentials.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakesplice.errors import CredentialsRefused
from lakesplice.model.driver_status import TopicState
from lakesplice.model.moments import EpochMs
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.spark.kafka.consumer_group import GroupOffset
from lakesplice.table.driver.requests import CommandRequest, leave
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.history import history
from tests.support.simulated import Rows, rows_of
from tests.support.simulated_kafka import SimulatedGroup
from tests.support.simulated_loop import SimulatedService


@pytest.fixture
def group() -> SimulatedGroup:
    return SimulatedGroup()


@pytest.fixture
def service(tmp_path: Path, group: SimulatedGroup) -> SimulatedService:
    return SimulatedService(tmp_path, databases=("one", "two"), group=group)


def followed(service: SimulatedService) -> dict[tuple[str, int], GroupOffset]:
    """What the group has to have: the next offsets of all tables, as ours."""
    return {
        (source.topic.name, at): GroupOffset(offset, is_ours=True)
        for number, source in enumerate(service.sources)
        if service.table(number).snapshot is not None
        for at, offset in service.table(number).next_offsets(source.topic.ends).items()
    }


def asked_by(service: SimulatedService, at: int) -> list[str]:
    """Who asked for the commits of a table, newest first."""
    entries = history(service.table(at).store)
    return [one.info.parameters["by"] for one in entries if "by" in one.info.parameters]


def rows(service: SimulatedService, at: int) -> Rows:
    return rows_of(service.table(at).store)


@pytest.mark.slow
def test_the_group_follows_every_commit(service: SimulatedService, group: SimulatedGroup) -> None:
    seen: list[bool] = []
    service.run(
        [
            lambda: service.put(0, 1, 2, 3),
            lambda: None,
            lambda: seen.append(group.entries == followed(service)),
            lambda: service.put(1, 4),
        ]
    )
    assert seen == [True]
    assert group.entries == followed(service)
    assert {offset.offset for offset in group.entries.values()} > {0}


@pytest.mark.slow
def test_an_offset_that_another_client_sets_resets_the_table_with_a_trace(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    service.run([lambda: service.put(0, *range(2, 12, 2))])
    topic, before = service.sources[0].topic.name, rows(service, 0)
    group.set(topic, 0, 2)
    service.run()
    assert asked_by(service, 0) == ["consumer group the-group"]
    assert asked_by(service, 1) == []
    assert group.entries == followed(service), "it is read to the end again"
    assert rows(service, 0) == before
    service.require_all_arrived()


@pytest.mark.slow
def test_a_group_has_the_lower_offsets_of_both_tables_of_a_topic_and_resets_both(
    tmp_path: Path, group: SimulatedGroup
) -> None:
    beside = [{"match": "one.*", "also": ["history"]}]
    service = SimulatedService(tmp_path, databases=("one",), tables=beside, group=group)
    service.run([lambda: service.put(0, 2, 4)])
    history_table = service.history_of(0)
    assert history_table is not None
    history_table.park(ParkReason(ParkCode.BY_HAND, "I look at it", history_table.topic))
    service.run([lambda: service.put(0, 2)])
    topic = service.sources[0].topic.name
    assert (group.entries[topic, 0].offset, service.table(0).next_offsets((0,))[0]) == (2, 3)
    unpark: dict[str, Any] = {"offsets": [], "stated": None}
    leave(
        service.lake,
        CommandRequest("1", "unpark", "one/goods_history", "me", EpochMs(1 << 62), unpark),
    )
    service.run()
    group.set(topic, 0, 1)
    service.run()
    for store in (service.table(0).store, history_table.store):
        by = [one.info.parameters["by"] for one in history(store) if "by" in one.info.parameters]
        assert by[0] == "consumer group the-group"
    service.require_all_arrived()
    assert group.entries == followed(service)


@pytest.mark.slow
def test_a_reset_while_no_driver_runs_is_honoured_before_anything_is_read(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    service.run([lambda: service.put(0, *range(2, 12, 2))])
    group.set(service.sources[0].topic.name, 0, 2)
    service.put(0, 14)
    service.start_anew()
    service.run()
    assert asked_by(service, 0) == ["consumer group the-group"]
    assert group.entries == followed(service)
    service.require_all_arrived()


@pytest.mark.slow
def test_records_are_skipped_if_that_is_what_the_offset_says(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    service.run([lambda: service.put(0, 2, 4)])
    service.put(0, 6, 8)
    group.set(service.sources[0].topic.name, 0, 3)
    service.start_anew()
    service.run()
    assert [row["id"] for row in rows(service, 0)] == [2, 4, 8]
    assert asked_by(service, 0) == ["consumer group the-group"]


@pytest.mark.slow
def test_offsets_that_another_consumer_left_in_the_group_reset_nothing(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    group.set(service.sources[0].topic.name, 0, 1)
    service.run([lambda: service.put(0, *range(2, 12, 2))])
    assert asked_by(service, 0) == []
    assert group.entries == followed(service)


@pytest.mark.slow
def test_an_offset_that_a_parked_table_refuses_is_set_right_again(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    service.run([lambda: service.put(0, 2, 4, 6)])
    topic = service.sources[0].topic
    topic.topic_id = "made anew"
    service.run()
    assert service.table(0).parked is not None
    group.set(topic.name, 0, 1)
    service.run()
    assert asked_by(service, 0) == []
    assert group.entries == followed(service)


@pytest.mark.slow
def test_a_group_that_is_refused_holds_up_no_table(
    service: SimulatedService, group: SimulatedGroup
) -> None:
    group.refusal = "Kafka refuses it"
    service.run([lambda: service.put(0, 1, 2)])
    assert not group.entries
    service.require_all_arrived()
    group.refusal = ""
    service.run()
    assert group.entries == followed(service)


def test_credentials_that_never_worked_end_the_service_at_once(service: SimulatedService) -> None:
    service.broker.refuses = True
    with pytest.raises(CredentialsRefused):
        service.run()
    assert service.ticks == 0


@pytest.mark.slow
def test_credentials_that_worked_before_are_tried_again(service: SimulatedService) -> None:
    def refuse() -> None:
        service.broker.refuses = True

    def accept() -> None:
        service.broker.refuses = False

    service.run([lambda: service.put(0, 1), refuse, service.break_query, lambda: None, accept])
    service.require_all_arrived()


@pytest.mark.slow
def test_a_topic_that_may_not_be_read_rests_with_the_right_that_is_missing(
    service: SimulatedService,
) -> None:
    topic = service.sources[0].topic.name
    service.broker.unreadable = {topic}
    service.put(0, 1, 2)
    service.put(1, 3, 4)
    states: list[tuple[TopicState, bool]] = []

    def look() -> None:
        status = newest_status(service.lake)
        assert status is not None
        (mine,) = [one for one in status.topics if one.topic == topic]
        found = mine.standing
        states.append((found.state, f"READ on topic {topic}" in found.reason))
        assert service.table(1).snapshot is not None, "the other continues"
        service.broker.unreadable = set()

    service.run([lambda: None] * 3 + [look])
    assert states == [(TopicState.RESTING, True)]
    service.require_all_arrived()
