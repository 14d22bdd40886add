"""Each call of an Iceberg mirror to its table's store and to its catalog fails, or the process
dies there. Afterwards the mirror has its table's rows, and each snapshot those of its version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lakesplice.testing.faulty_store import How
from tests.support.mirror_life import Life
from tests.support.simulated import folder

WAYS = [How.LOST, How.ANSWER_LOST, How.CRASH_BEFORE, How.CRASH_AFTER]


@contextmanager
def life(fails: int = -1, how: How = How.LOST) -> Iterator[Life]:
    with folder() as path:
        yield Life(path, fails, how)


@pytest.mark.parametrize("how", WAYS)
def test_a_mirror_is_whole_whichever_call_failed(
    how: How, seed: int, request: pytest.FixtureRequest
) -> None:
    with life() as undisturbed:
        undisturbed.play()
        count = undisturbed.calls
        undisturbed.require_whole()
    assert count > 30
    every = 1 if request.config.getoption("--nightly") else 26
    for fails in range((seed + WAYS.index(how) * 5) % every, count, every):
        with life(fails, how) as disturbed:
            disturbed.play()
            disturbed.require_whole()
