"""Insert-only tables store each event once, however often and in whichever batches it is
delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.choices import NotInserts
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import Source, folder

KEYS = 12


def driver(
    path: Path, source: Source, *, policy: NotInserts = NotInserts.PARK, ranges: int = 2
) -> SimulatedDriver:
    return SimulatedDriver(
        LocalStore(path),
        source.topic,
        FixedClock(),
        SeededEntropy(1),
        ranges=ranges,
        not_inserts=policy,
    )


def counted(table: Table, name: str) -> int:
    return sum(entry.info.metrics.get(name, 0) for entry in table.history())


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    sent=st.lists(st.tuples(st.integers(0, 1), st.integers(0, KEYS - 1)), min_size=1, max_size=60),
    cuts=st.lists(st.integers(1, 7), min_size=1, max_size=20),
    ranges=st.integers(1, 3),
)
def test_each_event_is_stored_once_however_often_it_comes(
    sent: list[tuple[int, int]], cuts: list[int], ranges: int
) -> None:
    source = Source()
    events = [source.put(key) for key in range(KEYS)]
    for partition, key in sent:
        source.topic.append(partition, events[key])
    with folder() as path:
        batches, ends = driver(path, source, ranges=ranges), {0: Offset(0), 1: Offset(0)}
        for cut in cuts:
            ends = {at: Offset(min(end + cut, source.topic.ends[at])) for at, end in ends.items()}
            assert batches.batch(ends) is CommitOutcome.DONE
        assert batches.batch() is CommitOutcome.DONE
        table = Table(batches.table.store)
        found = sorted(table.read()["id"].to_pylist())
        assert found == sorted({key for _, key in sent})
        assert not table.snapshot.manifest.deltas
        assert counted(table, "inserted") == len(found)
        assert counted(table, "duplicates") == len(sent) - len(found)
        assert check(batches.table.store, table.snapshot).sound


def test_a_replay_from_the_beginning_adds_nothing() -> None:
    source = Source()
    for key in range(KEYS):
        source.topic.append(key % 2, source.put(key))
    with folder() as path:
        batches = driver(path, source)
        batches.batch()
        before = Table(batches.table.store).read(include_system=True).sort_by("id")
        again = source.topic.events(0), source.topic.events(1)
        for partition, events in enumerate(again):
            source.topic.append(partition, list(events))
        batches.batch()
        table = Table(batches.table.store)
        assert table.read(include_system=True).sort_by("id") == before
        assert counted(table, "duplicates") == KEYS


CHANGES: dict[str, Callable[[Source], list[Event]]] = {
    "update": lambda source: source.put(1),
    "delete": lambda source: source.delete(1),
    "move": lambda source: source.move(1, 9),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_an_update_or_delete_parks_the_table_just_before_it(kind: str) -> None:
    source = Source()
    source.topic.append(0, source.put(1))
    source.topic.append(0, source.put(2))
    before = source.topic.ends[0]
    source.topic.append(0, CHANGES[kind](source))
    source.topic.append(0, source.put(5))
    with folder() as path:
        batches = driver(path, source)
        batches.batch()
        parked = batches.table.parked
        assert parked is not None
        assert parked.code is ParkCode.NOT_AN_INSERT
        assert parked.offset == before
        assert batches.table.source.partitions[0].next_offset == before
        assert sorted(Table(batches.table.store).read()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("kind", CHANGES)
def test_an_update_or_delete_becomes_a_dead_letter_if_so_configured(kind: str) -> None:
    source = Source()
    source.topic.append(0, source.put(1))
    source.topic.append(0, CHANGES[kind](source))
    source.topic.append(0, source.put(5))
    with folder() as path:
        batches = driver(path, source, policy=NotInserts.DEAD_LETTER)
        assert batches.batch() is CommitOutcome.DONE
        assert batches.table.parked is None
        table = Table(batches.table.store)
        rows = {row["id"]: row for row in table.read().to_pylist()}
        assert rows.keys() == ({1, 5, 9} if kind == "move" else {1, 5})
        assert rows[1]["n"] == 1
        assert not table.snapshot.manifest.deltas
        assert sum(ref.rows for ref in table.snapshot.manifest.dead_letters) == 1
        assert counted(table, "dead:not-an-insert") == 1
