"""A source with `binlog_row_image` MINIMAL: its events come late, twice and in any batches, and the
final table equals the source. A row of which not all columns are known is hidden.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import declare
from lakesplice.model.offsets import Offset
from lakesplice.planning.schema.policy import PartialImages, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.drawing import examples
from tests.support.simulated import memory_folder, rows_of

TOPIC = "maxwell.shop.items"
COLUMNS = {"id": "int", "a": "int", "b": "string", "c": "bigint"}
POLICY = SchemaPolicy(partial_images=PartialImages.APPLY)
Row = dict[str, Any]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "whole", "delete"]),
        st.integers(1, 3),
        st.sets(st.sampled_from("abc"), min_size=1),
        st.sampled_from([(0,), (1,), (0, 1)]),
    ),
    min_size=1,
    max_size=16,
)
CUTS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans(), st.booleans()), max_size=4
)


class Source:
    """A table and the events that Maxwell makes of its changes; some rows were there before."""

    def __init__(self, topic: SimulatedTopic) -> None:
        self.topic = topic
        self.rows: dict[int, Row] = {3: {"id": 3, "a": 0, "b": "before", "c": 0}}
        self.told: set[int] = set()
        self.position = 0

    def step(self, kind: str, key: int, names: set[str], partitions: tuple[int, ...]) -> None:
        self.position += 1
        number = self.position
        values: Row = {"a": number, "b": f"v{number}", "c": None if number % 3 else number}
        row = self.rows.get(key)
        if kind == "delete":
            if row is not None:
                del self.rows[key]
                self.tell("delete", {"id": key}, partitions)
            self.told.discard(key)
        elif row is None:
            self.rows[key] = {"id": key, **values}
            self.told.add(key)
            self.tell("insert", self.rows[key], partitions)
        else:
            changed = values if kind == "whole" else {name: values[name] for name in sorted(names)}
            self.rows[key] = row | changed
            if len(changed) == len(values):
                self.told.add(key)
            self.tell("update", {"id": key, **changed}, partitions)

    def tell(self, kind: str, data: Row, partitions: tuple[int, ...]) -> None:
        value = {
            "database": "shop", "table": "items", "type": kind, "ts": self.position, "xid": 1,
            "xoffset": 0, "position": f"binlog.000001:{self.position}",
            "primary_key_columns": ["id"], "data": data,
        }  # fmt: skip
        spelt = json.dumps(value, separators=(",", ":")).encode()
        for partition in partitions:
            self.topic.append(partition, [Event(TOPIC, b"{}", spelt, (), 1)])


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, CUTS, st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_a_table_ends_as_its_source_whose_row_images_are_minimal(
    steps: list[tuple[str, int, set[str], tuple[int, ...]]],
    cuts: list[tuple[int, int, bool, bool]],
    again: tuple[int, int],
) -> None:
    topic = SimulatedTopic(TOPIC, 2)
    source = Source(topic)
    for step in steps:
        source.step(*step)
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        driver = _driver(LocalStore(folder), topic, 1)
        for first, second, compacts, dies in cuts:
            assert driver.batch(driver.ends_near(first, second)) is CommitOutcome.DONE
            if compacts:
                driver.compact()
            if dies:
                driver = _driver(LocalStore(folder), topic, 1 + driver.table.generation)
        assert driver.batch() is CommitOutcome.DONE
        _require(source, driver)
        driver.compact()
        _require(source, driver, *View)
        driver.merge_files(2)
        _go_back(driver, again)
        assert driver.batch() is CommitOutcome.DONE
        _require(source, driver)
        driver.compact()
        _require(source, driver, *View)


def _go_back(driver: SimulatedDriver, offsets: tuple[int, int]) -> None:
    """Let the table be read again from these offsets on, as `unpark --from-offset` does."""
    table = driver.table
    assert table.snapshot is not None
    states = {
        number: replace(
            state,
            next_offset=Offset(min(offsets[number], state.next_offset)),
            met_until=max(state.met_until, state.next_offset),
        )
        for number, state in table.source.partitions.items()
    }
    source = replace(table.source, partitions=states)
    outcome = table.commit(Redirect(table.generation, table.snapshot.version, source))
    assert isinstance(outcome, Committed)


def _driver(lake: LocalStore, topic: SimulatedTopic, generation: int) -> SimulatedDriver:
    return SimulatedDriver(
        lake,
        topic,
        FixedClock(),
        SeededEntropy(generation),
        generation=generation,
        ranges=2,
        read_tasks=2,
        declared=declare(COLUMNS),
        policy=POLICY,
    )


def _require(source: Source, driver: SimulatedDriver, *views: View) -> None:
    """Every row that was told whole is there, and none that wasn't, unless its parts are all."""
    assert driver.table.parked is None
    for view in views or (View.REAL_TIME,):
        found = {row["id"]: row for row in rows_of(driver.table.store, view)}
        for key, row in found.items():
            assert source.rows[key] == row
        assert source.told & source.rows.keys() <= found.keys()
    assert check(driver.table.store, Table(driver.table.store).snapshot).sound
