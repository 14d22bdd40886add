"""Commands that change a table: they take a generation first, so never beside a living driver.

One that runs is asked to lend the lake; it goes on when the command has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakesplice.apps.lake import lake_of
from lakesplice.errors import RetryableError, UsageError
from lakesplice.model.manifest import Manifest, ParkReason, RunRef, SourceState
from lakesplice.planning.file_merge import FILE_MERGE_POLICY, plan_file_merge
from lakesplice.storage.places import AnyStore, open_sink
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.commit import Committed, Conflict, commit
from lakesplice.table.file_merge import file_merge, merge_base_files
from lakesplice.table.generation import BEATS_PER_LEASE, Generation, Wait, take_generation
from lakesplice.table.intents import Intent, Redirect
from lakesplice.table.ports import Clock, Store
from lakesplice.table.purge import PurgeRules, purge
from lakesplice.table.replay import LetterBox
from lakesplice.table.restore import restore
from lakesplice.table.snapshot import Snapshot, open_snapshot
from lakesplice.table.vacuum import Vacuumed, vacuum

# A driver that is gone is known to be after one lease; one that lives ends its batches first.
_WAITS_MIN = BEATS_PER_LEASE + 2
_LEND_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True)
class Direction:
    """What becomes of a table: `source` and `runs` stay if None; `parked` of None means running."""

    source: SourceState | None = None
    parked: ParkReason | None = None
    runs: tuple[RunRef, ...] | None = None


def redirect(
    address: str | Path,
    decide: Callable[[Store, Snapshot], Direction],
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Give the table at `address` a new direction in one commit and return its new version.

    `decide` gets the table's store and newest snapshot; what it raises changes nothing. Blocks for
    a lease if a driver died without saying so, and until a living one has lent the lake.
    `UsageError` if that one doesn't.
    """
    with _opened(address, clock or SystemClock(), wait) as table:
        direction = decide(table.store, table.snapshot)
        outcome = table.commit(
            Redirect(
                table.generation.number,
                table.snapshot.version,
                direction.source,
                direction.parked,
                direction.runs,
            )
        )
        if isinstance(outcome, Conflict):
            raise RetryableError(
                "the table changed meanwhile; try again",
                table=str(address),
                reason=outcome.detail,
            )
        return outcome.snapshot


def vacuum_fed_table(
    address: str | Path,
    retention_seconds: float,
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Vacuumed:
    """Vacuum a table that a source feeds; blocks and raises as `redirect` does."""
    clock = clock or SystemClock()
    with _opened(address, clock, wait) as table:
        now_ms, number = clock.now_ms(), table.generation.number
        return vacuum(table.store, table.snapshot, table.commit, now_ms, retention_seconds, number)


def merge_fed_table(
    address: str | Path, *, clock: Clock | None = None, wait: Callable[[float], None] = time.sleep
) -> int:
    """Merge small base files of the table at an address, which a source feeds; how many went in.

    Blocks and raises as `redirect` does.
    """
    merged = 0
    with _opened(address, clock or SystemClock(), wait) as table:
        while chosen := plan_file_merge(table.manifest.files.values(), FILE_MERGE_POLICY):
            paths, manifest = [file.path for file in chosen], table.manifest
            made = merge_base_files(table.store, manifest, paths, SystemEntropy(), open_sink)
            inputs, output = made
            number, planned_on = table.generation.number, table.snapshot.version
            outcome = table.commit(file_merge(number, planned_on, inputs, output, manifest))
            if isinstance(outcome, Conflict):
                raise RetryableError("the table changed meanwhile; try again", table=str(address))
            merged += len(inputs)
    return merged


def purge_fed_table(
    address: str | Path,
    older_than_seconds: float,
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Purge the table at an address, which a source feeds; how many rows left for good.

    Blocks and raises as `redirect` does.
    """
    clock, rows = clock or SystemClock(), 0
    rules = PurgeRules(clock.now_ms() * 1000 - int(older_than_seconds * 1_000_000))
    with _opened(address, clock, wait) as table:
        number, entropy = table.generation.number, SystemEntropy()
        while intent := purge(
            table.store, table.manifest, rules, table.snapshot.version, number, entropy
        ):
            if isinstance(table.commit(intent), Conflict):
                raise RetryableError("the table changed meanwhile; try again", table=str(address))
            rows += intent.counts["rows"]
    return rows


def restore_fed_table(
    address: str | Path,
    version: int,
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Restore the table at an address, which a source feeds, and return its new version.

    Blocks and raises as `redirect` does, and as `plan_restore`.
    """
    with _opened(address, clock or SystemClock(), wait) as table:
        number = table.generation.number
        return restore(table.store, table.snapshot, version, table.commit, number)


def over_letters(
    address: str | Path,
    work: Callable[[LetterBox], str],
    told: Mapping[str, str],
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> str:
    """Let `work` do something to the dead letters of the table at an address; return its words.

    `told` goes into the table's history. Blocks and raises as `redirect` does, and as `work`.
    """
    clock = clock or SystemClock()
    with _opened(address, clock, wait) as table:
        number, entropy = table.generation.number, SystemEntropy()
        box = LetterBox(table.store, table.snapshot, table.commit, number, clock, entropy, told)
        return work(box)


class _FedTable:
    """A table that a source feeds, held by a generation of our own."""

    def __init__(self, store: Store, generation: Generation, clock: Clock) -> None:
        self.store, self.generation = store, generation
        self.snapshot = open_snapshot(store)
        self._clock = clock

    @property
    def manifest(self) -> Manifest:
        """That of the newest version known."""
        return self.snapshot.manifest

    def commit(self, intent: Intent) -> Committed | Conflict:
        """Make an intent the next version; `FencedError` if another driver took over."""
        self.generation.check()
        entropy = SystemEntropy()
        outcome = commit(self.store, self.snapshot, intent, clock=self._clock, entropy=entropy)
        if isinstance(outcome, Committed):
            self.snapshot = outcome.snapshot
        return outcome


@contextmanager
def _opened(
    address: str | Path, clock: Clock, wait: Callable[[float], None]
) -> Iterator[_FedTable]:
    lake, name = lake_of(address)
    with _generation(lake, clock, wait) as generation:
        yield _FedTable(lake.within(name.path), generation, clock)


@contextmanager
def _generation(
    lake: AnyStore, clock: Clock, wait: Callable[[float], None]
) -> Iterator[Generation]:
    generation = take_generation(lake, clock, _patience(wait), asking=True)
    if generation is None:
        raise UsageError(
            "a driver of this lake is running and doesn't lend it; stop it, then give the command"
            " again",
            lake=repr(lake),
        )
    try:
        yield generation
    finally:
        generation.release()


def _patience(wait: Callable[[float], None]) -> Wait:
    """Return a wait that gives up after more than a lease and as long as lending may take."""
    waits, waited = 0, 0.0

    def once_more(seconds: float) -> bool:
        nonlocal waits, waited
        if waits >= _WAITS_MIN and waited >= _LEND_SECONDS_MAX:
            return False
        waits, waited = waits + 1, waited + seconds
        wait(seconds)
        return True

    return once_more
