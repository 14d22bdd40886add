"""What a driver did last and does now, for people: batches, compactions, changes per second.

It is kept in memory and lost with the driver. Metrics are for what has to be known later.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from lakesplice.model.driver_status import MirrorStatus, MissingChanges
from lakesplice.model.moments import EpochMs
from lakesplice.model.progress.verified import LastResult
from lakesplice.table.protocol.ports import Clock

VERIFICATION = "verification"
_BATCHES_MAX = 60
_BURSTS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that ended. `result` is as in the metric of batches. Of a batch that failed as a
    whole, the numbers of records and tables are unknown.
    """

    began_ms: EpochMs
    seconds: float
    records: int | None
    tables: int | None
    result: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a thread does to a table: `what` is `compaction`, for which `changes` and `bytes` wait,
    `upkeep`, or `verification`.
    """

    table: str
    what: str
    began_ms: EpochMs
    changes: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a table's last compaction failed, and when it is retried."""

    reason: str
    retry_ms: EpochMs | None


@dataclass(frozen=True, slots=True)
class ConnectorSighting:
    """When a connector last wrote a record, and whether it sends heartbeats."""

    name: str
    has_heartbeats: bool
    wrote_ms: EpochMs


class Activity:
    """What one driver does. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: deque[Batch] = deque(maxlen=_BATCHES_MAX)
        self._work: dict[int, Work] = {}
        self._failures: dict[str, Failure] = {}
        self._numbers = count()
        self._verified: Mapping[str, LastResult] = {}
        self._mirrors: dict[str, MirrorStatus] = {}
        self._missing: dict[str, MissingChanges] = {}
        self._query_failure = ""
        self._connectors: tuple[ConnectorSighting, ...] = ()
        self._last_batch_ms: EpochMs | None = None
        self._clock_difference: float | None = None

    def add_batch(self, batch: Batch) -> None:
        """Record that a batch ended; the last ones are kept."""
        with self._lock:
            self._batches.append(batch)

    def batch_ended(self, moment_ms: EpochMs) -> None:
        """Record that a batch ended at a moment, or what counts as that: see `Driver`."""
        with self._lock:
            self._last_batch_ms = moment_ms

    @property
    def last_batch_ms(self) -> EpochMs | None:
        """The moment that `batch_ended` recorded last; None before the first one."""
        with self._lock:
            return self._last_batch_ms

    def show_clock_difference(self, seconds: float) -> None:
        """Show how far the store's clock is ahead of this process's; below 0 it is behind."""
        with self._lock:
            self._clock_difference = seconds

    @property
    def clock_difference(self) -> float | None:
        """What `show_clock_difference` showed last; None before the first time."""
        with self._lock:
            return self._clock_difference

    @contextmanager
    def working(self, work: Work) -> Iterator[None]:
        """Record what is done while the block runs."""
        with self._lock:
            number = next(self._numbers)
            self._work[number] = work
        try:
            yield
        finally:
            with self._lock:
                del self._work[number]

    def compaction_failed(self, table: str, failure: Failure) -> None:
        """Record why a table's compaction failed, until one succeeds."""
        with self._lock:
            self._failures[table] = failure

    def compaction_ended(self, table: str) -> None:
        """Record that a table's compaction succeeded."""
        with self._lock:
            self._failures.pop(table, None)

    def show_mirror(self, table: str, mirror: MirrorStatus | None) -> None:
        """Show how a table's Iceberg mirror is; None if it has none any more."""
        with self._lock:
            if mirror is None:
                self._mirrors.pop(table, None)
            else:
                self._mirrors[table] = mirror

    @property
    def mirrors(self) -> Mapping[str, MirrorStatus]:
        """The Iceberg mirrors, by the table's name."""
        with self._lock:
            return dict(self._mirrors)

    def add_missing_changes(self, table: str, found: MissingChanges) -> None:
        """Add changes that a compaction found missing to those of the same day."""
        with self._lock:
            known = self._missing.get(table)
            if known is not None and known.is_recent(found.seen_ms):
                found = MissingChanges(known.changes + found.changes, found.seen_ms)
            self._missing[table] = found

    @property
    def missing_changes(self) -> Mapping[str, MissingChanges]:
        """What compactions found missing, by the table's name; also what is older than a day."""
        with self._lock:
            return dict(self._missing)

    def query_failed(self, reason: str) -> None:
        """Record why no batch can run, until `query_runs`."""
        with self._lock:
            self._query_failure = reason

    def query_runs(self) -> None:
        """Record that the broker was read again."""
        with self._lock:
            self._query_failure = ""

    @property
    def query_failure(self) -> str:
        """Why no batch can run; empty if nothing prevents it."""
        with self._lock:
            return self._query_failure

    def show_connectors(self, connectors: tuple[ConnectorSighting, ...]) -> None:
        """Show when each connector last wrote."""
        with self._lock:
            self._connectors = connectors

    @property
    def connectors(self) -> tuple[ConnectorSighting, ...]:
        """When each connector last wrote, as far as the broker says."""
        with self._lock:
            return self._connectors

    def show_verified(self, results: Mapping[str, LastResult]) -> None:
        """Show these results of comparisons with databases, by the table's folder."""
        with self._lock:
            self._verified = dict(results)

    @property
    def verified(self) -> Mapping[str, LastResult]:
        """The last result of each table's comparison, by its folder."""
        with self._lock:
            return self._verified

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The last batches, the newest at the end."""
        with self._lock:
            return tuple(self._batches)

    @property
    def work(self) -> tuple[Work, ...]:
        """What threads do to tables now, in the order in which they began."""
        with self._lock:
            return tuple(self._work.values())

    @property
    def failures(self) -> Mapping[str, Failure]:
        """For each table whose last compaction failed, why."""
        with self._lock:
            return dict(self._failures)


class ChangeRate:
    """How many changes per second were committed during the last `window_seconds`. Safe from any
    thread.

    The window must be longer than the time between two batches, or the rate jumps.
    """

    def __init__(self, clock: Clock, window_seconds: float) -> None:
        self._clock = clock
        self._window_seconds = window_seconds
        self._began = clock.monotonic()
        self._bursts: deque[tuple[float, int]] = deque(maxlen=_BURSTS_MAX)
        self._lock = threading.Lock()

    def add(self, changes: int) -> None:
        """Count changes that were just committed."""
        with self._lock:
            self._bursts.append((self._clock.monotonic(), changes))

    @property
    def per_second(self) -> float | None:
        """The mean over the window, or since the start; None if nothing was measured yet."""
        now = self._clock.monotonic()
        seconds = min(now - self._began, self._window_seconds)
        if seconds <= 0:
            return None
        with self._lock:
            recent = sum(changes for moment, changes in self._bursts if now - moment <= seconds)
        return recent / seconds
