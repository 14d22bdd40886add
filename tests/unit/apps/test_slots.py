"""Slots of compaction: no more are used than exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from lakesplice.apps.service.threads import Slots


def test_no_more_slots_are_taken_than_there_are() -> None:
    slots, taken, most_taken = Slots(lambda: 3), [0], [0]

    def work(count: int) -> None:
        with slots.taken(count):
            taken[0] += count
            most_taken[0] = max(most_taken[0], taken[0])
            taken[0] -= count

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [1, 2, 3] * 50))
    assert 0 < most_taken[0] <= 3


def test_a_request_for_more_slots_than_a_cluster_has_left_waits_for_all_of_them() -> None:
    most = [4]
    slots, holds, may_end, got = Slots(lambda: most[0]), Event(), Event(), Event()

    def hold() -> None:
        with slots.taken(1):
            holds.set()
            assert may_end.wait(10)

    def ask() -> None:
        with slots.taken(3):
            got.set()

    with ThreadPoolExecutor(2) as pool:
        holding = pool.submit(hold)
        assert holds.wait(10)
        most[0] = 1
        asking = pool.submit(ask)
        assert not got.is_set()
        may_end.set()
        holding.result(10)
        asking.result(10)
    assert got.is_set()
