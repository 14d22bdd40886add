"""Metadata columns of whole tables: what each row says of its last change, however it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from lakesplice.table.files.dead_letters import (
    DeadLetterSelection,
    table_of,
    write_dead_letters,
)
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.intents import Ingest
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from tests.support.malformed import letter_of
from tests.support.shaped import Life, aged

ALL = Shape(metadata=tuple((f"m_{what}", what) for what in MetadataContent))


def lived(life: Life, steps: int, seed: int) -> list[Event]:
    """Rows that come, change and go, in the order of the source."""
    random = Random(seed)
    life.database.load("people", [(90 + at, "there", None, at) for at in range(3)])
    events = life.database.snapshot()
    for step in range(steps):
        keys = [key for key, _ in life.database.rows("people").items()]
        fate = random.random()
        if fate < 0.4 or not keys:
            life.database.insert("people", [(step, "name", "e@x", step)])
        elif fate < 0.9:
            age = random.randrange(3)
            life.database.update("people", [random.choice(keys)], aged(age))
        else:
            life.database.delete("people", [random.choice(keys)])
        events += life.database.drain()
    return events


def told(events: Sequence[Event]) -> dict[int, dict[str, Any]]:
    """Per row that lives what its last event says."""
    rows: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.value is None:
            continue
        payload = json.loads(event.value)["payload"]
        image, source = payload["after"] or payload["before"], payload["source"]
        rows[image["id"]] = {
            "m_op": payload["op"],
            "m_gtid": source["gtid"],
            "m_op_ts": datetime.fromtimestamp(source["ts_us"] // 1_000_000, UTC).replace(
                microsecond=source["ts_us"] % 1_000_000
            ),
            "m_database_name": "shop",
            "m_table_name": "people",
            "m_topic": event.topic,
        }
    return {key: row for key, row in rows.items() if row["m_op"] != "d"}


def found(life: Life) -> dict[int, dict[str, Any]]:
    return {
        row["id"]: {name: value for name, value in row.items() if name.startswith("m_")}
        for row in life.rows
    }


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 7, 1_000])
def test_rows_say_what_their_last_event_said_in_every_batching(
    tmp_path: Path, size: int, seed: int
) -> None:
    life = Life(tmp_path, ALL)
    events = lived(life, 30, seed)
    for start in range(0, len(events), size):
        life.take(*events[start : start + size])
        if start % 3 == 0:
            life.driver.compact()
    assert found(life) == told(events)
    life.driver.compact()
    assert found(life) == told(events)


@pytest.mark.slow
def test_events_that_come_again_change_nothing(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, ALL)
    events = lived(life, 40, seed)
    life.take(*events)
    before = life.rows
    life.take(*events[20:])
    life.driver.compact()
    assert life.rows == before
    again = Life(tmp_path / "again", ALL)
    again.take(*events[:30], *events[10:])
    assert found(again) == told(events)


@pytest.mark.slow
def test_a_snapshot_taken_twice_at_one_position_shows_when_it_was_read_first(
    tmp_path: Path,
) -> None:
    shown = []
    for together in (True, False):
        life = Life(tmp_path / str(together), ALL)
        life.database.load("people", [(1, "A", None, 1)])
        first, later = life.database.snapshot(), life.database.snapshot()
        if together:
            life.take(*first, *later)
        else:
            life.take(*first)
            life.take(*later)
        shown.append(life.rows[0]["m_op_ts"])
    assert shown[0] == shown[1] == told(first)[1]["m_op_ts"]


@pytest.mark.slow
def test_columns_that_come_later_are_null_until_a_row_changes(tmp_path: Path) -> None:
    life = Life(tmp_path, None)
    life.database.insert("people", [(1, "A", "a@x", 1), (2, "B", "b@x", 2)])
    life.take()
    life.drive(ALL)
    life.database.update("people", [(2,)], lambda row: (*row[:3], 3))
    life.take()
    life.driver.compact()
    first, second = life.rows
    assert (first["m_op_ts"], first["m_table_name"]) == (None, None)
    assert (second["m_op"], second["m_table_name"]) == ("u", "people")


@pytest.mark.slow
def test_columns_that_are_no_longer_read_park_or_are_null_in_changed_rows(tmp_path: Path) -> None:
    life = Life(tmp_path, ALL)
    life.database.insert("people", [(1, "A", "a@x", 1), (2, "B", "b@x", 2)])
    life.take()
    life.drive(None, SchemaPolicy(drop_column=Behaviour.LENIENT))
    life.database.update("people", [(2,)], lambda row: (*row[:3], 3))
    life.take()
    life.driver.compact()
    first, second = life.rows
    assert first["m_op"] == "c"
    assert {name: second[name] for name in found(life)[2]} == dict.fromkeys(found(life)[2])
    life.drive(Shape())
    strict = Life(tmp_path / "strict", ALL)
    strict.database.insert("people", [(1, "A", "a@x", 1)])
    strict.take()
    strict.drive(None)
    strict.database.insert("people", [(2, "A", "a@x", 1)])
    strict.take()
    assert strict.driver.table.parked is not None
    assert strict.driver.table.parked.code is ParkCode.SCHEMA_CHANGE


@pytest.mark.slow
def test_a_replayed_dead_letter_has_the_metadata_of_its_event(tmp_path: Path) -> None:
    life = Life(tmp_path, ALL)
    life.database.insert("people", [(1, "A", "a@x", 1), (2, "B", "b@x", 2)])
    events = life.database.drain()
    life.take(events[0])
    table, lost = life.driver.table, events[1]
    letters = table_of([letter_of(lost, 0, Offset(1))])
    ref = write_dead_letters(table.store, letters, SeededEntropy(100))
    table.commit(
        Ingest(1, table.version, {}, table.source, table.schema.version, dead_letters=(ref,))
    )
    assert table.snapshot is not None
    box = OpenDeadLetters(
        table.store, table.snapshot, table.commit, 1, FixedClock(), SeededEntropy(101)
    )
    assert box.replay(
        DeadLetterSelection(), RecordReading(table=life.driver.name, shape=ALL)
    ) == DeadLetterCounts(1)
    assert found(life) == told(events)


def test_a_metadata_column_of_a_sources_name_parks_the_table_and_says_what_to_set(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path, Shape(metadata=(("name", MetadataContent.TABLE_NAME),)))
    life.database.insert("people", [(1, "A", "a@x", 1)])
    life.take()
    parked = life.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.UNSUPPORTED
    assert "metadata.prefix" in parked.detail
