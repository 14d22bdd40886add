"""Order of records that are returned to, skipped ones and dead letters that are read again: they
stand where their records lie, or they aren't applied.

The world and the readers are those of `tests/support/failovers.py` and `test_late_order_laws.py`.
The operator skips records, returns to them wholly or in parts, and goes back to any offset.
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
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.returned_records import Waiting, follow_returned
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.gaps import after_reading, narrowed_gaps, read_until
from lakesplice.planning.sources.late_order import LateChange, narrowed
from tests.property import test_late_order_laws as letters
from tests.support import failovers
from tests.support.failovers import Form, Sent, World, places_of


class ReturningReader(letters.LetterReader):
    """A driver that keeps what was read around the records that it skips, too."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.left_out: dict[int, set[int]] = {}
        self.unproven: set[tuple[int, int]] = set()
        self.returned: dict[int, Sequence[LateChange]] = {}

    def records(self, partition: int, end: int) -> list[tuple[int, Sent]]:
        left_out = self.left_out.get(partition, set())
        return [(at, sent) for at, sent in super().records(partition, end) if at not in left_out]

    def waiting(self, partition: int) -> Waiting:
        own = {at: one for (where, at), (_, one) in self.letters.items() if where == partition}
        return Waiting.of(self.source, partition, own)

    def course(self, partition: int, end: int) -> EpochPath:
        self.left_out[partition] = set()
        self.unproven = {(at, offset) for at, offset in self.unproven if at != partition}
        state, waiting = self.source.partitions[partition], self.waiting(partition)
        if not waiting:
            return super().course(partition, end)
        while True:
            records = self.records(partition, end)
            read = np.array(self.offsets(partition, end), np.int64)
            rows = np.searchsorted(read, [offset for offset, _ in records])
            missing = MissingRecords.among(read, state, waiting.gaps).before_changes(rows)
            places = places_of(records, missing)
            path = follow_returned(places, partition, state, self.source.epochs, waiting)
            self.left_out[partition] |= path.unproven | path.repeated
            self.unproven |= {(partition, offset) for offset in path.unproven}
            if not path.unproven and not path.repeated:
                self.returned[partition] = path.applied
                return path.course

    def batch(self, ends: dict[int, int]) -> None:
        """Read what was read or skipped before, then what is new."""
        states = self.source.partitions
        again = {at: min(end, read_until(states[at])) for at, end in ends.items()}
        if any(states[at].next_offset < end for at, end in again.items()):
            self.batch_again(again)
        super().batch(ends)

    def batch_again(self, ends: dict[int, int]) -> None:
        before, self.left_out, self.unproven, self.returned = self.source, {}, set(), {}
        waiting = {at: self.waiting(at) for at in ends}
        read = {at: self.everything(at, end) for at, end in ends.items()}
        failovers.Reader.batch(self, ends)
        for at, records in read.items():
            for offset, sent in records:
                unread = sent.number in self.unreadable or (at, offset) in self.unproven
                around = waiting[at].around(offset)
                if unread and around is not None:
                    self.letters[at, offset] = sent, around
                elif not unread:
                    self.note(sent)
            self.narrow(at, self.returned.get(at, ()))
        gaps = after_reading(before, self.source.partitions, {}, self.returned)
        self.source, self.left_out = replace(self.source, gaps=gaps), {}

    def pass_letters(self, partition: int, high: Any, places: Any) -> None:
        super().pass_letters(partition, high, places)
        above = [place for place in places if place > high]
        lowest = {partition: min(above)} if above else {}
        source = replace(self.source, partitions=self.source.partitions)
        self.source = replace(source, gaps=after_reading(source, source.partitions, lowest))

    def narrow(self, partition: int, applied: Sequence[LateChange]) -> None:
        for (at, offset), (sent, around) in [*self.letters.items()]:
            if at == partition:
                self.letters[at, offset] = sent, narrowed(Offset(offset), around, applied)

    def replayed(self, partition: int, applied: Sequence[LateChange]) -> None:
        gaps = narrowed_gaps(self.source.gaps, self.source.topic_id, {partition: applied})
        self.source = replace(self.source, gaps=gaps)

    def return_to_skipped(self) -> None:
        for gap in self.source.gaps:
            self.go_back(gap.partition, gap.start)

    def return_to(self, partition: int, back: int) -> None:
        """Return to a gap, `back` records after its start."""
        own = [gap for gap in self.source.gaps if gap.partition == partition]
        for gap in own[:1]:
            self.go_back(partition, min(gap.start + back, (gap.end or gap.start + 1) - 1))


skips = st.tuples(st.just("skip"), st.integers(0, 1), st.integers(1, 6))
some_returns = st.tuples(st.just("return"), st.integers(0, 1), st.integers(0, 3))


def live(world: World, reader: ReturningReader, step: tuple[Any, ...]) -> None:
    """Let one step of the history happen."""
    match step:
        case ("return", int(partition), int(back)):
            reader.return_to(partition, back)
        case _:
            letters.live(world, reader, step)


def finish(world: World, reader: ReturningReader) -> None:
    """Once all is sent and the records that were skipped are read, only rows of refused letters
    differ from the source.
    """
    reader.return_to_skipped()
    reader.batch({at: read_until(state) for at, state in reader.source.partitions.items()})
    assert not reader.source.gaps
    letters.finish(world, reader)


def life(form: Form, first_files: list[int], history: list[tuple[Any, ...]]) -> ReturningReader:
    world = World(form, first_files)
    reader = ReturningReader(world)
    for step in history:
        live(world, reader, step)
    finish(world, reader)
    return reader


SKIPPED_BETWEEN_SERVERS = [
    *(("write", 0, [0]), ("send", 1), ("read", 100, 100), ("write", 0, [0]), ("fail over", 1, 0)),
    *(("send", 1), ("skip", 0, 1), ("fail over", 0, 0), ("write", 0, [2]), ("send", 1)),
    *(("read", 100, 100), ("write", 0, [0]), ("send", 1), ("read", 100, 100)),
]
"""Only a record that is skipped comes from the second server, whose position is higher."""


@pytest.mark.slow
@example(form=Form.MYSQL, first_files=[0, 9, 0], history=SKIPPED_BETWEEN_SERVERS)
@given(
    st.sampled_from([Form.MYSQL, Form.MARIADB]),
    failovers.files,
    failovers.histories(
        failovers.restarts,
        failovers.failovers,
        failovers.returns,
        letters.garbles,
        letters.replays,
        skips,
        skips,
        some_returns,
    ),
)
def test_a_record_that_is_returned_to_makes_no_row_older_whatever_server_it_came_from(
    form: Form, first_files: list[int], history: list[tuple[Any, ...]]
) -> None:
    reader = life(form, first_files, history)
    event(f"{min(1, len(reader.letters))} letters refused")


still = failovers.histories(
    failovers.returns, letters.garbles, letters.replays, skips, some_returns
)


@given(failovers.forms, failovers.files, still)
def test_while_the_connector_goes_on_no_record_that_is_returned_to_is_refused(
    form: Form, first_files: list[int], history: list[tuple[Any, ...]]
) -> None:
    reader = life(form, first_files, history)
    assert not reader.letters
    assert not reader.source.epochs
