"""A table without a key, whose rows are identified by columns that the configuration names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, decode
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.ledgers import Ledger
from tests.unit.planning.test_intake import records


class Scene:
    """A ledger whose events have no keys, as those of a table without one."""

    def __init__(self, folder: Path, key: tuple[str, ...]) -> None:
        self.ledger = Ledger("chosen", "key")
        self.topic = SimulatedTopic(self.ledger.topic)
        self.driver = SimulatedDriver(
            LocalStore(folder), self.topic, FixedClock(), SeededEntropy(1), key=key
        )
        self.store = LocalStore(folder / self.driver.name.path)

    def take(self, events: Iterable[Event]) -> None:
        """Read the events without their keys; a source without a key sends no tombstones either."""
        kept = [event._replace(key=None) for event in events if event.value is not None]
        self.topic.append(0, kept)
        self.driver.batch()

    def holds(self, expected: list[dict[str, Any]]) -> None:
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        for view in View:
            found = Table(self.store).read(view).sort_by("id").to_pylist()
            assert found == expected


def with_id(event: Event, to: int) -> Event:
    """An update that changes the key's columns, which the source doesn't know for a key."""
    record = json.loads(event.value or b"")
    record["payload"]["after"]["id"] = to
    return event._replace(value=json.dumps(record).encode())


@pytest.mark.slow
def test_rows_are_identified_by_the_chosen_columns(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ("text", "id"))
    scene.take(scene.ledger.insert(0, 10))
    scene.take(scene.ledger.update(range(4), "renamed") + scene.ledger.delete([2, 5]))
    scene.holds(scene.ledger.truth.sort_by("id").to_pylist())
    assert scene.driver.table.schema.key == ("text", "id")


@pytest.mark.slow
def test_an_update_of_the_chosen_columns_moves_the_row(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ("id",))
    scene.take(scene.ledger.insert(0, 3))
    (update,) = scene.ledger.update([1], "moved")
    scene.take([with_id(update, 77)])
    truth = scene.ledger.truth.sort_by("id").to_pylist()
    truth[1]["id"] = 77
    scene.holds(sorted(truth, key=lambda row: int(row["id"])))


def test_without_columns_chosen_the_table_parks_and_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ())
    scene.take(scene.ledger.insert(0, 3))
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.NO_KEY
    assert "`key` under `tables`" in parked.detail


def test_a_chosen_column_that_is_not_in_the_row_parks_too(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ("nowhere",))
    scene.take(scene.ledger.insert(0, 3))
    parked = scene.driver.table.parked
    assert parked is not None
    assert (parked.code, "nowhere" in parked.detail) == (ParkCode.NO_KEY, True)


def test_a_null_in_a_chosen_column_is_a_dead_letter() -> None:
    source = Ledger("chosen", "key")
    (named,), (unnamed,) = source.insert(0, 1), source.insert(1, 2)
    record = json.loads(unnamed.value or b"")
    record["payload"]["after"]["text"] = None
    batch = records(
        [(None, b"{"), (None, named.value), (None, json.dumps(record).encode()), (None, b"")]
    )
    decoded = decode(batch, DecodeContext(TableName("key", "ledger"), key=("text",)))
    assert decoded.dead.rows.tolist() == [0, 2, 3]
    assert decoded.dead.reason[1] == "missing-key"
    assert [block.rows.tolist() for block in decoded.blocks] == [[1]]
    assert {block.schema.key for block in decoded.blocks} == {("text",)}
