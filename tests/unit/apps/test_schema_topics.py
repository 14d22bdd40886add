"""What the driver reads from topics of schema changes: types by table, in time or too late."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.config.sections.schema_topics import MaxwellTopic, SchemaChangeTopicSettings
from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Kind
from lakesplice.spark.kafka.topics import Topic
from tests.support.maxwell import schema_record
from tests.support.schema_changes import connect_record

_X = TableName("shop", "x")
_LONG = ColumnType(Kind.LONG)
RETYPED = "ALTER TABLE x MODIFY price decimal(8,4)"


def _schema(source_type: str) -> TableSchema:
    return TableSchema((Column(0, "id", "id", _LONG, source_type),), ("id",), (0, 1))


_UNDESCRIBED = _schema("declared:long")


class _Source:
    """A topic of schema changes, and a table that stands somewhere in its own."""

    def __init__(self) -> None:
        self.records: list[bytes | None] = []
        self.asked: list[tuple[int, int]] = []
        self.fails = False
        self.topic = Topic("db", "id-1", {0: Offset(0)}, {0: Offset(0)})
        settings = SchemaChangeTopicSettings(names=("db",))
        self.topics = SchemaTopics(settings, self._read, structlog.get_logger())
        self.state = SourceState("db.shop.x", "t", {0: PartitionState(Offset(0))})

    def tell(self, ddl: str, pos: int) -> None:
        self.records.append(connect_record(ddl, pos=pos, changes=None))

    def look(self) -> None:
        self.topic = replace(self.topic, latest={**self.topic.latest, 0: Offset(len(self.records))})
        self.topics.look({"db": self.topic})

    def types(self) -> TypeHistory | None:
        return self.topics.types(self.state, _X)

    def reach(self, pos: int) -> None:
        position = Position.of(0, 3, pos, 0, 1)
        self.state = replace(self.state, partitions={0: PartitionState(Offset(9), position)})

    def _read(
        self, topic: str, ranges: OffsetRanges, mark: str | None
    ) -> list[tuple[int, Offset, bytes | None]]:
        assert (topic, mark) == ("db", None)
        if self.fails:
            raise SourceUnavailable("the broker does not answer")
        ((partition, (start, end)),) = ranges.items()
        self.asked.append((start, end))
        return [(partition, Offset(at), self.records[at]) for at in range(start, end)]


def _told(ddl: str = "CREATE TABLE x (id int, price decimal(8,2))") -> _Source:
    """A source whose topic was read when it had the table's creation."""
    source = _Source()
    source.tell(ddl, 10)
    source.look()
    return source


def told_late(ddl: str, reached: int = 30) -> _Source:
    """A source that told of a statement at place 20 when its table had gone to another one."""
    source = _told()
    source.reach(reached)
    source.tell(ddl, 20)
    source.look()
    return source


def _prices(types: TypeHistory | None) -> list[str]:
    assert types is not None
    return [version.columns["price"].name for version in types.versions]


def test_each_read_of_the_topic_returns_new_records_once() -> None:
    source = _told()
    source.look()
    assert _prices(source.types()) == ["decimal(8,2)"]
    source.tell(RETYPED, 20)
    source.look()
    assert _prices(source.types()) == ["decimal(8,2)", "decimal(8,4)"]
    assert source.asked == [(0, 1), (1, 2)]


def test_a_table_of_another_connector_gets_no_warning() -> None:
    source = _told("CREATE TABLE x (id int)")
    other = replace(source.state, topic="db2.shop.x")
    assert source.topics.types(other, _X) is None
    assert source.topics.types(source.state, TableName("shop", "y")) is None


def test_a_table_that_went_beyond_a_change_of_types_is_parked_once_it_is_reported() -> None:
    source = _told()
    source.reach(30)
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None
    source.tell(RETYPED, 20)
    source.look()
    reason = source.topics.overtaken(source.state, _X, _UNDESCRIBED)
    assert reason is not None
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None, "it is parked by now"
    assert reason.code is ParkCode.SCHEMA_CHANGE
    assert "changes up to 0:3:30:0:1 had been taken" in reason.detail


def test_a_table_whose_events_say_their_types_is_never_too_far() -> None:
    source = told_late(RETYPED)
    assert source.topics.overtaken(source.state, _X, _schema("int64")) is None


@pytest.mark.parametrize("described", ["int64", "declared:long"])
def test_a_table_that_went_beyond_a_swap_of_names_is_parked_once_it_is_reported(
    described: str,
) -> None:
    source = told_late("ALTER TABLE x RENAME COLUMN id TO price, RENAME COLUMN price TO id")
    reason = source.topics.overtaken(source.state, _X, _schema(described))
    assert reason is not None
    assert reason.code is ParkCode.SCHEMA_CHANGE


def test_a_rename_that_is_reported_late_parks_nothing() -> None:
    source = told_late("ALTER TABLE x RENAME COLUMN price TO amount")
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None


def test_a_change_of_types_that_is_reported_in_time_parks_nothing() -> None:
    source = told_late(RETYPED, reached=15)
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None
    source.reach(30)
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None


def test_a_column_that_was_only_added_parks_nothing() -> None:
    source = told_late("ALTER TABLE x ADD note text")
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None


def test_a_change_reported_before_the_driver_started_parks_nothing() -> None:
    source = _Source()
    source.reach(30)
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.look()
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None


def test_changes_reported_before_the_start_stay_old_after_a_failed_first_read() -> None:
    source = _Source()
    source.reach(30)
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.tell("DROP TABLE y", 25)
    source.fails = True
    with pytest.raises(SourceUnavailable):
        source.look()
    source.fails = False
    source.look()
    assert source.topics.overtaken(source.state, _X, _UNDESCRIBED) is None
    told = source.topics.drops(source.state, TableName("shop", "y"))
    assert (len(told.drops), told.open_since) == (1, 1)


def test_after_a_failover_only_types_that_never_changed_are_known() -> None:
    source = _Source()
    source.tell("CREATE TABLE x (id int, price decimal(8,2))", 10)
    source.tell(RETYPED, 20)
    source.look()
    source.state = replace(source.state, epochs=(Epoch(1),))
    types = source.types()
    assert types is not None
    version, _ = types.at(Position.of(0, 3, 30, 0, 1))
    assert (list(version.columns), list(version.untyped)) == (["id"], ["price"])


def test_a_topic_that_was_re_created_is_read_from_its_beginning() -> None:
    source = _told("CREATE TABLE x (id int, price int)")
    source.records.clear()
    source.tell("CREATE TABLE x (id int, price bigint)", 5)
    source.topic = replace(source.topic, id="id-2")
    source.look()
    assert _prices(source.types()) == ["long"]


def test_a_statement_that_cannot_be_parsed_is_logged() -> None:
    source = _Source()
    with capture_logs() as logged:
        source.topics.look({})
        source.topics.look({})
        source.records.append(b"{")
        source.tell("ALTER TABLE x FROBNICATE", 10)
        source.topic = replace(
            source.topic, earliest={0: Offset(0), 1: Offset(0)}, latest={0: Offset(0), 1: Offset(3)}
        )
        source.look()
    events = [entry["event"] for entry in logged]
    assert events == ["schema-topic-missing", "schema-topic-partitions", "ddl-unread", "ddl-unread"]
    assert logged[-1]["ddl"] == "ALTER TABLE x FROBNICATE"


_ITEMS, _ORDERS = TableName("shop", "items"), TableName("shop", "orders")
_BORN = {"id": "int", "price": "decimal"}


class _Maxwell:
    """A topic of several partitions in which a Maxwell tells of schema changes."""

    def __init__(self, name: str = "ddl", *, earliest: int = 0) -> None:
        self.partitions: list[list[bytes]] = [[], []]
        self.marks: list[str | None] = []
        self.topic = Topic(
            name, "id-1", {0: Offset(earliest), 1: Offset(0)}, {0: Offset(0), 1: Offset(0)}
        )
        settings = SchemaChangeTopicSettings(
            maxwell=(MaxwellTopic(name=name, tables="mx.*"), MaxwellTopic(name="b", tables="*"))
        )
        self.topics = SchemaTopics(settings, self._read, structlog.get_logger())

    def tell(self, partition: int, sql: str, pos: int, table: str = "items") -> None:
        before = None if sql.startswith("CREATE") else _BORN
        record = schema_record(sql, pos, table=table, before=before, after=_BORN)
        self.partitions[partition].append(record)

    def drop(self, partition: int, table: str, pos: int) -> None:
        record = schema_record(f"DROP TABLE {table}", pos, table=table)
        self.partitions[partition].append(record)

    def open_drops(self, table: TableName) -> list[int]:
        told = self.topics.drops(self.source(table.table), table)
        return [d.position.parts[2] for d in told.drops if d.number >= told.open_since]

    def look(self) -> None:
        ends = {at: Offset(len(records)) for at, records in enumerate(self.partitions)}
        self.topic = replace(self.topic, latest=ends)
        self.topics.look({self.topic.name: self.topic})

    def source(self, table: str = "items", pos: int | None = None) -> SourceState:
        here = (
            PartitionState(Offset(0))
            if pos is None
            else PartitionState(Offset(9), Position.of(0, 3, pos, 0, 1))
        )
        return SourceState(f"mx.shop.{table}", "t", {0: here})

    def prices(self, table: TableName = _ITEMS) -> list[str]:
        types = self.topics.types(self.source(table.table), table)
        assert types is not None
        assert types.ordered
        return [
            version.columns["price"].name if "price" in version.columns else "?"
            for version in types.versions
        ]

    def _read(
        self, topic: str, ranges: OffsetRanges, mark: str | None
    ) -> list[tuple[int, Offset, bytes | None]]:
        self.marks.append(mark)
        return [
            (partition, Offset(at), self.partitions[partition][at])
            for partition, (start, end) in ranges.items()
            for at in range(start, end)
        ]


def test_maxwells_topic_is_read_whole_and_for_the_tables_it_is_set_for() -> None:
    maxwell = _Maxwell()
    maxwell.tell(1, "CREATE TABLE items (id int, price decimal(8,2))", 10)
    maxwell.tell(0, "CREATE TABLE orders (id int, price decimal(9,2))", 20, "orders")
    maxwell.look()
    maxwell.tell(1, "ALTER TABLE items MODIFY price decimal(8,4)", 30)
    maxwell.look()
    assert maxwell.prices() == ["decimal(8,2)", "decimal(8,4)"]
    assert maxwell.prices(_ORDERS) == ["decimal(9,2)"]
    other = replace(maxwell.source(), topic="other.shop.items")
    assert maxwell.topics.types(other, _ITEMS) is None
    assert maxwell.marks == [None, None]


@pytest.mark.parametrize(("name", "marked"), [("mx.shop.items", True), ("ddl", False)])
def test_from_a_tables_own_topic_only_schema_changes_are_read(name: str, marked: bool) -> None:
    maxwell = _Maxwell(name)
    maxwell.tell(0, "CREATE TABLE items (id int, price decimal(8,2))", 10)
    maxwell.look()
    assert maxwell.prices() == ["decimal(8,2)"]
    (mark,) = maxwell.marks
    assert (mark is not None) == marked
    if mark is not None:
        record = maxwell.partitions[0][0].decode()
        assert re.search(mark, record)
        assert not re.search(mark, json.dumps({"type": "insert", "data": {"type": record}}))


def test_partitions_that_come_in_another_order_tell_the_same() -> None:
    maxwell = _Maxwell()
    maxwell.tell(0, "CREATE TABLE items (id int, price decimal(8,2))", 10)
    maxwell.tell(0, "ALTER TABLE items MODIFY price decimal(8,4)", 40)
    maxwell.look()
    maxwell.tell(1, "CREATE TABLE orders (id int, price decimal(9,2))", 20, "orders")
    maxwell.tell(1, "ALTER TABLE orders MODIFY price decimal(9,4)", 30, "orders")
    maxwell.look()
    assert maxwell.prices() == ["decimal(8,2)", "decimal(8,4)"]
    assert maxwell.prices(_ORDERS) == ["decimal(9,2)", "decimal(9,4)"]
    reached = maxwell.source("orders", 35)
    assert maxwell.topics.overtaken(reached, _ORDERS, _UNDESCRIBED) is not None
    reached = maxwell.source("items", 45)
    assert maxwell.topics.overtaken(reached, _ITEMS, _UNDESCRIBED) is None


def test_drops_that_were_dealt_with_are_so_in_another_order() -> None:
    maxwell = _Maxwell()
    maxwell.tell(0, "CREATE TABLE items (id int, price decimal(8,2))", 10)
    maxwell.tell(1, "CREATE TABLE orders (id int, price decimal(9,2))", 20, "orders")
    maxwell.look()
    maxwell.drop(0, "items", 40)
    maxwell.look()
    assert maxwell.open_drops(_ITEMS) == [40]
    maxwell.topics.note_handled_drops(maxwell.source(), _ITEMS, 1, parked=True)
    maxwell.drop(1, "orders", 30)
    maxwell.look()
    assert maxwell.open_drops(_ORDERS) == [30]
    assert maxwell.open_drops(_ITEMS) == []


def test_a_first_alteration_that_is_reported_late_parks_a_table_that_was_there_before() -> None:
    maxwell = _Maxwell()
    maxwell.tell(0, "CREATE TABLE orders (id int, price decimal(9,2))", 10, "orders")
    maxwell.look()
    maxwell.tell(0, "ALTER TABLE items MODIFY price decimal(8,4)", 20)
    maxwell.look()
    assert maxwell.prices() == ["?", "decimal(8,4)"]
    reached = maxwell.source(pos=30)
    assert maxwell.topics.overtaken(reached, _ITEMS, _UNDESCRIBED) is not None


def test_maxwells_without_positions_is_warned_of_and_tells_what_never_changed() -> None:
    maxwell = _Maxwell()
    maxwell.partitions[0].append(
        schema_record("CREATE TABLE items (id int, price decimal(8,2))", None, after=_BORN)
    )
    with capture_logs() as logged:
        maxwell.look()
    assert "schema-topic-without-positions" in [entry["event"] for entry in logged]
    types = maxwell.topics.types(maxwell.source(), _ITEMS)
    assert types is not None
    assert set(types.at(None)[0].columns) == {"id", "price"}


def test_a_topic_is_set_once() -> None:
    topic = MaxwellTopic(name="db", tables="*")
    with pytest.raises(ValueError, match="named twice"):
        SchemaChangeTopicSettings(names=("db",), maxwell=(topic,))
    with pytest.raises(ValueError, match="isn't a valid topic name"):
        MaxwellTopic(name="maxwell.%{database}", tables="*")


def test_drops_are_reported_with_those_that_came_since_the_driver_began() -> None:
    source = _told()
    source.tell("DROP TABLE x", 20)
    begun = _Source()
    begun.records = source.records
    begun.look()
    begun.tell("CREATE TABLE x (id int)", 30)
    begun.tell("DROP TABLE x", 40)
    begun.look()
    told = begun.topics.drops(begun.state, _X)
    assert [(drop.number, drop.position.parts[2], drop.again) for drop in told.drops] == [
        (0, 20, True),
        (1, 40, False),
    ]
    assert (told.ordered, told.known_since, told.open_since) == (True, 1, 1)


def test_a_drop_that_was_handled_is_no_longer_open() -> None:
    source = told_late("DROP TABLE x")
    source.topics.note_handled_drops(source.state, _X, 1)
    after = source.topics.drops(source.state, _X)
    assert (after.known_since, after.open_since) == (0, 1)
    source.topics.note_handled_drops(source.state, _X, 1, parked=True)
    assert source.topics.drops(source.state, _X).known_since == 1


def test_a_table_of_another_connector_was_not_dropped() -> None:
    source = told_late("DROP TABLE x")
    other = replace(source.state, topic="db2.shop.x")
    assert source.topics.drops(other, _X).drops == ()
    assert source.topics.drops(source.state, TableName("shop", "y")).drops == ()
