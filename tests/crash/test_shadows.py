"""A table is filled by chunks while it is streamed, and swapped in: each write fails, or the
process dies there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum

import pytest

from lakesplice.errors import StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.shadow_plan import FilledFrom
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.shadow import swapped_version
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from tests.support.scenario import ALL_MS
from tests.support.shadows import SHADOW, Filling, ReadSource
from tests.support.simulated import SMALL, Rows, driver_of, folder, require_tidy, row, rows_of
from tests.support.traps import require_excused

WRITES = ("put_new", "writer", "delete")
HOWS = [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST]


class Way(Enum):
    """How a table is filled: as a new one, beside one that has what the stream told, or beside one
    from their topic alone, or from a snapshot in it.
    """

    NEW = "new"
    BESIDE = "beside"
    REPLAYED = "replayed"
    SNAPSHOT = "snapshot"


class Life:
    """Rows of which no event tells, a stream, and those who fill the table, one after another."""

    def __init__(self, way: Way) -> None:
        self.source, self.clock, self.lives = ReadSource(), FixedClock(), 0
        self.way = way
        if self.is_replayed:
            for key in range(5):
                self.source.topic.append(key % 2, self.source.put(key))
        else:
            self.source.database.load(SMALL.name, [row(key, key) for key in range(5)])
        self.before: Rows | None = None

    @property
    def is_replayed(self) -> bool:
        return self.way in (Way.REPLAYED, Way.SNAPSHOT)

    def filling(self, lake: Store) -> Filling:
        self.lives += 1
        ways = {Way.REPLAYED: FilledFrom.TOPIC, Way.SNAPSHOT: FilledFrom.SNAPSHOT}
        filled_from = ways.get(self.way, FilledFrom.DATABASE)
        return Filling(self.source, lake, self.clock, self.lives, filled_from=filled_from)

    def begin(self, bare: LocalStore) -> None:
        """Where the shadow is filled beside a table, that has what the stream told."""
        if self.way is not Way.NEW:
            self.source.topic.append(0, self.source.put(0))
            live = driver_of(self.source, bare, seed=500, clock=self.clock)
            live.batch()
            self.before = rows_of(live.table.store)
        if self.way is Way.SNAPSHOT:
            self.take_snapshot()

    def take_snapshot(self) -> None:
        """A row goes unheard; the snapshot lacks it, and the broker deletes what came before."""
        topic, first = self.source.topic, self.source.topic.ends
        self.source.delete(3)
        for key, event in zip(self.source.keys, self.source.database.snapshot(), strict=True):
            topic.append(key % 2, [event])
        topic.forget(first)

    def steps(self, lake: Store) -> list[Callable[[], object]]:
        put, topic = self.source.put, self.source.topic
        held: list[Filling] = []

        def filling() -> Filling:
            if not held:
                held.append(self.filling(lake))
            return held[0]

        def take(chunk: int) -> Callable[[], object]:
            if self.is_replayed:
                first = self.source.topic.starts
                ends = {0: Offset(first[0] + chunk + 1), 1: Offset(first[1] + chunk)}
                return lambda: filling().feed(ends)
            return lambda: filling().commit(chunk, filling().read(chunk))

        return [
            take(1),
            lambda: topic.append(1, put(2)),
            lambda: topic.append(0, self.source.delete(4)),
            lambda: require_excused(filling().driver.attempt()),
            take(2),
            filling().driver.compact,
            lambda: filling().fill(),
            lambda: filling().swap(),
        ]

    def played(self, lake: Store) -> bool:
        """Play it; False if the process died."""
        try:
            for step in self.steps(lake):
                step()
        except (Crash, StorageError):
            return False
        return True

    def finish(self, bare: LocalStore) -> None:
        """What the next one does, if a shadow is open or none ever became the table."""
        store = bare.within("shop/goods")
        if not open_shadows(store) and swaps(store):
            return
        filling = self.filling(bare)
        if swapped_version(filling.store, filling.plan) is None:
            filling.fill()
        filling.swap()

    def require_either(self, bare: LocalStore) -> None:
        """Who reads the table sees it as it was, or as the shadow is; never a part of it."""
        store = bare.within("shop/goods")
        live = find_snapshot(store)
        if live is None or live.log.adds.keys() == (self.first_files or set()):
            assert live is None or rows_of(store) == self.before
            return
        assert len(rows_of(store)) == len(self.source.present())

    first_files: set[str] | None = None


def swaps(store: Store) -> int:
    """How often a shadow became the table."""
    if find_snapshot(store) is None:
        return 0
    return sum(entry.info.operation == "SWAP" for entry in Table(store).history())


def played(life: Life, bare: LocalStore, lake: Store) -> bool:
    life.begin(bare)
    live = find_snapshot(bare.within("shop/goods"))
    life.first_files = None if live is None else set(live.log.adds)
    return life.played(lake)


def writes(way: Way) -> list[Call]:
    with folder() as path:
        life, bare = Life(way), LocalStore(path)
        store = FaultyStore(bare)
        assert played(life, bare, store)
        return [call for call in store.calls if call.method in WRITES]


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("how", HOWS)
def test_after_any_failure_the_table_is_the_old_one_or_the_whole_new_one(
    how: How, way: Way, request: pytest.FixtureRequest, seed: int
) -> None:
    every = writes(way)
    assert len(every) > 30
    step = 1 if request.config.getoption("--nightly") else 12
    for call in every[(seed + HOWS.index(how)) % step :: step]:
        with folder() as path:
            life, bare = Life(way), LocalStore(path)
            with suppress(Crash):
                played(life, bare, FaultyStore(bare, [Fault.at(call.number, how)]))
            life.require_either(bare)
            life.finish(bare)
            store = bare.within("shop/goods")
            assert rows_of(store) == life.source.present(), call
            assert open_shadows(store) == []
            assert swaps(store) == 1, call
            successor = driver_of(life.source, bare, generation=2, seed=900, clock=life.clock)
            life.source.topic.append(1, life.source.put(3))
            successor.batch()
            assert rows_of(store) == life.source.present()
            table = successor.table
            assert table.snapshot is not None
            Orphans(table.store, table.commit, 2).sweep(
                table.snapshot, EpochMs(ALL_MS), at_once=True
            )
            require_tidy(table.store)
            assert not list(table.store.list(f"_lakesplice/shadows/{SHADOW}/"))
