"""Retries after another writer won: how many, with which pauses, and how they end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lakesplice
from lakesplice.errors import RetryableError
from lakesplice.table.protocol.retries import Retries
from lakesplice.testing.doubles import FixedClock, SeededEntropy

PACKAGE = Path(lakesplice.__file__).parent


class Waits(FixedClock):
    """A clock that remembers what was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)


def test_the_first_retry_follows_at_once_and_later_pauses_double_up_to_a_bound() -> None:
    clock, shortest = Waits(), (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.32, 0.32)
    retries = Retries(clock, SeededEntropy(1), 10)
    assert all(retries.allow_another() for _ in range(9))
    assert len(clock.seconds) == len(shortest)
    for waited, usual in zip(clock.seconds, shortest, strict=True):
        assert 0.5 * usual <= waited < 1.5 * usual
    assert len({waited / usual for waited, usual in zip(clock.seconds, shortest, strict=True)}) > 1


def test_no_attempt_follows_the_last_one() -> None:
    clock = Waits()
    retries = Retries(clock, SeededEntropy(1), 3)
    assert [retries.allow_another() for _ in range(4)] == [True, True, False, False]
    assert len(clock.seconds) == 1


def test_the_bound_is_an_error_with_its_facts() -> None:
    retries = Retries(Waits(), SeededEntropy(1), 2)
    retries.require_another("others were faster; try again later", topic="t")
    with pytest.raises(RetryableError, match=re.escape("try again later [attempts=2 topic='t']")):
        retries.require_another("others were faster; try again later", topic="t")


@pytest.mark.slow
def test_no_other_loop_counts_attempts() -> None:
    counting = re.compile(r"(?:for \w+ in range\(|while \w+ < )_?(?:attempts|ATTEMPTS)", re.I)
    found = [path.name for path in PACKAGE.rglob("*.py") if counting.search(path.read_text())]
    assert found == []
