"""Rules about the source and its topic."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.support.simulated import SMALL, row
from tests.support.table_machine.state import FEW, PARTITIONS, MachineState

KEYS = 3
COLUMNS_MAX = 2


class SourceRules(MachineState):
    """Rows and columns change, and the topic may repeat itself."""

    @initialize(rows=FEW, partition=PARTITIONS)
    def read_a_snapshot(self, rows: int, partition: int) -> None:
        self.source.database.load(SMALL.name, [row(key, key) for key in range(rows)])
        events = self.source.database.snapshot()
        self.send(events, partition)
        self.snapshot_events[partition] = len(events)

    @rule(rows=st.lists(st.tuples(st.integers(0, KEYS - 1), PARTITIONS), min_size=1, max_size=6))
    def put(self, rows: list[tuple[int, int]]) -> None:
        for key, partition in rows:
            self.send(self.source.put(key), partition)

    @rule(key=st.integers(0, KEYS - 1), first=PARTITIONS, count=st.integers(2, 3))
    def change_a_row_on_both_partitions(self, key: int, first: int, count: int) -> None:
        for number in range(count):
            self.send(self.source.put(key), (first + number) % 2)

    @precondition(lambda self: self.source.keys)
    @rule(at=FEW, partition=PARTITIONS)
    def delete(self, at: int, partition: int) -> None:
        keys = self.source.keys
        self.send(self.source.delete(keys[at % len(keys)]), partition)

    @precondition(lambda self: self.source.keys)
    @rule(at=FEW, gone=PARTITIONS, come=PARTITIONS)
    def change_a_key(self, at: int, gone: int, come: int) -> None:
        keys = self.source.keys
        free = next(key for key in range(len(keys) + 1) if key not in keys)
        delete, tombstone, create = self.source.move(keys[at % len(keys)], free)
        self.send([delete, tombstone], gone)
        self.send([create], come)

    @rule(count=FEW, origin=PARTITIONS, partition=PARTITIONS)
    def send_the_last_again(self, count: int, origin: int, partition: int) -> None:
        end = self.source.topic.ends[origin]
        start = max(self.snapshot_events[origin], end - count)
        self.send(list(self.source.topic.events(origin, start)), partition)

    @precondition(lambda self: len(self.source.database.tables[0].columns) < 3 + COLUMNS_MAX)
    @rule(default=st.sampled_from([None, 5]))
    def add_a_column(self, default: int | None) -> None:
        width = len(self.source.database.tables[0].columns)
        self.source.add_column(f"added{width}", default)
