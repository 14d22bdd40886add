"""Row images that lack columns (`binlog_row_image` MINIMAL, NOBLOB), from a topic to its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
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
from lakesplice.model.types import ColumnType, Kind
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.evolution import Unfit, fit
from lakesplice.planning.schema.policy import Behaviour, PartialImages, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import DeadLetterSelection, dead_letters_of
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.reading.changes import changes_of
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support import altered
from tests.support.simulated import rows_of

TOPIC = "maxwell.shop.items"
COLUMNS = {"id": "int", "name": "string", "stock": "int", "notes": "text"}
APPLY = SchemaPolicy(partial_images=PartialImages.APPLY)
Row = dict[str, Any]


def event(kind: str, position: int, data: Row, old: Row | None = None) -> Event:
    """Maxwell's event at a place of the binlog; of a row image `data` has what was in it."""
    value = {
        "database": "shop",
        "table": "items",
        "type": kind,
        "ts": 1_000 + position,
        "xid": position,
        "xoffset": 0,
        "position": f"binlog.000001:{position}",
        "primary_key_columns": ["id"],
        "data": data,
    }
    if old is not None:
        value["old"] = old
    key = {"database": "shop", "table": "items", "pk.id": data["id"]}
    spelt = [json.dumps(part, separators=(",", ":")).encode() for part in (key, value)]
    return Event(TOPIC, spelt[0], spelt[1], (), 1_000 + position)


def row(id_: int, **values: object) -> Row:
    return {"id": id_, "name": f"item {id_}", "stock": id_, "notes": "long text", **values}


class Life:
    """A topic of some partitions and its driver."""

    def __init__(
        self,
        lake: LocalStore,
        policy: SchemaPolicy = APPLY,
        partitions: int = 2,
        columns: Mapping[str, str] = COLUMNS,
    ) -> None:
        self.topic = SimulatedTopic(TOPIC, partitions)
        self.lake, self.store = lake, lake.within("shop/items")
        self.drive(policy, columns=columns)

    def drive(
        self,
        policy: SchemaPolicy = APPLY,
        generation: int = 1,
        columns: Mapping[str, str] = COLUMNS,
    ) -> None:
        self.driver = SimulatedDriver(
            self.lake,
            self.topic,
            FixedClock(),
            SeededEntropy(generation),
            ranges=2,
            read_tasks=2,
            declared=declare(columns),
            policy=policy,
            generation=generation,
        )

    def take(self, *events: Event, partition: int = 0) -> None:
        self.topic.append(partition, events)
        outcome = self.driver.batch()
        assert getattr(outcome, "name", outcome) == "DONE", outcome

    @property
    def rows(self) -> list[Row]:
        return rows_of(self.store)

    def require(self, *rows: Row) -> None:
        """Both ways to read, before and after compaction, show these rows; the index is sound."""
        assert self.driver.table.parked is None
        assert self.rows == [*rows]
        self.driver.compact()
        assert self.rows == [*rows]
        assert rows_of(self.store, View.READ_OPTIMISED) == [*rows]
        assert check(self.store, Table(self.store).snapshot).sound

    @property
    def letters(self) -> list[tuple[str, int]]:
        found = dead_letters_of(self.store, self.driver.table.manifest.dead_letters)
        return [(letter.reason, letter.offset) for letter in found]


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


def test_a_minimal_update_sets_what_it_has_and_leaves_the_rest(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(*(event("insert", at, row(at)) for at in (1, 2, 3)))
    life.take(event("update", 10, {"id": 2, "stock": 20}))
    life.take(event("update", 11, {"id": 2, "name": None}), event("delete", 12, {"id": 3}))
    life.require(row(1), row(2, stock=20, name=None))
    life.take(event("update", 20, {"id": 2, "notes": "new"}))
    life.take(event("update", 21, row(1, stock=7), {"stock": 1}))
    life.require(row(1, stock=7), row(2, stock=20, name=None, notes="new"))


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


def test_a_row_with_unknown_columns_is_hidden_until_all_are_known(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("update", 10, {"id": 1, "stock": 5}))
    assert life.driver.table.parked is None
    life.require()
    life.take(event("update", 11, {"id": 1, "name": None}))
    life.require()
    life.take(event("bootstrap-insert", 2, row(1, notes="told")), partition=1)
    life.require(row(1, stock=5, name=None, notes="told"))


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


def test_tables_that_never_met_a_partial_image_are_as_they_were(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event("insert", 1, row(1)), event("update", 2, row(1, stock=5), {"stock": 1}))
    life.take(event("delete", 3, row(1)), event("insert", 4, row(2)))
    assert life.driver.table.schema.positions is None
    life.require(row(2))


GONE = "__debezium_unavailable_value"
CONNECT = {"id": "int32", "n": "int32", "name": "string"}


class DebeziumLife(Life):
    """A topic of Debezium's events, whose placeholder says what wasn't in the row image."""

    def __init__(self, lake: LocalStore, policy: SchemaPolicy = APPLY) -> None:
        self.topic = SimulatedTopic(altered.TOPIC, 3)
        self.lake, self.store = lake, lake.within("s/t")
        self.driver = SimulatedDriver(
            lake, self.topic, FixedClock(), SeededEntropy(1), ranges=2, read_tasks=2, policy=policy
        )


def tell(position: int, after: Row | None, before: Row | None = None) -> Event:
    return altered.event(CONNECT, position, after, before)


def truncate(position: int) -> Event:
    event = tell(position, None, {"id": 0, "n": 0, "name": ""})
    record = json.loads(event.value or b"")
    record["payload"].update(op="t", before=None, after=None)
    return event._replace(key=None, value=json.dumps(record).encode())


def told(id_: int, n: int | None, name: str | None = GONE) -> Row:
    return {"id": id_, "n": n, "name": name}


def test_a_value_that_debezium_marks_as_unknown_is_unchanged_or_parks(tmp_path: Path) -> None:
    life = DebeziumLife(LocalStore(str(tmp_path / "applies")))
    life.take(tell(1, told(1, 1, "one")), tell(2, told(1, 2), told(1, 1)))
    life.require(told(1, 2, "one"))
    life.take(tell(3, told(1, 2, None), told(1, 2)), tell(4, told(1, 4), told(1, 2)))
    life.require(told(1, 4, None))
    life.take(tell(5, None, told(1, 4)))
    life.require()
    parks = DebeziumLife(LocalStore(str(tmp_path / "parks")), SchemaPolicy())
    parks.take(tell(1, told(1, 1, "one")), tell(2, told(1, 2), told(1, 1)))
    assert parks.driver.table.parked is not None
    assert parks.driver.table.parked.code is ParkCode.PARTIAL_IMAGE
    born = DebeziumLife(LocalStore(str(tmp_path / "born")), SchemaPolicy())
    born.take(tell(2, told(1, 2), told(1, 1)))
    assert born.driver.table.parked is not None
    assert born.driver.table.parked.code is ParkCode.PARTIAL_IMAGE


# Positions of one partition rise, those of the others come as they like.
# Every gate tries each order, half of them with compactions.
ORDERS = [
    pytest.param(order, compacts, marks=[] if at % 2 == compacts else [pytest.mark.nightly])
    for at, order in enumerate(permutations(range(4)))
    if order.index(0) < order.index(3)
    for compacts in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("order", "compacts"), ORDERS)
def test_no_value_from_before_a_truncate_is_combined_with_later_ones(
    lake: LocalStore, order: tuple[int, ...], compacts: bool
) -> None:
    life = DebeziumLife(lake)
    life.take(tell(1, told(2, 2, "other")), partition=2)
    steps = [
        (tell(5, told(1, 5, "before")), 0),
        (truncate(10), 1),
        (tell(20, told(1, 20), told(1, 15)), 2),
        (tell(15, told(1, 15, "after")), 0),
    ]
    for done, at in enumerate(order, 1):
        event, partition = steps[at]
        life.take(event, partition=partition)
        if compacts:
            life.driver.compact()
        if {0, 1, 2} <= set(order[:done]) and 3 not in order[:done]:
            life.require()
    life.require(told(1, 20, "after"))


def test_changes_of_one_batch_that_a_truncate_stands_between(lake: LocalStore) -> None:
    life = DebeziumLife(lake)
    life.take(truncate(10), partition=1)
    life.take(tell(5, told(1, 5, "before")), tell(20, told(1, 20), told(1, 15)))
    life.require()
    life.take(tell(15, told(1, 15, "after")), partition=2)
    life.require(told(1, 20, "after"))


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
    fields = tuple(SourceField(name, ColumnType(Kind.LONG), "int") for name in ("id", "a"))
    omitted = (SourceField("b", ColumnType(Kind.LONG), "int"),)
    image = SourceSchema(fields, ("id",), lacking=(("sum", "b"),), omitted=omitted)
    for policy in (APPLY, replace(APPLY, drop_column=Behaviour.EVOLVE)):
        verdict = fit(TableSchema(), image, policy)
        assert isinstance(verdict, Unfit)
        assert verdict.code is ParkCode.UNSUPPORTED
        assert "'sum' needs column='b'" in verdict.detail
