"""A repair of rows that dies or fails at any write leaves them as they were, or as they must be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.planning.intake.line import RecordReading
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.read_rows_commit import RepairedRows, RowRepair
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import Source, driver_of, folder, rows_of

WRITES = ("put_new", "writer", "delete")
GONE, CHANGED, NEW = 3, 2, 9


class Repaired:
    """A table of four rows, of which a repair changes one, deletes one and adds one."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, Source()
        self.driver = self.drive(LocalStore(path))
        for key in (1, CHANGED, GONE, 4):
            self.source.topic.append(0, self.source.put(key))
        self.driver.batch()
        self.before = self.rows()
        held = {row["id"]: row for row in self.before}
        changed = {**held[CHANGED], "name": "as it is"}
        self.wanted = [held[1], changed, held[4], {**held[4], "id": NEW}]
        present = self.images(changed, self.wanted[-1])
        position = max(at.position for at in self.driver.table.source.partitions.values())
        above = type(position)(position.file, position.offset + 1_000)
        self.repair = RepairedRows(
            self.source.topic.name, above, EpochMs(0), present, self.images(held[GONE])
        )

    def images(self, *rows: dict[str, Any]) -> pa.Table:
        schema = self.driver.table.schema
        fields = [(column.source_name, column.type.arrow) for column in schema.columns]
        named = [
            {column.source_name: row[column.name] for column in schema.columns} for row in rows
        ]
        return pa.Table.from_pylist(named, pa.schema(fields))

    def drive(self, lake: Store, generation: int = 1) -> SimulatedDriver:
        return driver_of(self.source, lake, generation=generation, seed=generation)

    def rows(self) -> list[dict[str, Any]]:
        return rows_of(LocalStore(self.path).within(self.driver.name.path))

    def lay_over(self, driver: SimulatedDriver, seed: int) -> None:
        table = driver.table
        assert table.snapshot is not None
        reading = RecordReading(table=driver.name)
        work = RowRepair(
            table.store,
            table.snapshot,
            table.commit,
            table.generation,
            FixedClock(),
            SeededEntropy(seed),
        )
        work.commit_rows(self.repair, reading)


def broken_off(lake_of: Callable[[Store], Store]) -> FaultyStore | None:
    with folder() as path:
        life = Repaired(path)
        store = lake_of(LocalStore(path))
        with suppress(Crash, StorageError):
            life.lay_over(life.drive(store), 11)
        assert life.rows() in (life.before, life.wanted)
        driver = life.drive(LocalStore(path), generation=2)
        life.lay_over(driver, 12)
        assert life.rows() == life.wanted
        life.source.topic.append(0, list(life.source.topic.events(0)))
        driver.batch()
        assert life.rows() == life.wanted, "what is sent again is older"
        life.source.topic.append(0, life.source.put(1))
        driver.batch()
        driver.compact()
        assert [row["id"] for row in life.rows()] == [1, CHANGED, 4, NEW]
        assert life.rows()[1:] == life.wanted[1:]
        assert driver.table.snapshot is not None
        report = check(driver.table.store, driver.table.snapshot)
        assert report.sound, report
        return store if isinstance(store, FaultyStore) else None


@cache
def calls() -> tuple[Call, ...]:
    store = broken_off(FaultyStore)
    assert store is not None
    return store.calls


@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST])
def test_a_repair_may_die_or_fail_at_any_write(
    how: How, seed: int, request: pytest.FixtureRequest
) -> None:
    """In the gate each way of failing tries every third write, by the seed, nightly every one."""
    numbers = [call.number for call in calls() if call.method in WRITES]
    assert len(numbers) > 3
    step = 1 if request.config.getoption("--nightly") else 3
    for number in numbers[(seed + list(How).index(how)) % step :: step]:
        broken_off(partial(FaultyStore, faults=[Fault.at(number, how)]))
