"""Whatever happens to a table while records are dead letters, their replay gives the correct
rows.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import (
    DeadLetterSelection,
    dead_letters_of,
    table_of,
    write_dead_letters,
)
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Replay
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.drawing import examples
from tests.support.feeds import require_feed
from tests.support.simulated import Source, memory_folder, rows_of, truth_for

KEYS = 3
ALL = DeadLetterSelection()
WHOLE, BY_NAME = SchemaPolicy(), SchemaPolicy(partition_by=("name",))


@dataclass(frozen=True)
class Step:
    """A statement of one kind, sent to a partition; whether its records can be read at first."""

    kind: str
    key: int
    partition: int
    dead: bool
    then: str


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(["put", "put", "put", "delete", "move"]),
        st.integers(0, KEYS - 1),
        st.integers(0, 1),
        st.booleans(),
        st.sampled_from(["", "", "batch", "replay", "compact"]),
    ),
    min_size=1,
    max_size=14,
)


class History:
    """A source, the topic as an older version could read it, and the table that it fed."""

    def __init__(self, folder: Path, policy: SchemaPolicy = WHOLE) -> None:
        self.source, self.policy, self.folder = Source(), policy, folder
        true = self.source.topic
        self.readable = SimulatedTopic(true.name, 2, true.topic_id)
        self.waiting: dict[tuple[int, int], bytes | None] = {}
        self.driver = SimulatedDriver(
            LocalStore(folder),
            self.readable,
            FixedClock(),
            SeededEntropy(1),
            ranges=2,
            policy=policy,
        )

    def send(self, step: Step) -> None:
        keys = self.source.keys
        if step.kind == "put" or step.key not in keys:
            events = self.source.put(step.key)
        elif step.kind == "delete":
            events = self.source.delete(step.key)
        else:
            free = next((key for key in range(2 * KEYS) if key not in keys), step.key)
            events = self.source.move(step.key, free) if free != step.key else []
        for event in events:
            self._send(event, step)

    def _send(self, event: Event, step: Step) -> None:
        offset = self.source.topic.ends[step.partition]
        self.source.topic.append(step.partition, [event])
        unread = step.dead and event.value is not None
        self.readable.append(step.partition, [event._replace(value=b"{") if unread else event])
        if unread:
            self.waiting[step.partition, offset] = event.value

    def batch(self) -> None:
        """Take in what there is, and repair what couldn't be read of it."""
        assert self.driver.batch() is CommitOutcome.DONE
        if not self.waiting:
            return
        table = self.driver.table
        assert table.snapshot is not None
        refs = table.manifest.dead_letters
        letters = [
            replace(one, value=self.waiting.pop((one.partition, one.offset), one.value))
            for one in dead_letters_of(table.store, refs)
        ]
        ref = write_dead_letters(table.store, table_of(letters), SeededEntropy(self.seed))
        paths = frozenset(ref.file.path for ref in refs)
        assert isinstance(table.commit(Replay(1, table.version, paths, (ref,))), Committed)

    def require_once_elsewhere(self) -> None:
        """No other Delta reader finds a key twice, whatever moved its row."""
        table = self.driver.table
        if table.snapshot is None or not table.schema.columns or self.policy is WHOLE:
            return
        root = self.folder / self.driver.name.path
        rows = DeltaTable(str(root)).to_pyarrow_table(columns=["id", "_is_deleted"]).to_pylist()
        keys = [row["id"] for row in rows if not row["_is_deleted"]]
        assert len(keys) == len({*keys}), sorted(keys)

    @property
    def seed(self) -> int:
        return 1_000 + self.driver.table.version

    def replay(self, chosen: DeadLetterSelection = ALL) -> DeadLetterCounts:
        table = self.driver.table
        if table.snapshot is None:
            return DeadLetterCounts()
        box = OpenDeadLetters(
            table.store, table.snapshot, table.commit, 1, FixedClock(), SeededEntropy(self.seed)
        )
        return box.replay(chosen, RecordReading(table=self.driver.name, policy=self.policy))


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(steps, st.data(), st.sampled_from([WHOLE, BY_NAME]))
def test_replayed_letters_heal_their_rows_and_regress_nothing(
    drawn: list[Step], data: st.DataObject, policy: SchemaPolicy
) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        history = History(Path(folder), policy)
        for step in drawn:
            history.send(step)
            if step.then:
                history.batch()
            if step.then == "replay":
                places = [PartitionOffset(at, Offset(n)) for at in (0, 1) for n in range(8)]
                some = data.draw(st.sets(st.sampled_from(places), min_size=1))
                history.replay(DeadLetterSelection(frozenset(some)))
            elif step.then == "compact":
                history.driver.compact()
            history.require_once_elsewhere()
        history.batch()
        assert history.replay().kept == 0
        history.require_once_elsewhere()
        store = history.driver.table.store
        truth = truth_for(history.source, Table(store))
        assert rows_of(store) == truth
        assert not history.driver.table.manifest.dead_letters
        assert history.replay() == DeadLetterCounts()
        history.driver.compact()
        assert rows_of(store) == truth
        require_feed(store)


@settings(max_examples=examples(15))
@given(steps)
def test_letters_replayed_in_any_number_of_parts_are_counted_once(drawn: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        history = History(Path(folder))
        for step in drawn:
            history.send(step)
        letters = len(history.waiting)
        history.batch()
        places = frozenset(PartitionOffset(0, Offset(n)) for n in range(40))
        first = history.replay(DeadLetterSelection(places))
        second = history.replay()
        assert first.removed + second.removed == letters
        assert first.kept == second.kept == 0


@pytest.mark.slow
def test_a_letter_that_moves_its_row_takes_it_from_its_old_place_in_the_same_commit(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, BY_NAME)
    for is_dead in (False, True):
        history.send(Step("put", 0, 0, is_dead, ""))
        history.batch()
    table = history.driver.table
    (before,) = rows_of(table.store)
    assert history.replay() == DeadLetterCounts(removed=1)
    (after,) = rows_of(table.store)
    assert before["name"] != after["name"], "the row should have moved"
    history.require_once_elsewhere()
    assert rows_of(table.store) == truth_for(history.source, Table(table.store))
