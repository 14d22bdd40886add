"""Generations: one driver at a time; another one takes over after a release, or if the heartbeat
stops.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lakesplice.errors import FencedError
from lakesplice.model.driver_status import LEASE_SECONDS
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemClock
from lakesplice.table.driver.generation import (
    Generation,
    claim_generation,
    newest_generation,
    take_generation,
)
from lakesplice.table.protocol.layout import generation_path
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Fault, FaultyStore, How

LEASE = 10.0


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def _claim(lake: Store, clock: FixedClock | None = None) -> Generation:
    clock = clock or FixedClock()
    generation = claim_generation(lake, clock, clock.advance, lease_seconds=LEASE)
    assert generation is not None
    return generation


def test_the_first_driver_of_a_lake_takes_generation_1_at_once(lake: LocalStore) -> None:
    clock = FixedClock()
    assert _claim(lake, clock).number == 1
    assert clock.monotonic() == 0
    assert newest_generation(lake) == 1


def test_a_standby_waits_a_lease_and_then_deposes_the_silent_driver(lake: LocalStore) -> None:
    first = _claim(lake)
    first.beat()
    clock = FixedClock()
    second = _claim(lake, clock)
    assert second.number == 2
    assert clock.monotonic() >= LEASE
    with pytest.raises(FencedError):
        first.check()
    with pytest.raises(FencedError):
        first.beat()
    second.check()


def test_a_standby_does_not_depose_a_driver_with_heartbeats(lake: LocalStore) -> None:
    first = _claim(lake)
    clock = FixedClock()
    left = [100]

    def beat_meanwhile(seconds: float) -> bool:
        first.beat()
        clock.advance(seconds)
        left[0] -= 1
        return left[0] > 0

    assert claim_generation(lake, clock, beat_meanwhile, lease_seconds=LEASE) is None
    assert clock.monotonic() > 10 * LEASE
    first.check()


def test_a_standby_waits_for_the_drivers_lease_and_not_for_its_own(lake: LocalStore) -> None:
    patient = claim_generation(lake, FixedClock(), lambda _: True, lease_seconds=6 * LEASE)
    assert patient is not None
    clock = FixedClock()
    _claim(lake, clock)
    assert 6 * LEASE <= clock.monotonic() < 8 * LEASE
    clock = FixedClock()
    assert claim_generation(lake, clock, clock.advance, lease_seconds=6 * LEASE) is not None
    assert LEASE <= clock.monotonic() < 2 * LEASE


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b'{"lease_seconds": -1}'])
def test_a_generation_that_names_no_lease_has_the_usual_one(
    lake: LocalStore, record: bytes
) -> None:
    assert lake.put_new(generation_path(1), record)
    clock = FixedClock()
    assert _claim(lake, clock).number == 2
    assert LEASE_SECONDS <= clock.monotonic() < 2 * LEASE_SECONDS


def test_a_wall_clock_that_jumps_shortens_no_lease(lake: LocalStore) -> None:
    _claim(lake)
    clock = FixedClock()

    def jump(seconds: float) -> bool:
        clock.jump_to(clock.now_ms() + 10**12)
        return clock.advance(seconds)

    assert claim_generation(lake, clock, jump, lease_seconds=LEASE) is not None
    assert clock.monotonic() >= LEASE


def test_a_released_generation_is_taken_over_at_once(lake: LocalStore) -> None:
    first = _claim(lake)
    first.release()
    first.release()
    clock = FixedClock()
    assert _claim(lake, clock).number == 2
    assert clock.monotonic() == 0


def test_one_of_two_standbys_takes_over_and_the_other_waits_for_it(
    lake: LocalStore,
) -> None:
    _claim(lake)
    clock = FixedClock()
    rivals: list[Generation] = []

    def overtake(seconds: float) -> bool:
        clock.advance(seconds)
        if clock.monotonic() >= LEASE and not rivals:
            rivals.append(_claim(lake))
        return True

    mine = claim_generation(lake, clock, overtake, lease_seconds=LEASE)
    assert mine is not None
    assert [rivals[0].number, mine.number] == [2, 3]
    assert clock.monotonic() >= 2 * LEASE


def test_only_the_last_heartbeat_is_kept_and_those_before_are_forgotten(lake: LocalStore) -> None:
    first = _claim(lake)
    for _ in range(5):
        first.beat()
    assert len(list(lake.list("_lakesplice/heartbeats/"))) == 1
    _claim(lake)
    assert list(lake.list("_lakesplice/heartbeats/")) == []


def test_a_heartbeat_whose_answer_was_lost_does_no_harm(lake: LocalStore) -> None:
    store = FaultyStore(lake, [Fault.on("put_new", "heartbeats", How.ANSWER_LOST)])
    first = _claim(store)
    with pytest.raises(Exception, match="made to fail"):
        first.beat()
    first.beat()
    first.beat()


def test_heartbeats_continue_until_release_and_survive_a_failing_store(lake: LocalStore) -> None:
    beaten = threading.Event()

    def note(call: object) -> None:
        if "heartbeats" in str(call) and str(store.calls[-1].path).endswith("3"):
            beaten.set()

    faults = [Fault.on("put_new", "heartbeats", How.LOST)]
    seen: list[Exception] = []
    store = FaultyStore(lake, faults, note)
    generation = take_generation(
        store, SystemClock(), lambda _s: False, unexpected=seen.append, lease_seconds=0.04
    )
    assert generation is not None
    assert beaten.wait(10)
    generation.release()
    assert not seen
    beats = sum("heartbeats" in call.path for call in store.calls)
    assert beats == sum("heartbeats" in call.path for call in store.calls)
