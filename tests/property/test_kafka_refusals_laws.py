"""Kafka refuses the records of some topics, or tables kill each job that has them: only these
tables rest or are parked, whenever it happens, the others get all that is sent, and once it has
passed every table does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.apps.service.tables import ServiceTable
from lakesplice.model.driver_status import TopicState
from lakesplice.model.moments import EpochMs
from lakesplice.model.parking import ParkCode
from lakesplice.table.driver.requests import CommandRequest, leave
from tests.support.drawing import examples
from tests.support.simulated import folder
from tests.support.simulated_kafka import Step
from tests.support.simulated_loop import SimulatedService

SOURCES = range(3)
# After each pause of a table that rests a query begins with it and another one without it, also of
# the kind of tables beside it.
QUERIES_PER_HARMED_MAX = 40


def right_missing(service: SimulatedService, topic: str) -> None:
    """The user loses the right to read: the broker says so, and so does the client in a job."""
    service.broker.unreadable.add(topic)
    service.job.refusals[topic] = f"Not authorized to access topics: [{topic}]"


def unanswered(service: SimulatedService, topic: str) -> None:
    """The client waits in vain for a partition of which the broker reports nothing wrong."""
    service.job.refusals[topic] = (
        f"Timeout of 8000ms expired before the position for partition {topic}-1 could be determined"
    )


def damaged(service: SimulatedService, topic: str) -> None:
    """A record in the broker's log is damaged; an outer error names the topic."""
    service.job.refusals[topic] = (
        f"Received exception when fetching the next record from {topic}-0; record is corrupt"
    )


def leaderless(service: SimulatedService, topic: str) -> None:
    """The only broker with a partition is gone: then no query over the topic can plan a batch."""
    service.broker.leaderless.add(topic)


def deadly(service: SimulatedService, topic: str) -> None:
    """Each job with records of the topic dies."""
    service.job.deadly.add(topic)


REFUSALS = (right_missing, unanswered, damaged, leaderless)
Harm = Callable[[SimulatedService, str], None]
# When it happens: between two ticks, in a job, or just after the broker has listed or described.
MOMENTS = ("at once", "in a job", "once listed", "once described")


def happen(service: SimulatedService, moment: str, step: Step) -> None:
    """Let something happen at the next such moment, beside what is to happen then already."""
    if moment == "at once":
        step()
        return
    holder, name = {
        "in a job": (service.job, "meanwhile"),
        "once listed": (service.broker, "listed"),
        "once described": (service.broker, "answered"),
    }[moment]
    before = getattr(holder, name)

    def act() -> None:
        setattr(holder, name, lambda: None)
        before()
        step()

    setattr(holder, name, act)


def pass_by(service: SimulatedService) -> None:
    """Nothing is refused any more, and parked tables are unparked."""
    for kept in (service.broker.unreadable, service.broker.leaderless, service.job.deadly):
        kept.clear()
    service.job.refusals.clear()
    arguments: dict[str, Any] = {"offsets": [], "stated": None}
    for at in SOURCES:
        for table in tables_of(service, at):
            name = table.name.path
            request = CommandRequest(
                name.replace("/", "-"), "unpark", name, "me", EpochMs(1 << 62), arguments
            )
            if table.parked:
                leave(service.lake, request)


def tables_of(service: SimulatedService, at: int) -> list[ServiceTable]:
    """The table of a source, and the history table beside it if there is one."""
    history = service.history_of(at)
    return [service.table(at)] if history is None else [service.table(at), history]


def require_alone(service: SimulatedService, harmed: Mapping[int, Harm]) -> None:
    """Tables that aren't harmed have all there is. Of the others one is parked only if it kills
    jobs, and one that lacks records and isn't parked rests, with a reason.
    """
    states = {one.table: one.standing for one in service.reporter.status(running=True).topics}
    for at in SOURCES:
        ends = service.sources[at].topic.ends
        for table in tables_of(service, at):
            standing = states[str(table.name)]
            if at not in harmed:
                assert table.parked is None
                assert table.next_offsets(ends) == ends
            elif table.parked is not None:
                assert harmed[at] is deadly
                assert table.parked.code is ParkCode.JOB_DIED
            elif table.next_offsets(ends) != ends:
                assert standing.state is TopicState.RESTING
                assert standing.reason


@pytest.mark.slow
@settings(max_examples=examples(16), deadline=None)
@given(
    harmed=st.dictionaries(
        st.sampled_from(SOURCES),
        st.tuples(st.sampled_from((*REFUSALS, deadly)), st.integers(0, 8)),
        min_size=1,
    ),
    moment=st.sampled_from(MOMENTS),
    behind=st.booleans(),
)
def test_only_harmed_tables_wait_and_all_become_complete_once_it_has_passed(
    harmed: dict[int, tuple[Harm, int]], moment: str, behind: bool
) -> None:
    """`behind`: the first topic is so far behind that it has a query of its own.

    A test of the runner alone can't show what the queries after a refusal do to other tables.
    """
    with folder() as made:
        service = SimulatedService(made, tables=[{"match": "two.*", "also": ["history"]}])
        for at in SOURCES:
            service.put(at, *range(12 if at == 0 and behind else 3))
        steps: list[list[Step]] = [[] for _ in range(9)]
        for at, (harm, when) in harmed.items():
            harms = partial(harm, service, service.sources[at].topic.name)
            steps[when].append(partial(happen, service, moment, harms))

        def tick(number: int) -> None:
            for step in steps[number]:
                step()
            service.put(number % 3, number)

        def change_all() -> None:
            for at in SOURCES:
                service.put(at, 1, 2)

        service.run([*(partial(tick, number) for number in range(9)), change_all])
        require_alone(service, {at: harm for at, (harm, _) in harmed.items()})
        assert len(service.queries) <= 5 + QUERIES_PER_HARMED_MAX * len(harmed)
        pass_by(service)
        service.run()
        service.require_all_arrived()
