"""A model of a replicated source, its topic and a table's driver, for laws of order at failovers.

There is one history of transactions, each of which changes some keys. Every server's binlog has
all of it in the same order, at its own places. A connector sends it to the key's partition, repeats
some changes after a restart, and continues at another server after a failover, also in the middle
of a transaction. The broker compacts, the whole topic or its older part, or loses single records
whose keys change later. The table's driver reads batches of any size, partition by partition, dies,
and reads records again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakesplice.model.arrays import Mask
from lakesplice.model.moments import EpochUs
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import in_epoch
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.repeated_numbers import SLACK_AFTER_MISSING_US
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath, follow, open_epoch
from lakesplice.planning.sources.operator_directions import moved

PARTITIONS = 2
KEYS = 4
BETWEEN_US = 100_000


class Form(Enum):
    """How GTIDs are written."""

    MYSQL = "mysql"
    MARIADB = "mariadb"
    SETS = "sets"


@dataclass(frozen=True)
class Sent:
    """A record: which change it carries, its place in the binlog it came from, its GTID."""

    number: int
    key: int
    place: Position
    gtid: str | None


@dataclass(frozen=True)
class Change:
    """A change in the history: its transaction, its row there, its key and its GTID."""

    transaction: int
    row: int
    key: int
    gtid: str


@dataclass
class World:
    """Servers 0 to 2 with their binlogs, and a topic. `clock` is the time of the newest change.

    Transactions from `began` on have numbers and binlogs of their own, as after RESET MASTER, the
    `resets`-th one; changes before `floor` can't be sent again. None of them is at a place of
    before: there the table parks for another reason (`shared_positions.py`).
    """

    form: Form
    first_files: Sequence[int]
    writers: list[int] = field(default_factory=list)  # per transaction the server that wrote it
    changes: list[Change] = field(default_factory=list)
    topic: dict[int, list[Sent | None]] = field(
        default_factory=lambda: {at: [] for at in range(PARTITIONS)}
    )
    server: int = 0
    next: int = 0
    began: int = 0
    resets: int = 0
    floor: int = 0
    clock: int = 0
    moments: list[EpochUs] = field(default_factory=list)

    def write(self, writer: int, keys: Sequence[int]) -> None:
        transaction = len(self.writers)
        self.clock += BETWEEN_US
        self.moments += [EpochUs(self.clock)] * len(keys)
        self.writers.append(writer)
        gtid = self.gtid()
        self.changes += [Change(transaction, row, key, gtid) for row, key in enumerate(keys)]

    def gtid(self) -> str:
        """The GTID of the newest transaction."""
        writers = self.writers[self.began :]
        if self.form is Form.MARIADB:
            return f"0-{writers[-1]}-{len(writers)}"
        if self.form is Form.MYSQL:
            return f"uuid{writers[-1]}:{writers.count(writers[-1])}"
        return ",".join(f"uuid{at}:1-{writers.count(at)}" for at in sorted({*writers}))

    def begin_again(self) -> None:
        """Let all servers begin their binlogs and numbers again, after a pause, once all is
        sent.
        """
        self.send(len(self.changes))
        self.floor, self.began = len(self.changes), len(self.writers)
        self.first_files = [0] * len(self.first_files)
        self.resets += 1
        self.clock += SLACK_AFTER_MISSING_US

    def send(self, count: int) -> None:
        for number in range(self.next, min(self.next + count, len(self.changes))):
            change = self.changes[number]
            # A binlog of three transactions a file.
            at = change.transaction - self.began + self.first_files[self.server] * 3
            offset = 4 + self.resets % 10 + 10 * (at % 3)
            place = Position.of(0, at // 3, offset, change.row, 1)
            sent = Sent(number, change.key, place, change.gtid)
            self.topic[change.key % PARTITIONS].append(sent)
            self.next = number + 1

    def compact(self, share: int) -> None:
        """Remove records of keys that have later ones in the same part of their log, from its
        beginning.
        """
        for log in self.topic.values():
            part = len(log) * share // 100
            newest = {sent.key: at for at, sent in enumerate(log[:part]) if sent}
            for at, sent in enumerate(log[:part]):
                if sent and newest[sent.key] != at:
                    log[at] = None

    def lose(self, partition: int, at: int) -> None:
        """Remove a record whose change the connector will send again, or one whose key changes
        later.
        """
        log = self.topic[partition]
        if 0 <= at < len(log) and (lost := log[at]):
            later = any(change.key == lost.key for change in self.changes[lost.number + 1 :])
            if later or lost.number >= self.next:
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
            states = {at: course.state for at, course in courses.items()}
            if openings:
                epoch = open_epoch(self.source, openings, states)
                self.source = replace(self.source, epochs=(*self.source.epochs, epoch))
            elif not self.records_first(courses):
                break
        else:
            raise AssertionError("epochs are opened again and again")
        states, epochs = dict(self.source.partitions), {e.number: e for e in self.source.epochs}
        for at, course in courses.items():
            records = self.records(at, ends[at])
            for sent, epoch in zip((sent for _, sent in records), course.epoch, strict=True):
                self.take(sent, int(epoch))
            read = self.offsets(at, ends[at])
            last = Offset(read[-1] + 1 if read else course.state.next_offset)
            states[at] = replace(course.state, next_offset=last).passed_to(Offset(ends[at]))
            for number, offset in course.entered.items():
                epochs[number] = epochs[number].entered_by(at, offset)
        self.source = replace(self.source, partitions=states, epochs=tuple(epochs.values()))

    def records_first(
        self,
        courses: dict[int, EpochPath],  # a subclass uses them
    ) -> bool:
        """Record what the batch has to know; return whether it has to be taken again."""
        return False

    def take(self, sent: Sent, epoch: int) -> None:
        """Apply a change."""
        stands = in_epoch(sent.place, epoch)
        if sent.key not in self.rows or stands > self.rows[sent.key][0]:
            self.rows[sent.key] = stands, sent.number

    def course(self, partition: int, end: int) -> EpochPath:
        records = self.records(partition, end)
        state = self.source.partitions[partition]
        read = np.array(self.offsets(partition, end), np.int64)
        rows = np.searchsorted(read, [offset for offset, _ in records])
        missing = MissingRecords.among(read, state).before_changes(rows)
        return follow(places_of(records, missing), partition, state, self.source.epochs)

    def offsets(self, partition: int, end: int) -> list[int]:
        """The offsets of the next records."""
        return [offset for offset, _ in self.records(partition, end)]

    def records(self, partition: int, end: int) -> list[tuple[int, Sent]]:
        """The next records that can be read."""
        log, start = self.world.topic[partition], self.source.partitions[partition].next_offset
        return [(at, sent) for at, sent in enumerate(log) if start <= at < end and sent]

    def go_back(self, partition: int, offset: int) -> None:
        """Read again from an earlier offset, as an operator may ask."""
        to = Offset(min(offset, self.source.partitions[partition].next_offset))
        self.source = moved(self.source, {partition: to})

    def skip(self, partition: int, count: int) -> None:
        """Pass over the next records, as an operator may ask."""
        end = len(self.world.topic[partition])
        to = Offset(min(end, self.source.partitions[partition].next_offset + count))
        self.source = moved(self.source, {partition: to})

    def return_to_skipped(self) -> None:
        for gap in self.source.gaps:
            self.go_back(gap.partition, gap.start)
        self.source = replace(self.source, gaps=())

    def numbers(self) -> dict[int, int]:
        return {key: number for key, (_, number) in self.rows.items()}


def places_of(records: Sequence[tuple[int, Sent]], after_missing: Mask) -> ChangePositions:
    """Where the records' changes stand, as the intake line takes them."""
    return ChangePositions(
        np.array([offset for offset, _ in records], np.int64),
        np.array([sent.place.file for _, sent in records], np.int64),
        np.array([sent.place.offset for _, sent in records], np.int64),
        pa.array([sent.gtid for _, sent in records], pa.string()),
        after_missing,
    )


def histories(*jumps: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[list[Any]]:
    """Draw writes, sending and reading in rounds, with jumps between sending and reading."""
    keys = st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=3)
    write = st.tuples(st.just("write"), st.integers(0, 2), keys)
    send = st.tuples(st.just("send"), st.integers(1, 6))
    read = st.tuples(st.just("read"), st.integers(0, 100), st.integers(0, 100))
    rounds = st.tuples(
        st.lists(write, min_size=1, max_size=5),
        send,
        st.lists(st.one_of(jumps), max_size=2),
        read | st.just(("catch up",)),
    )
    return st.lists(rounds, min_size=4, max_size=12).map(
        lambda drawn: [
            step
            for written, sent, jumped, read in drawn
            for step in (*written, sent, *jumped, read)
        ]
    )


restarts = st.tuples(st.just("restart"), st.integers(0, 5))
failovers = st.tuples(st.just("fail over"), st.integers(0, 2), st.integers(0, 5))
compactions = st.tuples(st.just("compact"), st.sampled_from([100, 100, 70, 40]))
returns = st.tuples(st.just("go back"), st.integers(0, PARTITIONS - 1), st.integers(0, 30))
losses = st.tuples(st.just("lose"), st.integers(0, PARTITIONS - 1), st.integers(0, 12))
skips = st.tuples(st.just("skip"), st.integers(0, PARTITIONS - 1), st.integers(1, 4))
steps = histories(restarts, failovers, compactions, losses, returns)
forms = st.sampled_from(Form)
# Low numbers often, so that two servers use the same places.
files = st.lists(st.integers(0, 2) | st.integers(0, 30), min_size=3, max_size=3)


def live(world: World, reader: Reader, step: tuple[Any, ...]) -> None:
    """Let one step of the history happen."""
    match step:
        case ("write", int(writer), [*keys]):
            world.write(writer, keys)
        case ("send", int(count)):
            world.send(count)
        case ("restart", int(back)):
            world.next = max(world.floor, world.next - back)
        case ("fail over", int(server), int(back)):
            world.server = server
            world.next = max(world.floor, world.next - back)
        case ("begin again",):
            world.begin_again()
        case ("compact", int(share)):
            world.compact(share)
        case ("lose", int(partition), int(back)):
            world.lose(partition, len(world.topic[partition]) - 1 - back)
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
        case ("skip", int(partition), int(count)):
            reader.skip(partition, count)
        case ("catch up",):
            catch_up(world, reader)


def lived(
    form: Form,
    first_files: Sequence[int],
    history: Sequence[Any],
    reader_of: Callable[[World], Reader] = Reader,
) -> tuple[World, Reader]:
    """Return the world and its reader after a whole history."""
    world = World(form, first_files)
    reader = reader_of(world)
    for step in history:
        live(world, reader, step)
    return world, reader


def catch_up(world: World, reader: Reader) -> None:
    """Once all is sent and read, the table is as the source."""
    world.send(len(world.changes))
    reader.return_to_skipped()
    reader.batch({at: len(log) for at, log in world.topic.items()})
    assert reader.numbers() == truth(world)


def truth(world: World) -> dict[int, int]:
    return {change.key: number for number, change in enumerate(world.changes)}
