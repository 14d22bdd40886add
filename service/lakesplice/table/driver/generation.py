"""Generations: which driver may commit to a lake.

    _lakesplice/generations/<n>.json       taken by put-if-absent of the next number; never deleted,
                                           so a driver is deposed as soon as the next number exists
    _lakesplice/generations/<n>.released   its driver ended in order
    _lakesplice/heartbeats/<n>/<beat>      a counter that its driver moves on

A newcomer takes the next number only after the counter has stood still for a lease on the
newcomer's own monotonic clock, so that two replicas don't depose each other for ever. Which lease
that is the driver itself has said when it took its number, as it beats for that one. A command that
wants something of a table asks the driver to do it (`requests.py`), and takes a number only
where none lives. Taking over too early is harmless, only a nuisance: every manifest holds the
generation that wrote it, and a commit below it is refused (`table/protocol/commit.py`).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

from lakesplice.errors import FencedError, MissingFileError, StorageError
from lakesplice.table.protocol.layout import (
    GENERATIONS,
    HEARTBEATS,
    generation_path,
    heartbeat_path,
    release_path,
)
from lakesplice.table.protocol.ports import Clock, Store

LEASE_SECONDS = 10.0
LEASE_SECONDS_MAX = 600.0
BEATS_PER_LEASE = 4
_TAKEN = re.compile(rf"{GENERATIONS}/(\d{{20}})\.json")

Wait = Callable[[float], bool]
"""Waits so many seconds; False to give up."""


class Generation:
    """A generation that this process holds until it is released or a higher one exists."""

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
        """Move the heartbeat counter on; `FencedError` as `check`. Called by one thread."""
        self.check()
        self._beats += 1
        # A False is a beat of ours whose answer was lost: no other process writes under our number.
        self._lake.put_new(heartbeat_path(self.number, self._beats), b"")
        self._lake.delete(heartbeat_path(self.number, self._beats - 1))

    def start_heart(self, lease_seconds: float = LEASE_SECONDS) -> None:
        """Beat from a thread of its own until the generation is released or fenced."""
        seconds = lease_seconds / BEATS_PER_LEASE
        self._heart = threading.Thread(
            target=self._beat_on, args=(seconds,), name="lakesplice-heartbeat", daemon=True
        )
        self._heart.start()

    def release(self) -> None:
        """Let the next driver take over without waiting out a lease; may be called twice.

        Nothing of this driver may commit afterwards. If the store fails the next one waits longer.
        """
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        with suppress(StorageError):
            self._lake.put_new(release_path(self.number), b"")

    def _beat_on(self, seconds: float) -> None:
        while not self._ended.is_set():
            try:
                self.beat()
            except FencedError:
                # The main thread finds out by its own check, before anything is committed.
                return
            except StorageError:
                # A beat missed; the lease allows for some.
                pass
            self._ended.wait(seconds)


def take_generation(
    lake: Store,
    clock: Clock,
    wait: Wait,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> Generation | None:
    """Return a generation of our own, with its heart beating, or None if `wait` gave up.

    `lease_seconds` is ours, from then on. Blocks as long as another driver lives, maybe for ever.
    `StorageError` if the store fails.
    """
    generation = claim_generation(lake, clock, wait, lease_seconds=lease_seconds)
    if generation is not None:
        generation.start_heart(lease_seconds)
    return generation


def claim_generation(
    lake: Store,
    clock: Clock,
    wait: Wait,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> Generation | None:
    """As `take_generation`, but the caller has to call `beat`, several times a lease."""
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
    """Return the highest generation ever taken; 0 if none was."""
    matches = (_TAKEN.fullmatch(path) for path in lake.list(f"{GENERATIONS}/"))
    return max((int(match[1]) for match in matches if match), default=0)


class _Seen(Enum):
    IDLE = auto()
    REPLACED = auto()
    GIVEN_UP = auto()


def _watch(lake: Store, number: int, clock: Clock, wait: Wait) -> _Seen:
    """Watch a generation until it is sure to be idle for its lease, or was replaced."""
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
    """The lease that a generation's driver beats for; the usual one if its record can't say."""
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
    """Delete what earlier drivers left; leftovers are harmless."""
    with suppress(StorageError):
        for path in lake.list(f"{HEARTBEATS}/"):
            if path < heartbeat_path(up_to + 1, 0):
                lake.delete(path)
