"""The model of a replicated source (`failovers.py`) with TRUNCATEs, which are in one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.model.arrays import Integers
from lakesplice.model.moments import EpochUs
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import in_epoch
from lakesplice.planning.intake.order.emptied import (
    Truncation,
    emptied_after,
    is_behind,
    sent_again,
    truncations,
)
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.gtids import GtidStreams
from tests.support.failovers import KEYS, Form, Reader, Sent, World, live

TRUNCATE = -2
"""The key of a TRUNCATE. Events without keys aren't compacted."""


class EmptiedWorld(World):
    """Its changes may be TRUNCATEs."""

    def compact(self, share: int) -> None:
        kept = {at: list(log) for at, log in self.topic.items()}
        super().compact(share)
        for at, log in self.topic.items():
            truncates = [one and one.key == TRUNCATE for one in kept[at]]
            log[:] = [
                old if truncate else new
                for old, new, truncate in zip(kept[at], log, truncates, strict=True)
            ]

    def lose(self, partition: int, at: int) -> None:
        log = self.topic[partition]
        if 0 <= at < len(log) and (lost := log[at]) and lost.key != TRUNCATE:
            super().lose(partition, at)


class EmptiedReader(Reader):
    """A driver of a table of current rows, with its fence. A row that was deleted has no number."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._lowered: list[Position] = []

    def records_first(self, courses: dict[int, EpochPath]) -> bool:
        states = {at: course.state for at, course in courses.items()}
        read = [one for at, course in courses.items() for one in self._truncations(at, course)]
        emptied, known = emptied_after(self.source, states, read), self.source.emptied
        self.source = replace(self.source, emptied=emptied)
        return emptied not in (None, known) and is_behind(emptied, self.source.epochs)

    def batch(self, ends: dict[int, int]) -> None:
        self._lowered = []
        super().batch(ends)
        fence = max([self.source.fence, *self._lowered])
        self.source = replace(self.source, fence=fence)
        self.rows = {
            key: (fence, -1) if stands <= fence else (stands, number)
            for key, (stands, number) in self.rows.items()
        }

    def take(self, sent: Sent, epoch: int) -> None:
        stands = in_epoch(sent.place, epoch)
        if self._is_sent_again(sent, stands):
            return
        if sent.key == TRUNCATE:
            self._lowered.append(stands)
        elif stands > self.source.fence:
            super().take(sent, epoch)

    def numbers(self) -> dict[int, int]:
        return {key: number for key, number in super().numbers().items() if number >= 0}

    def _truncations(self, partition: int, course: EpochPath) -> Iterator[Truncation]:
        state, log = self.source.partitions[partition], self.world.topic[partition]
        records = self.records(partition, len(log))[: course.end]
        gtids = pa.array([sent.gtid for _, sent in records], pa.string())
        for at, (offset, sent) in enumerate(records):
            if sent.key == TRUNCATE and offset >= state.met_until:
                met = GtidStreams.of(gtids.slice(0, at), state.gtids).highest(state.gtids)
                stands = in_epoch(sent.place, int(course.epoch[at]))
                fence = Fence(stands, sent.gtid, moment=EpochUs(sent.number))
                yield from truncations(Fences.of({0: fence}), _one(stands.file), [met])

    def _is_sent_again(self, sent: Sent, stands: Position) -> bool:
        emptied = self.source.emptied
        if emptied is None or not is_behind(emptied, self.source.epochs):
            return False
        is_later = stands.file >> FILE_BITS > emptied.position.file >> FILE_BITS
        if sent.key == TRUNCATE and not is_later:
            return False
        gtid = pa.array([sent.gtid], pa.string())
        moment = pa.array([sent.number], pa.timestamp("us", tz="UTC"))
        return bool(sent_again(emptied, _one(stands.file), _one(stands.offset), gtid, moment)[0])


def _one(value: int) -> Integers:
    return np.array([value], np.int64)


def lived_through(
    form: Form, first_files: Sequence[int], history: Sequence[Any]
) -> tuple[EmptiedWorld, EmptiedReader]:
    """Return the world and its reader after a whole history."""
    world = EmptiedWorld(form, first_files)
    reader = EmptiedReader(world)
    for step in history:
        if step == ("catch up",):
            require_truth(world, reader)
        else:
            live(world, reader, step)
    return world, reader


def require_truth(world: EmptiedWorld, reader: EmptiedReader) -> None:
    """Once all is sent and read, the table is as the source."""
    world.send(len(world.changes))
    reader.return_to_skipped()
    reader.batch({at: len(log) for at, log in world.topic.items()})
    lives: dict[int, int] = {}
    for number, change in enumerate(world.changes):
        lives = {} if change.key == TRUNCATE else {**lives, change.key: number}
    assert reader.numbers() == lives


_keys = st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=3)
truncated = st.lists(
    st.lists(
        st.one_of(_keys, _keys, st.just([TRUNCATE])).map(lambda keys: ("write", 0, keys)),
        min_size=2,
        max_size=6,
    ),
    min_size=1,
    max_size=2,
).map(lambda rounds: [step for written in rounds for step in (*written, ("catch up",))])
"""Histories with TRUNCATEs that are read completely before the source fails over."""
