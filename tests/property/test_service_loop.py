"""The service's own loop, batches and compactor: whatever happens between two batches, every table
gets all changes that were sent, and nothing hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from lakesplice.errors import FencedError
from lakesplice.model.driver_status import TopicState
from lakesplice.model.moments import EpochMs
from lakesplice.planning.sources.topic_lanes import TopicBacklog
from lakesplice.table.driver.requests import CommandRequest, leave
from lakesplice.table.protocol.history import history
from tests.support.drawing import examples
from tests.support.simulated import folder
from tests.support.simulated_kafka import Step
from tests.support.simulated_loop import OFFSETS_PER_BATCH_MAX, SimulatedService
from tests.support.traps import CRASHES, FAULTS

SOURCES = st.integers(0, 2)
BACKOFF = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
BESIDE = ("write_beside", "write_beside_during_a_job", "write_beside_once_broker_answered")
EVENTS = st.one_of(
    st.tuples(st.just("put"), SOURCES, st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.sampled_from(BESIDE), SOURCES),
    st.tuples(st.sampled_from(("break_query", "break_stop", "broker_goes", "broker_comes"))),
    st.tuples(st.just("trap"), st.integers(0, 150), FAULTS | CRASHES),
)


def step(service: SimulatedService, event: tuple[Any, ...]) -> Step:
    name, *arguments = event
    act: Callable[..., object] = service.trap.arm if name == "trap" else getattr(service, str(name))
    return lambda: act(*arguments)


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(events=st.lists(EVENTS, max_size=20))
def test_every_table_becomes_complete_after_any_events_between_batches(
    events: list[tuple[object, ...]],
) -> None:
    with folder() as made:
        service = SimulatedService(made, tables=[{"match": "two.*", "also": ["history"]}])
        for at in range(len(service.sources)):
            service.put(at, *range(12 if at == 0 else 3))
        service.run([*(step(service, event) for event in events), service.broker_comes])
        service.require_all_arrived()


@pytest.fixture
def service(tmp_path: Path) -> SimulatedService:
    made = SimulatedService(tmp_path)
    for at in range(3):
        made.put(at, 1, 2, 3)
    return made


def nothing() -> None:
    """A moment in which nothing happens."""


@pytest.mark.slow
def test_a_table_refused_while_the_broker_is_asked_is_read_on_by_the_next_query(
    service: SimulatedService,
) -> None:
    def refuse() -> None:
        service.put(0, 4)
        service.write_beside(0)
        service.put(0, 5)
        service.run_a_batch()

    def refuse_while_asked() -> None:
        service.broker.listed = refuse

    service.run([nothing] * 8 + [refuse_while_asked])
    service.require_all_arrived()


@pytest.mark.slow
def test_a_query_that_failed_and_does_not_stop_is_followed_by_another(
    service: SimulatedService,
) -> None:
    service.run([nothing, nothing, lambda: service.put(1, 4), service.break_stop, nothing])
    assert service.lives == 1
    service.require_all_arrived()


@pytest.mark.slow
def test_a_topic_that_must_be_read_to_its_end_is_read_so_after_any_failure(
    service: SimulatedService,
) -> None:
    service.run([service.break_query, lambda: service.write_beside_during_a_job(2)], once=True)
    assert not service.stopping.is_set()
    service.require_all_arrived()


def far_behind(service: SimulatedService) -> None:
    """The first topic is so far behind that it is read by a query of its own."""
    service.put(0, *range(20))


def another_writer(service: SimulatedService) -> Step:
    """What makes the service restart its queries: a table is further than its query."""

    def write() -> None:
        service.put(1, 4)
        service.write_beside(1)
        service.put(1, 5)

    return write


def pauses(service: SimulatedService) -> list[float]:
    """How long the loop paused after failures."""
    return [seconds for seconds in service.stopping.seconds if seconds in BACKOFF]


@pytest.mark.slow
def test_topics_far_behind_are_read_by_the_catch_up_query(service: SimulatedService) -> None:
    far_behind(service)
    with capture_logs() as logged:
        service.run()
    started = [entry for entry in logged if entry["event"] == "query-started"]
    assert [(e["lane"], e["topics"]) for e in started[:2]] == [("main", 2), ("catch-up", 1)]
    assert service.queries[1].topics == {service.sources[0].topic.name}
    assert (started[-1]["lane"], started[-1]["topics"]) == ("main", 3)
    service.require_all_arrived()


@pytest.mark.slow
def test_log_lines_lead_from_a_batch_to_its_commits_and_to_the_history_of_each_table(
    service: SimulatedService,
) -> None:
    far_behind(service)
    with capture_logs(processors=[merge_contextvars]) as logged:
        service.run([nothing, another_writer(service)])
    batches = {(e["lane"], e["batch"]) for e in logged if e["event"] == "batch"}
    commits = [entry for entry in logged if entry["event"] == "committed"]
    assert {lane for lane, _ in batches} == {"main", "catch-up"}
    ingests = [entry for entry in commits if entry["operation"] == "ingest"]
    assert {(entry["lane"], entry["batch"]) for entry in ingests} <= batches
    assert {entry["lane"] for entry in ingests} == {"main", "catch-up"}
    for table in service.tables:
        own = {e["version"]: e for e in commits if e["table"] == str(table.name)}
        known = {entry.version: entry for entry in history(table.store)}
        assert own.keys() <= known.keys()
        assert len(own) >= len(known) - 1, "another writer's commit is not the driver's"
        for version, entry in own.items():
            counts = {what: count for what, count in known[version].info.metrics.items() if count}
            assert entry["counts"].items() <= counts.items()


@pytest.mark.slow
def test_first_loads_of_many_tables_do_not_hold_up_a_hot_one(tmp_path: Path) -> None:
    others = range(1, 6)
    service = SimulatedService(tmp_path, ["hot", *(f"other{at}" for at in others)])
    service.limits_whole_batches = True
    service.put(0, *range(12))
    service.run()
    waited: list[int] = []

    def change() -> None:
        stands = service.table(0).next_offsets((0, 1))
        waited.append(sum(service.sources[0].topic.ends.values()) - sum(stands.values()))
        service.put(0, 0, 2, 4)

    for at in others:
        service.put(at, *range(18))
    service.run([change] * 8)
    assert max(waited) <= 2 * OFFSETS_PER_BATCH_MAX
    service.require_all_arrived()


@pytest.mark.slow
def test_the_settings_say_which_tables_come_first(tmp_path: Path) -> None:
    service = SimulatedService(tmp_path, tables=[{"match": "two.*", "priority": 7}])
    for at in range(3):
        service.put(at, 1, 2)
    ready = service.readings[0].sources.look()
    known = {
        service.sources[at].topic.name: TopicBacklog(2, 7 * (at == 1), True) for at in range(3)
    }
    assert ready.backlogs == known
    service.run()
    service.put(0, 1)
    backlogs = service.readings[0].sources.peek().backlogs
    assert backlogs[service.sources[0].topic.name] == TopicBacklog(1)


@pytest.mark.slow
def test_a_service_that_ends_stops_all_queries_also_after_one_that_does_not_stop(
    service: SimulatedService,
) -> None:
    far_behind(service)

    def end() -> None:
        service.stop_fails = True
        service.stopping.set()

    with capture_logs() as logged:
        service.run([end])
    assert [query.is_stopped for query in service.queries] == [True, True]
    assert [e["lane"] for e in logged if e["event"] == "query-not-stopped"] == ["main"]


@pytest.mark.slow
def test_a_restart_ends_each_query_between_two_batches(service: SimulatedService) -> None:
    far_behind(service)
    service.run([nothing, another_writer(service)])
    assert len(service.queries) > 2
    assert all(query.is_stopped and query.is_drained for query in service.queries)
    service.require_all_arrived()


@pytest.mark.slow
def test_pauses_after_failures_grow_up_to_a_bound(service: SimulatedService) -> None:
    service.run([service.broker_goes, *[nothing] * 9, service.broker_comes])
    assert pauses(service)[:7] == [*BACKOFF, BACKOFF[-1]]
    service.require_all_arrived()


@pytest.mark.slow
def test_pauses_after_failures_begin_again_once_a_query_ended_well(
    service: SimulatedService,
) -> None:
    service.run(
        [
            service.break_query,
            *[nothing] * 3,
            another_writer(service),
            *[nothing] * 3,
            service.break_query,
        ]
    )
    assert pauses(service) == [BACKOFF[0]] * 2
    service.require_all_arrived()


def test_a_driver_that_is_fenced_during_a_batch_stops(service: SimulatedService) -> None:
    with pytest.raises(FencedError):
        service.run([lambda: service.fence_during_a_job(1)])


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
def test_a_table_that_rests_is_read_on_once_its_rest_is_over(
    service: SimulatedService, once: bool
) -> None:
    service.fail_tasks_of(0)
    # By then its rests are longer than what the loop does between two looks at it.
    service.run([*[nothing] * 7, service.mend_tasks], once=once)
    assert service.stopping.is_set() != once
    service.require_all_arrived()


@pytest.mark.slow
def test_a_topic_that_must_be_read_to_its_end_is_continued_after_a_restart(
    service: SimulatedService,
) -> None:
    def write_during_a_job() -> None:
        def write() -> None:
            service.job.meanwhile = nothing
            another_writer(service)()

        service.job.meanwhile = write

    service.run([write_during_a_job], once=True)
    assert not service.stopping.is_set()
    service.require_all_arrived()


HISTORY = [{"match": "two.*", "also": ["history"]}]


def ask(service: SimulatedService, command: str, **arguments: Any) -> Step:
    """A command about the history table."""
    request = CommandRequest(
        command, command, "two/goods_history", "me", EpochMs(1 << 62), arguments
    )
    return lambda: leave(service.lake, request)


@pytest.mark.slow
def test_what_is_done_to_a_history_table_leaves_the_table_of_current_rows_alone(
    tmp_path: Path,
) -> None:
    service = SimulatedService(tmp_path, tables=HISTORY)
    for at in range(3):
        service.put(at, 1, 2, 3)
    service.run([nothing, nothing, ask(service, "park", why="I look at it", topic="")])
    service.put(1, 2, 4)
    service.run()
    table, beside = service.table(1), service.history_of(1)
    assert beside is not None
    assert beside.parked is not None
    assert table.next_offsets((0, 1)) == service.sources[1].topic.ends
    assert beside.next_offsets((0, 1)) != service.sources[1].topic.ends
    states = {
        (one.table, one.standing.state.value, one.lag_records)
        for one in service.reporter.status(running=True).topics
        if one.topic == table.topic
    }
    assert states == {("two.goods", "running", 0), ("two.goods_history", "parked", 2)}
    assert service.health.troubles().keys() == {f"{table.topic} (two.goods_history)"}
    service.run([ask(service, "unpark", offsets=[], stated=None)])
    service.require_all_arrived()
    before = table.version, beside.version
    again = {"to": "0:0", "topic": "", "anew": False, "skip": False, "dry_run": False, "why": ""}
    service.run([ask(service, "reset", **again)])
    service.require_all_arrived()
    assert (table.version, beside.version) == (before[0], before[1] + 2)
    assert [entry.info.operation for entry in history(beside.store)][1] == "REDIRECT"


@pytest.mark.slow
def test_a_history_table_can_not_have_the_name_of_a_table_of_current_rows(tmp_path: Path) -> None:
    taken = [{"match": "one.*", "also": ["history"], "history": {"to": "two.goods"}}]
    service = SimulatedService(tmp_path, tables=taken)
    service.put(0, 1)
    service.put(1, 1)
    service.run()
    assert service.readings[1].sources.tables.get(service.sources[0].topic.name) is None
    (refused,) = [
        one
        for one in service.reporter.status(running=True).topics
        if one.standing.state is TopicState.REFUSED
    ]
    assert "`history.to`" in refused.standing.reason
