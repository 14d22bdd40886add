"""Work that is repeated in a thread while a `with` block runs."""

from __future__ import annotations

import itertools
import threading

import pytest

from benchmarks.repeating import repeating

SECONDS_MAX = 10.0


def test_work_is_repeated_while_the_block_runs_and_no_longer() -> None:
    count, third = itertools.count(1), threading.Event()
    done: list[int] = []

    def work() -> None:
        done.append(next(count))
        if len(done) == 3:
            third.set()

    before = threading.active_count()
    with repeating(work, 0.0):
        assert third.wait(SECONDS_MAX)
    assert threading.active_count() == before


def test_an_error_of_the_work_is_raised_at_the_end_of_the_block() -> None:
    failed = threading.Event()

    def work() -> None:
        failed.set()
        raise ValueError("no more rows")

    with pytest.raises(ValueError, match="no more rows"), repeating(work, 0.0):
        assert failed.wait(SECONDS_MAX)


def test_an_error_that_is_expected_ends_the_work_without_a_trace() -> None:
    calls, failed = itertools.count(), threading.Event()

    def work() -> None:
        next(calls)
        failed.set()
        raise KeyError

    with repeating(work, 0.0, ends_with=KeyError):
        assert failed.wait(SECONDS_MAX)
    assert next(calls) == 1


def test_an_error_of_the_block_ends_the_work_and_counts_more_than_one_of_the_work() -> None:
    failed = threading.Event()

    def work() -> None:
        failed.set()
        raise ValueError("no more rows")

    def fail_too() -> None:
        with repeating(work, 0.0):
            assert failed.wait(SECONDS_MAX)
            raise KeyError

    with pytest.raises(KeyError):
        fail_too()
