"""Generations: which driver may commit to a lake.

    _lakesplice/generations/<n>.json       created by the driver that takes number <n>, if absent;
                                           never deleted. The driver before it may no longer commit
    _lakesplice/generations/<n>.released   its driver ended in order
    _lakesplice/heartbeats/<n>/<beat>      a counter that its driver increases

A new driver takes the next number only after the counter hasn't changed for a lease, measured on
the new driver's own monotonic clock; otherwise two replicas would replace each other forever. The
lease is the one that the present driver recorded with its number, since it beats often enough for
it. A command that needs a change of a table asks the driver for it (`requests.py`), and takes a
number only if there is no driver. Taking over too early does no damage: every manifest has the
generation that wrote it, and a commit with a lower one is refused (`table/protocol/commit.py`).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

from lakesplice.errors import FencedError, MissingFileError, StorageError
from lakesplice.model.driver_status import LEASE_SECONDS, LEASE_SECONDS_MAX
from lakesplice.table.protocol.layout import (
    GENERATIONS,
    HEARTBEATS,
    generation_path,
    heartbeat_path,
    release_path,
)
from lakesplice.table.protocol.ports import Clock, Store

BEATS_PER_LEASE = 4
_TAKEN = re.compile(rf"{GENERATIONS}/(\d{{20}})\.json")

Wait = Callable[[float], bool]
"""Waits so many seconds; returns False to give up."""

Unexpected = Callable[[Exception], None]
"""Reports an error that nobody expected."""


class Generation:
    """A generation that this process holds until it releases it, or a higher one exists."""

    def __init__(self, lake: Store, number: int) -> None:
        self.number = number
        self._lake = lake
        self._beats = 0
        self._ended = threading.Event()
        self._heart: threading.Thread | None = None

    def check(self) -> None:
        """Return if this is the highest generation; else `FencedError`. Costs one look-up."""
        if self._lake.size(generation_path(self.number + 1)) is not None:
            raise FencedError(
                "another driver with a higher generation took over the lake; this one must stop",
                generation=self.number,
            )

    def beat(self) -> None:
        """Increase the heartbeat counter; `FencedError` as in `check`. Called by one thread."""
        self.check()
        self._beats += 1
        # False: our own beat was written and its answer lost; nobody else uses our number.
        self._lake.put_new(heartbeat_path(self.number, self._beats), b"")
        self._lake.delete(heartbeat_path(self.number, self._beats - 1))

    def start_heart(self, unexpected: Unexpected, lease_seconds: float = LEASE_SECONDS) -> None:
        """Beat in a thread of its own until the generation is released or fenced. An error that
        isn't the store's is passed to `unexpected`, and the next beat follows.
        """
        self._heart = threading.Thread(
            target=self._beat_on,
            args=(lease_seconds / BEATS_PER_LEASE, unexpected),
            name="lakesplice-heartbeat",
            daemon=True,
        )
        self._heart.start()

    def release(self) -> None:
        """Let the next driver take over without waiting for the lease to end; may be called twice.

        This driver may not commit afterwards. If the store fails, the next driver has to wait
        longer.
        """
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        with suppress(StorageError):
            self._lake.put_new(release_path(self.number), b"")

    def _beat_on(self, seconds: float, unexpected: Unexpected) -> None:
        while not self._ended.is_set():
            try:
                self.beat()
            except FencedError:
                # The main thread finds out by its own check before it commits anything.
                return
            except StorageError:
                # One beat is missing; the lease allows for some.
                pass
            except Exception as error:  # noqa: BLE001  # without a heart another driver takes over
                unexpected(error)
            self._ended.wait(seconds)


def take_generation(
    lake: Store,
    clock: Clock,
    wait: Wait,
    *,
    unexpected: Unexpected,
    lease_seconds: float = LEASE_SECONDS,
) -> Generation | None:
    """Return a new generation with its heart beating, or None if `wait` gave up.

    `lease_seconds` is the new generation's lease; `unexpected` as in `start_heart`. Blocks as long
    as another driver lives, which may be forever. `StorageError` if the store fails.
    """
    generation = claim_generation(lake, clock, wait, lease_seconds=lease_seconds)
    if generation is not None:
        generation.start_heart(unexpected, lease_seconds)
    return generation


def claim_generation(
    lake: Store,
    clock: Clock,
    wait: Wait,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> Generation | None:
    """As `take_generation`, but the caller has to call `beat` several times per lease."""
    while True:
        newest = newest_generation(lake)
        match _watch(lake, newest, clock, wait):
            case _Seen.GIVEN_UP:
                return None
            case _Seen.REPLACED:
                continue
            case _Seen.IDLE:
                record = {
                    "generation": newest + 1,
                    "taken_ms": clock.now_ms(),
                    "lease_seconds": lease_seconds,
                }
                if lake.put_new(generation_path(newest + 1), json.dumps(record).encode()):
                    _forget_heartbeats(lake, newest)
                    return Generation(lake, newest + 1)


def newest_generation(lake: Store) -> int:
    """Return the highest generation that was ever taken; 0 if none was."""
    matches = (_TAKEN.fullmatch(path) for path in lake.list(f"{GENERATIONS}/"))
    return max((int(match[1]) for match in matches if match), default=0)


class _Seen(Enum):
    IDLE = auto()
    REPLACED = auto()
    GIVEN_UP = auto()


def _watch(lake: Store, number: int, clock: Clock, wait: Wait) -> _Seen:
    """Watch a generation until it has been idle for its lease, or was replaced."""
    lease_seconds = lease_of(lake, number) if number > 0 else 0.0
    beat = _newest_beat(lake, number)
    since = clock.monotonic()
    while clock.monotonic() - since < lease_seconds:
        if lake.size(generation_path(number + 1)) is not None:
            return _Seen.REPLACED
        if lake.size(release_path(number)) is not None:
            break
        if not wait(lease_seconds / BEATS_PER_LEASE):
            return _Seen.GIVEN_UP
        now = _newest_beat(lake, number)
        if now != beat:
            beat, since = now, clock.monotonic()
    return _Seen.IDLE


def lease_of(lake: Store, number: int) -> float:
    """Return the lease of a generation's driver; the usual one if its record doesn't have it."""
    try:
        lease_seconds = json.loads(lake.read(generation_path(number)))["lease_seconds"]
        return (
            float(lease_seconds) if 0 < float(lease_seconds) <= LEASE_SECONDS_MAX else LEASE_SECONDS
        )
    except (MissingFileError, ValueError, KeyError, TypeError):
        return LEASE_SECONDS


def _newest_beat(lake: Store, number: int) -> str:
    return max(lake.list(f"{HEARTBEATS}/{number:020d}/"), default="")


def _forget_heartbeats(lake: Store, up_to: int) -> None:
    """Delete the heartbeats of earlier drivers; if some are left, that does no harm."""
    with suppress(StorageError):
        for path in lake.list(f"{HEARTBEATS}/"):
            if path < heartbeat_path(up_to + 1, 0):
                lake.delete(path)
