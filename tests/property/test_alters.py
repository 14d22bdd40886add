"""ALTERs at any position among changes, which arrive late and in any batches: the final table
equals the source, and a history table has all versions, in the columns that there are at last.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.model.position import Position
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.altered import DEFAULTS, TOPIC, event
from tests.support.drawing import examples
from tests.support.simulated import memory_folder

POLICY = SchemaPolicy(drop_column=Behaviour.EVOLVE, rename_column=Behaviour.EVOLVE)
# Of each step the next keeps every value; the third is narrower than the second.
TYPES = ("int16", "int64", "int32", "string")
NAMES = ("name", "called", "titled")
KEYS = st.integers(1, 4)
Row = dict[str, Any]

STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS),
    st.tuples(st.just("put"), KEYS),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.sampled_from(["retype", "add", "drop", "rename"]), st.just(0)),
)


@dataclass
class Source:
    """A table of MySQL as its ALTERs leave it, and the event of each change.

    After each ALTER a row changes: what no event shows nobody can follow.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    columns: dict[str, str] = field(
        default_factory=lambda: {"id": "int32", "n": TYPES[0], "name": "string"}
    )
    to_add: list[str] = field(default_factory=lambda: list(DEFAULTS))
    events: list[Event] = field(default_factory=list)
    types: int = 0
    names: list[str] = field(default_factory=lambda: ["name"])
    renamed_at: list[int] = field(default_factory=list)
    versions: dict[int, list[Row]] = field(default_factory=dict)

    @property
    def all_rows(self) -> list[Row]:
        """The rows as they are and as they were, which an ALTER changes alike."""
        return [*self.rows.values(), *(row for was in self.versions.values() for row in was)]

    @property
    def history(self) -> TypeHistory:
        """What the connector tells of renames, with the places from which on they count."""
        versions = [
            TypeVersion(
                Position.of(0, 1, place, 0, 0),
                formerly={name: tuple(self.names[:at][::-1])},
                later={name: tuple(self.names[at + 1 :])},
            )
            for at, (place, name) in enumerate(zip((0, *self.renamed_at), self.names, strict=True))
        ]
        return TypeHistory(tuple(versions))

    def step(self, kind: str, key: int) -> None:
        if kind == "put":
            self.put(key)
        elif kind == "delete" and key in self.rows:
            self._tell(None, self.rows.pop(key))
        elif kind in ("retype", "add", "drop", "rename"):
            self._alter(kind)
            self.put(0)

    def put(self, key: int) -> None:
        """Insert the row, or change one of its columns."""
        number = len(self.events)
        value = {
            name: str(number) if kind == "string" else number for name, kind in self.columns.items()
        }
        before = self.rows.get(key)
        if before is None:
            after = value | {"id": key}
        else:
            names = [name for name in self.columns if name != "id"]
            name = names[number % len(names)]
            after = before | {name: None if number % 3 == 0 else value[name]}
        self.rows[key] = after
        self.versions.setdefault(key, []).append(dict(after))
        self._tell(after, before)

    def _alter(self, kind: str) -> None:
        if kind == "retype" and self.types + 1 < len(TYPES):
            self.types += 1
            self.columns["n"] = TYPES[self.types]
            for row in self.all_rows:
                text = TYPES[self.types] == "string" and row["n"] is not None
                row["n"] = str(row["n"]) if text else row["n"]
        elif kind == "add" and self.to_add:
            name = self.to_add.pop(0)
            self.columns[name] = "int32"
            for row in self.all_rows:
                row[name] = DEFAULTS[name]["default"]
        elif kind == "drop" and (added := [name for name in self.columns if name in DEFAULTS]):
            del self.columns[added[0]]
            for row in self.all_rows:
                del row[added[0]]
        elif kind == "rename":
            old, new = self.names[-1], NAMES[len(self.names) % len(NAMES)]
            self.names.append(new)
            self.renamed_at.append(len(self.events) + 1)
            self.columns = {new if n == old else n: of for n, of in self.columns.items()}
            for row in self.all_rows:
                row[new] = row.pop(old)

    def _tell(self, after: Row | None, before: Row | None) -> None:
        self.events.append(event(self.columns, len(self.events) + 1, after, before))


@contextmanager
def driven(
    topic: SimulatedTopic, history: TypeHistory, *, keeps_versions: bool
) -> Iterator[SimulatedDriver]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        lake = LocalStore(folder)
        yield SimulatedDriver(
            lake,
            topic,
            FixedClock(),
            SeededEntropy(1),
            ranges=2,
            read_tasks=2,
            policy=POLICY,
            history=history,
            keeps_versions=keeps_versions,
        )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.booleans(),
    st.lists(STEPS, min_size=1, max_size=14),
    st.lists(st.integers(0, 1), min_size=40, max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=4),
)
def test_a_table_ends_as_its_source_whatever_alters_it(
    keeps_versions: bool,
    steps: list[tuple[str, int]],
    partitions: list[int],
    cuts: list[tuple[int, int, bool]],
) -> None:
    source, topic = Source(), SimulatedTopic(TOPIC, 2)
    for kind, key in steps:
        source.step(kind, key)
    source.put(0)
    for made, partition in zip(source.events, partitions, strict=False):
        topic.append(partition, [made])
    with driven(topic, source.history, keeps_versions=keeps_versions) as driver:
        for first, second, compacts in cuts:
            assert driver.batch(driver.ends_near(first, second)) is CommitOutcome.DONE
            if compacts:
                driver.compact()
        assert driver.batch() is CommitOutcome.DONE
        require = require_versions if keeps_versions else require_as
        require(source, driver)
        driver.compact()
        require(source, driver)


def require_as(source: Source, driver: SimulatedDriver) -> None:
    """Every row has what the source has under every name."""
    assert driver.table.parked is None
    found = Table(driver.table.store).read()
    assert one_each(named(found, driver)) == comparable(source.rows)


def require_versions(source: Source, driver: SimulatedDriver) -> None:
    """Current rows are the source's, and versions the states that rows have had; of states that
    follow one another without a difference one counts.
    """
    assert driver.table.parked is None
    table = Table(driver.table.store)
    current = table.read_history(current=True)
    assert one_each(named(current, driver)) == comparable(source.rows)
    found: dict[int, list[Row]] = {}
    for row in named(table.read_history(), driver):
        found.setdefault(row["id"], []).append(row)
    states = {key: [as_text(row) for row in was] for key, was in source.versions.items()}
    assert {k: distinct(was) for k, was in found.items()} == {
        k: distinct(was) for k, was in states.items()
    }


def named(rows: pa.Table, driver: SimulatedDriver) -> list[Row]:
    """The rows under the names of the source's columns."""
    columns = driver.table.schema.by_source.items()
    return [
        as_text({name: row[column.name] for name, column in columns if not column.of_change})
        for row in rows.to_pylist()
    ]


def one_each(rows: list[Row]) -> dict[int, Row]:
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def comparable(rows: dict[int, Row]) -> dict[int, Row]:
    return {key: as_text(row) for key, row in rows.items()}


def as_text(row: Row) -> Row:
    """A narrower type, and an ALTER undone before the table saw it, leave the wider one."""
    return {**row, "n": None if row["n"] is None else str(row["n"])}


def distinct(states: list[Row]) -> list[Row]:
    return [state for at, state in enumerate(states) if not at or state != states[at - 1]]
