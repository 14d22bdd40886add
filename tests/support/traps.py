"""One fault of the store, a number of calls ahead."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from lakesplice.errors import StorageError
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.testing.faulty_store import Call, Fault, How
from lakesplice.testing.simulation import BatchEnd

CALLS = st.integers(0, 60)
FAULTS = st.sampled_from([How.LOST, How.ANSWER_LOST])
CRASHES = st.sampled_from([How.CRASH_BEFORE, How.CRASH_AFTER])


class Trap:
    """Fails the nth call from now on, once."""

    def __init__(self) -> None:
        self._left = -1
        self._how = How.LOST

    def arm(self, calls: int, how: How) -> None:
        self._left, self._how = calls, how

    def disarm(self) -> None:
        self._left = -1

    def faults(self) -> list[Fault]:
        return [Fault(self._hits(how), how) for how in How]

    def _hits(self, how: How) -> Callable[[Call], bool]:
        def hits(_call: Call) -> bool:
            if how is not self._how or self._left < 0:
                return False
            self._left -= 1
            return self._left < 0

        return hits


def require_excused(ended: BatchEnd) -> BatchEnd:
    """A batch was committed, a rival was quicker, or the store failed; nothing else went wrong."""
    assert not isinstance(ended, TaskError) or ended.is_a(StorageError), ended
    return ended
