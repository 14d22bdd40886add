"""Row images that lack columns (`binlog_row_image` MINIMAL, NOBLOB), from a topic to its table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakesplice.formats.events import declare
from lakesplice.formats.manifests import encode_manifest
from lakesplice.model.names import SYSTEM_COLUMNS
from lakesplice.model.parking import ParkCode
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.evolution import Unfit, fit
from lakesplice.planning.schema.policy import Behaviour, PartialImages, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import DeadLetterSelection
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.reading.changes import changes_of
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from tests.support.partial_images import APPLY, COLUMNS, TOPIC, Life, Row, event, row


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


@pytest.mark.slow
def test_a_minimal_update_sets_what_it_has_and_leaves_the_rest(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(*(event("insert", at, row(at)) for at in (1, 2, 3)))
    life.take(event("update", 10, {"id": 2, "stock": 20}))
    life.take(event("update", 11, {"id": 2, "name": None}), event("delete", 12, {"id": 3}))
    life.require(row(1), row(2, stock=20, name=None))
    life.take(event("update", 20, {"id": 2, "notes": "new"}))
    life.take(event("update", 21, row(1, stock=7), {"stock": 1}))
    life.require(row(1, stock=7), row(2, stock=20, name=None, notes="new"))


@pytest.mark.slow
def test_by_default_a_partial_image_parks_and_says_which_setting_lets_it_continue(
    lake: LocalStore,
) -> None:
    life = Life(lake, SchemaPolicy())
    life.take(event("insert", 1, row(1)), event("update", 2, {"id": 1, "stock": 5}))
    parked = life.driver.table.parked
    assert parked is not None
    assert (parked.code, parked.offset) == (ParkCode.PARTIAL_IMAGE, 1)
    assert all(word in parked.detail for word in ("name, notes", "partial_images: apply"))
    assert life.rows == [row(1)]
    life.drive(APPLY, generation=2)
    table = life.driver.table
    assert table.snapshot is not None
    unparked = table.commit(Redirect(2, table.snapshot.version))
    assert isinstance(unparked, Committed)
    life.take()
    life.require(row(1, stock=5))


@pytest.mark.slow
def test_a_column_that_is_no_longer_declared_was_dropped(lake: LocalStore) -> None:
    policy = SchemaPolicy(partial_images=PartialImages.APPLY, drop_column=Behaviour.EVOLVE)
    life = Life(lake, policy)
    life.take(event("insert", 1, row(1)), event("update", 2, {"id": 1, "stock": 5}))
    fewer = {name: kind for name, kind in COLUMNS.items() if name != "notes"}
    life.drive(policy, generation=2, columns=fewer)
    life.take(event("update", 3, {"id": 1, "name": "renamed"}))
    assert life.driver.table.schema.shown == ("id", "name", "stock")
    found = [{name: one[name] for name in ("id", "name", "stock")} for one in life.rows]
    assert found == [{"id": 1, "name": "renamed", "stock": 5}]


@pytest.mark.slow
def test_a_late_change_sets_only_columns_without_a_newer_value(lake: LocalStore) -> None:
    life = Life(lake, partitions=3)
    life.take(event("insert", 1, row(1)))
    life.take(event("update", 20, {"id": 1, "stock": 20}))
    life.driver.compact()
    life.take(event("update", 10, {"id": 1, "stock": 10, "name": "late"}), partition=1)
    life.require(row(1, stock=20, name="late"))
    # A whole image is no other: it sets the columns that are older than it.
    life.take(event("update", 15, row(1, stock=15, name="x", notes="y"), {"stock": 1}), partition=1)
    life.require(row(1, stock=20, name="x", notes="y"))
    life.take(event("update", 12, {"id": 1, "name": "too late"}), partition=2)
    life.require(row(1, stock=20, name="x", notes="y"))


@pytest.mark.slow
def test_a_partial_image_restores_no_value_of_a_deleted_row(lake: LocalStore) -> None:
    life = Life(lake, partitions=3)
    life.take(event("insert", 1, row(1)), event("update", 2, {"id": 1, "stock": 2}))
    life.take(event("delete", 10, {"id": 1}))
    life.take(event("update", 20, {"id": 1, "stock": 20}), partition=1)  # of the row of 15
    life.require()
    life.take(event("update", 5, {"id": 1, "name": "old"}), partition=2)
    life.require()
    life.take(event("insert", 15, row(1, name="again")), partition=2)
    life.require(row(1, name="again", stock=20))


@pytest.mark.slow
def test_a_row_with_unknown_columns_is_hidden_until_all_are_known(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("update", 10, {"id": 1, "stock": 5}))
    assert life.driver.table.parked is None
    life.require()
    life.take(event("update", 11, {"id": 1, "name": None}))
    life.require()
    life.take(event("bootstrap-insert", 2, row(1, notes="told")), partition=1)
    life.require(row(1, stock=5, name=None, notes="told"))


@pytest.mark.slow
def test_an_insert_without_all_columns_is_a_dead_letter(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)), event("insert", 2, {"id": 2, "name": "x"}))
    assert life.letters == [("partial-insert", 1)]
    life.take(event("update", 3, {"id": 2, "stock": 5}))
    life.require(row(1))
    # So is the second half of an update of a key.
    life.take(event("update", 4, {"id": 9}, {"id": 1}))
    assert life.letters == [("partial-insert", 1), ("partial-insert", 3)]
    life.require(row(1))


@pytest.mark.slow
def test_a_reader_that_does_not_know_positions_of_columns_refuses_the_table(
    lake: LocalStore,
) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)))
    assert json.loads(encode_manifest(life.driver.table.manifest))["format"] == 1
    life.take(event("update", 2, {"id": 1, "stock": 5}))
    assert json.loads(encode_manifest(life.driver.table.manifest))["format"] == 12
    life.driver.compact()
    assert json.loads(encode_manifest(life.driver.table.manifest))["format"] == 4
    assert Table(life.store).schema.names == ["id", "name", "stock", "notes"]


@pytest.mark.slow
def test_the_feed_of_changes_has_rows_and_no_images_of_parts(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)))
    life.take(event("update", 2, {"id": 1, "stock": 5}))
    schema = life.driver.table.schema
    version = life.driver.table.version
    assert version is not None
    found = [
        one
        for part in changes_of(life.store, version, schema.shown, schema)
        for one in part.to_pylist()
    ]
    assert [{name: one[name] for name in COLUMNS} for one in found] == [row(1, stock=5)]
    assert found[0]["_change_type"] == "update_postimage"


@pytest.mark.slow
def test_a_purge_leaves_rows_of_which_something_is_known(lake: LocalStore) -> None:
    life = Life(lake, partitions=3)
    life.take(event("insert", 1, row(1)), partition=2)
    life.take(event("insert", 1, row(1)), event("insert", 2, row(2)))
    life.take(event("delete", 3, {"id": 1}), event("update", 4, {"id": 3, "stock": 5}))
    life.take(event("update", 9, {"id": 2, "stock": 9}))
    life.take(event("update", 9, {"id": 2, "stock": 9}), partition=1)
    life.take(event("update", 9, {"id": 2, "stock": 9}), partition=2)
    life.driver.compact()
    assert life.driver.purge(1 << 60) is not None
    kept = Table(life.store).read(include_deleted=True).column("id").to_pylist()
    assert sorted(kept) == [2, 3]
    life.take(event("update", 20, row(3), {"stock": 1}))
    life.require(row(2, stock=9), row(3))
    # What was purged can't come back by what is older, nor be seen by a part of it.
    life.take(event("update", 30, {"id": 1, "stock": 5}))
    life.take(event("update", 30, row(1)), partition=1)
    life.take(event("update", 31, {"id": 1, "stock": 6}), partition=2)
    life.require(row(1, stock=6), row(2, stock=9), row(3))
    life.driver.merge_files(2)
    life.require(row(1, stock=6), row(2, stock=9), row(3))


@pytest.mark.slow
def test_a_column_that_is_added_is_set_by_partial_images_like_any_other(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)), event("update", 2, {"id": 1, "stock": 2}))
    life.drive(generation=2, columns={**COLUMNS, "size": "int"})
    life.take(event("update", 3, {"id": 1, "name": "x"}))
    life.take(event("update", 5, {"id": 1, "size": 5}))
    life.take(event("update", 4, {"id": 1, "size": 4, "name": "y"}), partition=1)
    life.require(row(1, stock=2, name="y", size=5))
    life.take(event("insert", 6, row(2, size=None)))
    life.require(row(1, stock=2, name="y", size=5), row(2, size=None))


@pytest.mark.slow
def test_a_late_replay_sets_only_columns_without_a_newer_value(lake: LocalStore) -> None:
    narrow = {**COLUMNS, "size": "tinyint"}
    life = Life(lake, APPLY, columns=narrow)
    life.take(event("insert", 1, row(1, size=1)))
    life.take(event("update", 10, {"id": 1, "stock": 10, "size": 1_000}))
    life.take(event("update", 20, {"id": 1, "stock": 20}))
    life.driver.compact()
    assert life.letters == [("out-of-range", 1)]
    life.require(row(1, stock=20, size=1))
    table = life.driver.table
    for attempt in range(2):
        assert table.snapshot is not None
        entropy = SeededEntropy(9 + attempt)
        box = OpenDeadLetters(table.store, table.snapshot, table.commit, 1, FixedClock(), entropy)
        wider = declare({**COLUMNS, "size": "int"})
        reading = RecordReading(table=life.driver.name, declared=wider, policy=APPLY)
        assert box.replay(DeadLetterSelection(), reading) == (
            DeadLetterCounts() if attempt else DeadLetterCounts(1)
        )
        life.require(row(1, stock=20, size=1_000))


@pytest.mark.slow
def test_tables_that_never_met_a_partial_image_are_as_they_were(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)), event("update", 2, row(1, stock=5), {"stock": 1}))
    life.take(event("delete", 3, row(1)), event("insert", 4, row(2)))
    assert life.driver.table.schema.positions is None
    life.require(row(2))


@pytest.mark.slow
def test_other_readers_see_only_the_users_columns(tmp_path: Path) -> None:
    life = Life(LocalStore(str(tmp_path)))
    life.take(event("insert", 1, row(1)), event("insert", 2, row(2)))
    life.take(event("update", 3, {"id": 1, "stock": 5}), event("update", 4, {"id": 3, "stock": 5}))
    life.driver.compact()
    table = DeltaTable(str(tmp_path / "shop" / "items"))
    assert [field.name for field in table.schema().fields] == [*COLUMNS, *SYSTEM_COLUMNS]
    found = table.to_pyarrow_table(filters=[("_is_deleted", "=", False)]).select([*COLUMNS])
    assert sorted(found.to_pylist(), key=lambda one: one["id"]) == [row(1, stock=5), row(2)]


def of_canal(kind: str, data: Row, old: Row | None = None, key: str | None = "id") -> Event:
    """Canal's message, which has no position: the order is that of the records."""
    texts = {name: None if value is None else str(value) for name, value in data.items()}
    kinds = {"id": "int(11)", "name": "varchar(20)", "stock": "int(11)", "notes": "text"}
    value = {
        "id": 1, "database": "shop", "table": "items", "pkNames": [key] if key else None,
        "isDdl": False, "type": kind, "es": 1_000, "ts": 1_000, "sql": "",
        "sqlType": dict.fromkeys(texts, 4), "mysqlType": {name: kinds[name] for name in texts},
        "data": [texts], "old": None if old is None else [old],
    }  # fmt: skip
    return Event(TOPIC, None, json.dumps(value).encode(), (), 1_000)


@pytest.mark.slow
def test_canals_images_without_blobs_set_what_they_have(lake: LocalStore) -> None:
    life = Life(lake, partitions=1)
    without = {name: value for name, value in row(1, stock=5).items() if name != "notes"}
    life.take(of_canal("INSERT", row(1)), of_canal("UPDATE", without, {"stock": "1"}))
    life.require(row(1, stock=5))
    life.take(of_canal("UPDATE", row(1, notes=None), {"notes": "long text"}))
    life.require(row(1, notes=None))
    # Its minimal images of updates don't say which row they are of.
    life.take(of_canal("UPDATE", {"stock": 7}, {}, key=None))
    assert life.driver.table.parked is not None
    assert life.driver.table.parked.code is ParkCode.NO_KEY


def test_a_column_that_is_computed_of_what_is_unknown_parks_its_table() -> None:
    fields = tuple(SourceField(name, ColumnType(Primitive.LONG), "int") for name in ("id", "a"))
    omitted = (SourceField("b", ColumnType(Primitive.LONG), "int"),)
    image = SourceSchema(fields, ("id",), lacking=(("sum", "b"),), omitted=omitted)
    for policy in (APPLY, replace(APPLY, drop_column=Behaviour.EVOLVE)):
        verdict = fit(TableSchema(), image, policy)
        assert isinstance(verdict, Unfit)
        assert verdict.code is ParkCode.UNSUPPORTED
        assert "'sum' needs column='b'" in verdict.detail
