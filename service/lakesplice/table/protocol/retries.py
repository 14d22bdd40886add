"""Retries of something that another writer prevented: bounded, with pauses that become longer.

    retries = Retries(clock, entropy, 20)
    while True:
        if committed(plan()):
            return
        retries.require_another()

The first retry follows at once, since most races are lost to one commit. The pauses of later ones
double from about 10 ms to about 320 ms and have a random length, so that two writers that met once
don't meet every time. They pass on the port `Clock`: in a simulation they take no time.
docs/decisions/0039-one-way-to-retry.md has the reasons; `commit_with_retries` in `commit.py` is the
usual loop.
"""

from __future__ import annotations

from lakesplice.errors import RetryableError
from lakesplice.table.protocol.ports import Clock, Entropy

OVERTAKEN = "other writers committed first every time; try again later"
"""The message of the error if nothing else is to be done."""
_FIRST_PAUSE_SECONDS = 0.01
_DOUBLINGS_MAX = 5
_JITTER_BITS = 10


class Retries:
    """The attempts at one thing, at most `attempts_max`; used by one thread.

    At the bound `require_another` raises. A caller of `allow_another` gets False and has to return
    or raise what then holds.
    """

    def __init__(self, clock: Clock, entropy: Entropy, attempts_max: int) -> None:
        self._clock = clock
        self._entropy = entropy
        self._attempts_max = attempts_max
        self._failed = 0

    def allow_another(self) -> bool:
        """Count a failed attempt; return False if it was the last one, else True after a pause."""
        self._failed += 1
        if self._failed >= self._attempts_max:
            return False
        if self._failed > 1:
            self._clock.wait(self._pause_seconds())
        return True

    def require_another(self, message: str = OVERTAKEN, **facts: object) -> None:
        """Count a failed attempt and pause; raise `RetryableError` if it was the last one.

        The error has the message, the facts and the number of attempts.
        """
        if not self.allow_another():
            raise RetryableError(message, attempts=self._failed, **facts)

    def _pause_seconds(self) -> float:
        doubled = _FIRST_PAUSE_SECONDS * (1 << min(self._failed - 2, _DOUBLINGS_MAX))
        return doubled * (0.5 + self._entropy.bits(_JITTER_BITS) / (1 << _JITTER_BITS))
