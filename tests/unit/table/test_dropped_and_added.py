"""Columns that are dropped while others are added, in one statement or one batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakesplice.config.sections.schema_changes import SchemaChangeSettings, policy_of
from lakesplice.formats.events import TypeHistory
from lakesplice.formats.events.ddl import TableDrop
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.sources.dropped_tables import DropHistory
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.dropped_tables import restart_without_columns, waits_for_new_columns
from lakesplice.testing.shop import Event
from tests.support.altered import Life, event, told_by
from tests.support.steps import redirect

OLD = {"id": "int32", "a": "int32", "b": "int32"}
NEW = {"id": "int32", "a": "int32", "c": "int32"}
CREATED = (1, "CREATE TABLE t (id int primary key, a int, b int)")
AT_ONCE = told_by(CREATED, (20, "ALTER TABLE t DROP b, ADD c int NOT NULL DEFAULT 5"))
ONE_BY_ONE = told_by(
    CREATED, (20, "ALTER TABLE t DROP b"), (21, "ALTER TABLE t ADD c int NOT NULL DEFAULT 5")
)
ADDED_FIRST = told_by(
    CREATED, (20, "ALTER TABLE t ADD c int NOT NULL DEFAULT 5"), (21, "ALTER TABLE t DROP b")
)
EVOLVE, TRY, LENIENT = Behaviour.EVOLVE, Behaviour.TRY_EVOLVE, Behaviour.LENIENT


def _policy(all_: Behaviour) -> SchemaPolicy:
    return SchemaPolicy(add_column=all_, rename_column=all_, drop_column=all_)


def _before(id_: int) -> Event:
    return event(OLD, id_, {"id": id_, "a": id_, "b": 10 * id_})


EVENTS = [
    _before(2),
    _before(3),
    event(OLD, 7, {"id": 3, "a": 33, "b": 30}, {"id": 3, "a": 3, "b": 30}),
    event(NEW, 30, {"id": 4, "a": 4, "c": 40}),
    event(NEW, 31, {"id": 2, "a": 2, "c": 6}, {"id": 2, "a": 2, "c": 5}),
]


@pytest.mark.parametrize("history", [AT_ONCE, ONE_BY_ONE, ADDED_FIRST])
@pytest.mark.parametrize(
    "cut", [2, *(pytest.param(at, marks=pytest.mark.slow) for at in (0, 1, 3, 4, 5))]
)
def test_a_column_reported_as_added_is_no_rename_of_a_dropped_one(
    tmp_path: Path, history: TypeHistory, cut: int
) -> None:
    life = Life(LocalStore(tmp_path), history, _policy(EVOLVE))
    life.take(*EVENTS[:cut])
    life.take(*EVENTS[cut:])
    life.take(_before(5), partition=1)
    assert life.parked == ""
    expected = [(2, 2, 6), (3, 33, 5), (4, 4, 40), (5, 5, 5)]
    assert [(r["id"], r["a"], r["c"]) for r in life.rows()] == expected
    life.driver.compact()
    assert [(r["id"], r["a"], r["c"]) for r in life.rows()] == expected
    assert all("b" not in row for row in life.rows())


def test_an_unreported_change_parks_and_the_advice_names_a_setting_that_is_not_set(
    tmp_path: Path,
) -> None:
    life = Life(LocalStore(tmp_path), None, _policy(EVOLVE))
    life.take(*EVENTS)
    assert "set schema_change_topics;" in life.parked
    assert "rename_column: evolve" not in life.parked


@pytest.mark.slow
@pytest.mark.parametrize("history", [None, AT_ONCE])
@pytest.mark.parametrize("then", [TRY, LENIENT])
def test_rows_get_the_default_after_another_policy_and_unpark(
    tmp_path: Path, history: TypeHistory | None, then: Behaviour
) -> None:
    first = SchemaPolicy(rename_column=Behaviour.EXCEPTION, drop_column=Behaviour.EXCEPTION)
    life = Life(LocalStore(tmp_path), history, first)
    life.take(*EVENTS)
    assert life.parked
    redirect(life.driver, parked=None)
    life.driver._policy = SchemaPolicy(rename_column=then, drop_column=then)
    life.driver.batch()
    assert life.parked == ""
    rows: list[dict[str, Any]] = life.rows()
    assert [(r["id"], r["a"], r["c"]) for r in rows] == [(2, 2, 6), (3, 33, 5), (4, 4, 40)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("history", "columns"),
    [
        (None, {"b": [None, 20], "c": [40, 5]}),
        (AT_ONCE, {"b": [None, 20], "c": [40, 5]}),
        (
            told_by(CREATED, (20, "ALTER TABLE t RENAME COLUMN b TO c")),
            {"b": [40, 20], "c": [40, 20]},
        ),
    ],
    ids=["untold", "told-apart", "told-rename"],
)
def test_by_default_a_table_continues_and_loses_nothing(
    tmp_path: Path, history: TypeHistory | None, columns: dict[str, list[int | None]]
) -> None:
    life = Life(LocalStore(tmp_path), history, policy_of(SchemaChangeSettings(), None))
    life.take(_before(2))
    life.take(event(NEW, 30, {"id": 1, "a": 1, "c": 40}))
    assert life.parked == ""
    found = life.rows()
    names = found[0].keys() - {"id", "a"}
    assert {name: [row[name] for row in found] for name in names} == columns


def _keyed(told: Event, name: str) -> Event:
    """The event as of a table with another key."""
    after = json.loads(told.value or b"")["payload"]["after"]
    fields = [{"field": name, "type": "int32"}]
    key = {"schema": {"type": "struct", "fields": fields}, "payload": {name: after[name]}}
    return told._replace(key=json.dumps(key).encode())


def _again(pos: int, id_: int, a: int) -> Event:
    return _keyed(event(NEW, pos, {"id": id_, "a": a, "c": 1}), "a")


@pytest.mark.slow
@pytest.mark.parametrize("read_before", [True, False])
def test_a_table_made_again_with_another_key_begins_again_once_its_drop_is_followed(
    tmp_path: Path, read_before: bool
) -> None:
    life = Life(LocalStore(tmp_path), None)
    life.take(_before(2), _before(3))
    if not read_before:
        life.topic.append(0, [_before(4)])
    drop = TableDrop(0, Position.of(0, 1, 20, 0, 0), again=True)
    assert life.driver.drops(DropHistory((drop,))) is not None
    life.topic.append(0, [_again(30, 7, 1), _again(31, 7, 2)])
    life.driver.batch()
    assert life.parked.startswith(ParkCode.KEY_CHANGED)
    assert waits_for_new_columns(life.driver.table)
    assert restart_without_columns(life.driver.table)
    assert not waits_for_new_columns(life.driver.table)
    life.driver.batch()
    assert life.parked == ""
    assert [tuple(row.values()) for row in life.rows()] == [(7, 1, 1), (7, 2, 1)]
    life.driver.compact()
    assert len(life.rows()) == 2


def test_another_key_parks_while_rows_of_the_former_live(tmp_path: Path) -> None:
    life = Life(LocalStore(tmp_path), None)
    life.take(_before(2))
    life.topic.append(0, [_again(30, 7, 1)])
    life.driver.batch()
    assert life.parked.startswith(ParkCode.KEY_CHANGED)
    assert not waits_for_new_columns(life.driver.table)
