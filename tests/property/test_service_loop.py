"""The service's own loop, batches and compactor: whatever happens between two batches, every table
arrives at all that was sent, and nothing hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.drawing import examples
from tests.support.simulated import folder
from tests.support.simulated_loop import SimulatedService, Step
from tests.support.traps import CRASHES, FAULTS

SOURCES = st.integers(0, 2)
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


@settings(max_examples=examples(12))
@given(events=st.lists(EVENTS, max_size=20))
def test_whatever_happens_between_batches_every_table_arrives(
    events: list[tuple[object, ...]],
) -> None:
    with folder() as made:
        service = SimulatedService(made)
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


def test_a_query_that_failed_and_does_not_stop_is_followed_by_another(
    service: SimulatedService,
) -> None:
    service.run([nothing, nothing, lambda: service.put(1, 4), service.break_stop, nothing])
    assert service.lives == 1
    service.require_all_arrived()


def test_what_has_to_be_read_once_is_read_to_the_end_whatever_fails(
    service: SimulatedService,
) -> None:
    service.run([service.break_query, lambda: service.write_beside_during_a_job(2)], once=True)
    assert not service.stopping.is_set()
    service.require_all_arrived()
