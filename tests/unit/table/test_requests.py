"""Requests: a live driver answers each once; without a driver none is left."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from lakesplice.errors import RetryableError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation, claim_generation
from lakesplice.table.driver.requests import (
    REQUEST_PARAMETER,
    CommandAnswer,
    CommandRequest,
    answer,
    ask,
    forget_answers,
    pending,
    was_executed,
)
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.intents import Note
from lakesplice.table.protocol.layout import ANSWERS, REQUESTS, request_path
from lakesplice.testing.doubles import FixedClock
from tests.support import simulated

LEASE = 10.0


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def driver_of(lake: LocalStore) -> Generation:
    clock = FixedClock()
    generation = claim_generation(lake, clock, clock.advance, lease_seconds=LEASE)
    assert generation is not None
    return generation


def request(clock: FixedClock, seconds: float = 60) -> CommandRequest:
    expires_ms = clock.now_ms() + round(seconds * 1000)
    return CommandRequest(
        "00ff", "dlq replay", "shop/orders", "ann@host", EpochMs(expires_ms), {"places": [[0, 1]]}
    )


def left(lake: LocalStore) -> list[str]:
    return [*lake.list(f"{REQUESTS}/"), *lake.list(f"{ANSWERS}/")]


def test_without_a_driver_nothing_is_asked(lake: LocalStore) -> None:
    clock = FixedClock()
    assert ask(lake, request(clock), clock, clock.advance) is None
    driver_of(lake).release()
    assert ask(lake, request(clock), clock, clock.advance) is None
    assert left(lake) == []


def test_the_driver_sees_what_was_asked_and_its_answer_comes_back(lake: LocalStore) -> None:
    clock, driver = FixedClock(), driver_of(lake)
    asked: list[CommandRequest] = []

    def work(seconds: float) -> None:
        clock.advance(seconds)
        driver.beat()
        for one in pending(lake):
            asked.append(one)
            answer(lake, one, CommandAnswer(True, "done"))

    given = ask(lake, request(clock), clock, work)
    assert given is not None
    assert (given.done, given.text) == (True, "done")
    assert asked == [request(clock, seconds=60 - clock.monotonic())]
    assert left(lake) == []


def test_a_request_to_a_driver_that_died_is_withdrawn_after_a_lease(lake: LocalStore) -> None:
    driver_of(lake).beat()
    clock = FixedClock()
    assert ask(lake, request(clock), clock, clock.advance) is None
    assert clock.monotonic() >= LEASE
    assert left(lake) == []


def test_a_driver_of_a_long_lease_is_waited_for_as_long_as_it_may_be_silent(
    lake: LocalStore,
) -> None:
    clock = FixedClock()
    driver = claim_generation(lake, clock, clock.advance, lease_seconds=6 * LEASE)
    assert driver is not None

    def slowly(seconds: float) -> None:
        clock.advance(seconds)
        if clock.monotonic() >= 5 * LEASE:
            driver.beat()
            for one in pending(lake):
                answer(lake, one, CommandAnswer(True, "done"))

    given = ask(lake, request(clock, 10 * LEASE), clock, slowly)
    assert given is not None
    assert given.text == "done"


def test_a_request_to_a_driver_that_ends_is_executed_by_the_next_one(
    lake: LocalStore,
) -> None:
    clock, ending = FixedClock(), driver_of(lake)
    asked = request(clock)

    def end_and_drive(seconds: float) -> None:
        clock.advance(seconds)
        ending.release()
        if clock.monotonic() >= LEASE / 2:
            driver_of(lake).beat()
            answer(lake, asked, CommandAnswer(True, "done"))

    given = ask(lake, asked, clock, end_and_drive)
    assert given is not None
    assert given.text == "done"


def test_a_request_that_expires_while_the_driver_is_busy_is_withdrawn(
    lake: LocalStore,
) -> None:
    clock, driver = FixedClock(), driver_of(lake)

    def busy(seconds: float) -> None:
        clock.advance(seconds)
        driver.beat()

    with pytest.raises(RetryableError, match="didn't answer in time"):
        ask(lake, request(clock, 30), clock, busy)
    assert pending(lake) == []


def test_an_answer_that_was_not_read_is_deleted_a_day_later(lake: LocalStore) -> None:
    clock = FixedClock()
    answer(lake, request(clock), CommandAnswer(True, "done"))
    forget_answers(lake, clock.now_ms())
    assert len(left(lake)) == 1
    clock.advance(90_000)
    forget_answers(lake, clock.now_ms())
    assert left(lake) == []


def test_a_request_of_a_newer_command_is_refused_with_the_reason(lake: LocalStore) -> None:
    clock = FixedClock()
    driver_of(lake)
    asked = request(clock)
    newer = json.dumps({**asdict(asked), "in_two_steps": True}).encode()

    def replace_and_look(_: float) -> None:
        lake.delete(request_path(asked.id))
        lake.put_new(request_path(asked.id), newer)
        assert pending(lake) == []

    given = ask(lake, asked, clock, replace_and_look)
    assert given is not None
    assert not given.done
    assert "older than this command" in given.text


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"id": "x"}', b"7"])
def test_a_request_that_is_none_is_removed(lake: LocalStore, text: bytes) -> None:
    lake.put_new(f"{REQUESTS}/x.json", text)
    assert pending(lake) == []
    assert left(lake) == []


def test_a_request_that_was_executed_in_the_first_instant_was_executed(tmp_path: Path) -> None:
    source = simulated.Source()
    driver = simulated.driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(0))
    driver.batch()
    asked, table = request(FixedClock()), driver.table
    table.commit(Note(table.generation, "dlq replay"), {REQUEST_PARAMETER: asked.id})
    moment = next(history(table.store)).info.timestamp_ms
    assert moment is not None
    assert was_executed(table.store, asked, EpochMs(moment))
    assert not was_executed(table.store, asked, EpochMs(moment + 1))
