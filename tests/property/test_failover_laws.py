"""Order across failovers: the change with the highest position is the newest one, whatever a
connector sends from any server, and however it is read.

The model: there is one history of transactions, each of which changes one key. Every server's
binlog has all of it in the same order, at its own places. A connector sends it to the key's
partition, repeats some transactions after a restart, and continues at another server after a
failover. The broker compacts. The table's driver reads batches of any size, partition by partition,
dies, and reads records again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, example, given
from hypothesis import strategies as st

from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import in_epoch
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath, follow, open_epoch

PARTITIONS = 2
KEYS = 4


@dataclass(frozen=True)
class Sent:
    """A record: which transaction it carries, its place in the binlog it came from, its GTID."""

    number: int
    key: int
    place: Position
    gtid: str | None


@dataclass
class World:
    """Servers 0 to 2 with their binlogs, and a topic."""

    mariadb: bool
    first_files: Sequence[int]
    writers: list[int] = field(default_factory=list)  # per transaction the server that wrote it
    keys: list[int] = field(default_factory=list)
    gtids: list[str] = field(default_factory=list)
    topic: dict[int, list[Sent | None]] = field(
        default_factory=lambda: {at: [] for at in range(PARTITIONS)}
    )
    server: int = 0
    next: int = 0

    def write(self, writer: int, key: int) -> None:
        own = 1 + self.writers.count(writer)
        number = len(self.keys)
        self.gtids.append(f"0-{writer}-{number + 1}" if self.mariadb else f"uuid{writer}:{own}")
        self.writers.append(writer)
        self.keys.append(key)

    def send(self, count: int) -> None:
        for number in range(self.next, min(self.next + count, len(self.keys))):
            key = self.keys[number]
            # A binlog of three transactions a file.
            at = number + self.first_files[self.server] * 3
            place = Position.of(0, at // 3, 4 + 10 * (at % 3), 0, 1)
            self.topic[key % PARTITIONS].append(Sent(number, key, place, self.gtids[number]))
            self.next = number + 1

    def compact(self) -> None:
        for log in self.topic.values():
            newest = {sent.key: at for at, sent in enumerate(log) if sent}
            for at, sent in enumerate(log):
                if sent and newest[sent.key] != at:
                    log[at] = None


class Reader:
    """A driver: per key the change that stands highest."""

    def __init__(self, world: World) -> None:
        self.world = world
        states = {at: PartitionState(Offset(0)) for at in range(PARTITIONS)}
        self.source = SourceState("topic", "id", states)
        self.rows: dict[int, tuple[Position, int]] = {}

    def batch(self, ends: dict[int, int]) -> None:
        """Read up to the ends, in rounds: one that meets a new epoch is taken again."""
        for _ in range(30):
            courses = {at: self.course(at, end) for at, end in ends.items()}
            openings = [course.opening for course in courses.values() if course.opening]
            assert not [course.detail for course in courses.values() if course.detail]
            if not openings:
                break
            states = {at: course.state for at, course in courses.items()}
            epoch = open_epoch(self.source, openings, states)
            self.source = replace(self.source, epochs=(*self.source.epochs, epoch))
        else:
            raise AssertionError("epochs are opened again and again")
        states, epochs = dict(self.source.partitions), {e.number: e for e in self.source.epochs}
        for at, course in courses.items():
            records = self.records(at, ends[at])
            for sent, epoch in zip((sent for _, sent in records), course.epoch, strict=True):
                stands = in_epoch(sent.place, int(epoch))
                if sent.key not in self.rows or stands > self.rows[sent.key][0]:
                    self.rows[sent.key] = stands, sent.number
            states[at] = replace(course.state, next_offset=Offset(ends[at]))
            for number, offset in course.entered.items():
                epochs[number] = epochs[number].entered_by(at, offset)
        self.source = replace(self.source, partitions=states, epochs=tuple(epochs.values()))

    def course(self, partition: int, end: int) -> EpochPath:
        records = self.records(partition, end)
        places = ChangePositions(
            np.array([offset for offset, _ in records], np.int64),
            np.array([sent.place.file for _, sent in records], np.int64),
            np.array([sent.place.offset for _, sent in records], np.int64),
            pa.array([sent.gtid for _, sent in records], pa.string()),
        )
        return follow(places, partition, self.source.partitions[partition], self.source.epochs)

    def records(self, partition: int, end: int) -> list[tuple[int, Sent]]:
        log, start = self.world.topic[partition], self.source.partitions[partition].next_offset
        return [(at, sent) for at, sent in enumerate(log) if start <= at < end and sent]

    def go_back(self, partition: int, offset: int) -> None:
        """Read again from an earlier offset, as an operator may ask."""
        state = self.source.partitions[partition]
        met = max(state.met_until, state.next_offset)
        moved = replace(state, next_offset=Offset(min(offset, state.next_offset)), met_until=met)
        self.source = replace(self.source, partitions={**self.source.partitions, partition: moved})


writes = st.lists(
    st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, KEYS - 1)), min_size=1, max_size=5
)
jumps = st.one_of(
    st.tuples(st.just("restart"), st.integers(0, 5)),
    st.tuples(st.just("fail over"), st.integers(0, 2), st.integers(0, 5)),
    st.tuples(st.just("compact")),
    st.tuples(st.just("go back"), st.integers(0, PARTITIONS - 1), st.integers(0, 30)),
)
reads = st.tuples(st.just("read"), st.integers(0, 100), st.integers(0, 100))
rounds = st.tuples(
    writes, st.tuples(st.just("send"), st.integers(1, 6)), st.lists(jumps, max_size=2), reads
)
steps = st.lists(rounds, min_size=4, max_size=12).map(
    lambda drawn: [
        step for written, sent, jumped, read in drawn for step in (*written, sent, *jumped, read)
    ]
)
# Low numbers often, so that two servers use the same places.
files = st.lists(st.integers(0, 2) | st.integers(0, 30), min_size=3, max_size=3)


def live(world: World, reader: Reader, step: tuple[Any, ...]) -> None:
    """Let one step of the history happen."""
    match step:
        case ("write", int(writer), int(key)):
            world.write(writer, key)
        case ("send", int(count)):
            world.send(count)
        case ("restart", int(back)):
            world.next = max(0, world.next - back)
        case ("fail over", int(server), int(back)):
            world.server = server
            world.next = max(0, world.next - back)
        case ("compact",):
            world.compact()
        case ("read", *shares):
            ends = {
                at: min(
                    len(log),
                    reader.source.partitions[at].next_offset + len(log) * int(share) // 100,
                )
                for (at, log), share in zip(world.topic.items(), shares, strict=True)
            }
            reader.batch(ends)
        case ("go back", int(partition), int(offset)):
            reader.go_back(partition, offset)


def catch_up(world: World, reader: Reader) -> None:
    world.send(len(world.keys))
    reader.batch({at: len(log) for at, log in world.topic.items()})


def truth(world: World) -> dict[int, int]:
    return {key: number for number, key in enumerate(world.keys)}


SAME_PLACE = [
    *(("write", 0, 0), ("send", 1), ("fail over", 1, 0), ("read", 0, 0)),
    *(("write", 0, 2), ("write", 0, 1), ("send", 1), ("read", 0, 0)),
    *(("write", 0, 1), ("write", 0, 1), ("write", 0, 1), ("send", 1), ("fail over", 0, 0)),
    *(("read", 0, 0), ("write", 0, 1), ("write", 0, 2), ("send", 1), ("read", 0, 0)),
]
"""Two servers write transactions of one key at one place of their binlogs."""

TO_AND_FRO = [
    *[step for _ in range(9) for step in (("write", 0, 0), ("send", 1), ("read", 0, 0))][:-1],
    *(("fail over", 1, 0), ("read", 0, 0), ("write", 0, 0), ("send", 1)),
    *(("fail over", 0, 2), ("read", 0, 0), ("write", 0, 1), ("send", 1), ("fail over", 1, 0)),
]
"""A connector goes back to the first server, then on to the second before it has repeated all."""

COMPACTED = [
    *(("write", 0, 0), ("write", 1, 1), ("write", 0, 0), ("write", 0, 0), ("write", 0, 1)),
    *(("write", 0, 0), ("send", 6), ("compact",), ("read", 0, 0), ("fail over", 2, 5)),
    *(("write", 0, 0), ("send", 1), ("fail over", 0, 0), ("read", 0, 0)),
]
"""The first repeated change is one that the broker compacted away before it was read."""


@example(mariadb=False, first_files=[0, 2, 0], history=SAME_PLACE)
@example(mariadb=False, first_files=[1, 0, 0], history=TO_AND_FRO)
@example(mariadb=False, first_files=[0, 0, 1], history=COMPACTED)
@given(st.booleans(), files, steps)
def test_the_newest_change_of_a_key_stands_highest(
    mariadb: bool, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world = World(mariadb, first_files)
    reader = Reader(world)
    for step in history:
        live(world, reader, step)
    catch_up(world, reader)
    event(f"{len(reader.source.epochs)} epochs")
    assert {key: number for key, (_, number) in reader.rows.items()} == truth(world)


@given(st.booleans(), files, steps, st.integers(0, 100))
def test_a_table_reloaded_is_the_same_whatever_the_broker_has_compacted(
    mariadb: bool, first_files: list[int], history: list[tuple[object, ...]], share: int
) -> None:
    world = World(mariadb, first_files)
    first = Reader(world)
    for step in history:
        live(world, first, step)
    catch_up(world, first)
    world.compact()
    second = Reader(world)
    second.batch({at: len(log) * share // 100 for at, log in world.topic.items()})
    catch_up(world, second)
    assert {key: number for key, (_, number) in second.rows.items()} == truth(world)
