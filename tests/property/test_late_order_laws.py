"""Order of dead letters across failovers: one that is replayed stands where its record lies, or it
isn't applied.

The world and the reader are those of `tests/support/failovers.py`, but some changes can't be read:
their records are dead letters, whatever the connector sends again, until a replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch, entered_epochs, epoch_at, in_epoch
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.order.dead_letter_places import read_around
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.states_before import states_before
from lakesplice.planning.sources.epochs import ChangePositions, follow
from lakesplice.planning.sources.late_order import (
    LateChange,
    LateRecords,
    ReadAround,
    follow_late,
    last_reached,
    narrowed,
    raised,
)
from tests.support import failovers
from tests.support.failovers import Form, Sent, World, places_of, truth

ALL = 3


class LetterReader(failovers.Reader):
    """A driver that keeps what it can't read, with what was read around it."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.unreadable: set[int] = set()
        self.repaired: set[int] = set()
        self.letters: dict[tuple[int, int], tuple[Sent, ReadAround]] = {}
        self.applied: dict[int, int] = {}
        self.refused = 0

    def everything(self, partition: int, end: int) -> list[tuple[int, Sent]]:
        return super().records(partition, end)

    def records(self, partition: int, end: int) -> list[tuple[int, Sent]]:
        records = self.everything(partition, end)
        return [(at, sent) for at, sent in records if sent.number not in self.unreadable]

    def offsets(self, partition: int, end: int) -> list[int]:
        return [at for at, _ in self.everything(partition, end)]

    def batch(self, ends: dict[int, int]) -> None:
        before = self.source
        read = {at: self.everything(at, end) for at, end in ends.items()}
        good = {at: self.records(at, end) for at, end in ends.items()}
        super().batch(ends)
        for at, records in good.items():
            places = [self.place(at, offset, sent) for offset, sent in records]
            self.pass_letters(at, before.partitions[at].position, places)
            for _, sent in records:
                self.note(sent)
        after, self.source = self.source, replace(before, epochs=self.openings(before))
        for at in ends:
            self.keep(at, read[at], good[at])
        self.source = after

    def openings(self, before: Any) -> Any:
        """The epochs as the last round of the batch found them."""
        known = {epoch.number: epoch for epoch in before.epochs}
        return tuple(
            known.get(epoch.number, replace(epoch, entered={})) for epoch in self.source.epochs
        )

    def place(self, partition: int, offset: int, sent: Sent) -> Position:
        return in_epoch(sent.place, epoch_at(self.source.epochs, partition, Offset(offset)))

    def note(self, sent: Sent) -> None:
        self.applied[sent.key] = max(self.applied.get(sent.key, -1), sent.number)

    def pass_letters(self, partition: int, high: Position, places: Sequence[Position]) -> None:
        """Close the last group once a higher position is read."""
        above = [place for place in places if place > high]
        for (at, offset), (sent, around) in [*self.letters.items()]:
            if at == partition and around.behind is None and above:
                self.letters[at, offset] = sent, replace(around, behind=min(above))

    def keep(
        self, partition: int, read: list[tuple[int, Sent]], good: list[tuple[int, Sent]]
    ) -> None:
        offsets = np.array([offset for offset, _ in read], np.int64)
        rows = np.searchsorted(offsets, [offset for offset, _ in good])
        state = self.source.partitions[partition]
        missing = MissingRecords.among(offsets, state)
        positions = places_of(good, missing.before_changes(rows))
        order = RecordOrder(rows, positions, rows, (), ())
        course = follow(positions, partition, state, self.source.epochs)
        dead = [RecordIndex(at) for at in range(len(read)) if at not in {*rows.tolist()}]
        places = np.searchsorted(rows, dead).tolist()
        before = states_before(positions, partition, state, self.source.epochs, places)
        assert before == followed(positions, partition, state, self.source.epochs, places)
        found = read_around(
            dead,
            offsets,
            order,
            course,
            missing=missing,
            partition=partition,
            state=state,
            epochs=self.source.epochs,
        )
        for record, around in found.items():
            offset, sent = read[record]
            self.letters[partition, offset] = sent, around

    def replay(self, which: int) -> None:
        """Replay the dead letters, or two thirds of them."""
        for partition in range(failovers.PARTITIONS):
            chosen = [
                (offset, sent)
                for (at, offset), (sent, _) in sorted(self.letters.items())
                if at == partition and (which == ALL or sent.number % 3 != which)
            ]
            self.replay_partition(partition, chosen)

    def replay_partition(self, partition: int, chosen: list[tuple[int, Sent]]) -> None:
        state = self.source.partitions[partition]
        around = {offset: self.letters[partition, offset][1] for offset, _ in chosen}
        for one in around.values():
            assert one.behind is not None or one.before.position == state.position
        last = [one.before for one in around.values() if one.behind is None]
        reached, interrupted = last_reached(state, last)
        known = LateRecords(around, {None: reached}, interrupted=interrupted)
        applied: list[LateChange] = []
        while chosen:
            positions = places_of(chosen, np.zeros(len(chosen), np.bool_))
            path = follow_late(positions, partition, self.source.epochs, known)
            known = known.with_applied(path.applied, path.elsewhere)
            applied += path.applied
            for (offset, sent), epoch in zip(chosen[: path.end], path.epoch, strict=True):
                del self.letters[partition, offset]
                self.apply(sent, in_epoch(sent.place, epoch))
            if path.end < len(chosen):
                self.refused += path.unproven
                if not path.unproven:
                    del self.letters[partition, chosen[path.end][0]]
            chosen = chosen[path.end + 1 :]
        state, epochs = raised(state, partition, self.source.epochs, applied)
        states = {**self.source.partitions, partition: state}
        self.source = replace(self.source, partitions=states, epochs=epochs)
        self.replayed(partition, applied)
        for (at, offset), (sent, one) in [*self.letters.items()]:
            if at == partition:
                self.letters[at, offset] = sent, narrowed(Offset(offset), one, applied)

    def replayed(self, partition: int, applied: Sequence[LateChange]) -> None:
        """Note what was applied."""

    def apply(self, sent: Sent, stands: Position) -> None:
        self.repaired |= {sent.number}
        self.unreadable -= self.repaired
        self.note(sent)
        if sent.key not in self.rows or stands > self.rows[sent.key][0]:
            self.rows[sent.key] = stands, sent.number


def followed(
    positions: ChangePositions,
    partition: int,
    state: PartitionState,
    epochs: Sequence[Epoch],
    places: Sequence[int],
) -> dict[int, PartitionState]:
    """The states before some changes, each found by following the path from the one before it."""
    found, start = {}, 0
    for at in places:
        course = follow(positions.between(start, at), partition, state, epochs)
        epochs = entered_epochs(epochs, partition, course.entered)
        found[at] = state = course.state
        start = at
    return found


garbles = st.tuples(st.just("garble"), st.integers(1, 3))
replays = st.tuples(st.just("replay"), st.integers(0, ALL))


def live(world: World, reader: LetterReader, step: tuple[Any, ...]) -> None:
    """Let one step of the history happen."""
    match step:
        case ("garble", int(count)):
            drawn = {*range(world.next - count, world.next)}
            reader.unreadable |= drawn - reader.repaired
        case ("write", int(writer), [key, *_]):
            world.write(writer, [key])  # a transaction that is cut has limits of its own
        case ("replay", int(which)):
            reader.replay(which)
        case ("catch up",):
            pass
        case _:
            failovers.live(world, reader, step)


def finish(world: World, reader: LetterReader) -> None:
    """Once all is sent, read and replayed, only rows of refused letters differ from the source.
    These show the newest change that was applied, or lack what a refused letter has.
    """
    world.send(len(world.changes))
    reader.batch({at: len(log) for at, log in world.topic.items()})
    reader.refused = 0
    reader.replay(ALL)
    waiting: dict[int, int] = {}
    for sent, _ in reader.letters.values():
        waiting[sent.key] = max(sent.number, waiting.get(sent.key, -1))
    found = reader.numbers()
    for key, number in truth(world).items():
        shown, newest = found.get(key, -1), reader.applied.get(key, -1)
        assert key in waiting or shown == number
        assert shown == newest or shown < waiting.get(key, -1)


BETWEEN_SERVERS = [
    *(("write", 0, [0]), ("send", 1), ("read", 100, 100), ("write", 0, [0]), ("send", 1)),
    *(("garble", 1), ("fail over", 1, 0), ("write", 0, [2]), ("send", 1)),
    *(("fail over", 0, 0), ("write", 0, [2]), ("send", 1), ("read", 100, 100)),
]


@example(form=Form.MYSQL, first_files=[9, 0, 0], history=BETWEEN_SERVERS)
@given(
    st.sampled_from([Form.MYSQL, Form.MARIADB]),
    failovers.files,
    failovers.histories(failovers.restarts, failovers.failovers, garbles, replays),
)
def test_a_late_record_makes_no_row_older_whatever_server_it_came_from(
    form: Form, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world = World(form, first_files)
    reader = LetterReader(world)
    for step in history:
        live(world, reader, step)
    finish(world, reader)
    event(f"{min(1, len(reader.letters))} letters refused")


@pytest.mark.slow
@given(failovers.forms, failovers.files, failovers.histories(failovers.restarts, garbles, replays))
def test_a_replay_without_any_failover_is_never_refused(
    form: Form, first_files: list[int], history: list[tuple[object, ...]]
) -> None:
    world = World(form, first_files)
    reader = LetterReader(world)
    for step in history:
        live(world, reader, step)
        # An epoch may begin if what was replayed is sent again.
        assert not reader.refused or reader.source.epochs
    finish(world, reader)
    assert not reader.letters or reader.source.epochs
