"""What the driver reads from a topic in which Maxwell reports schema changes."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.config.sections.schema_topics import MaxwellTopic, SchemaChangeTopicSettings
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.spark.kafka.topics import Topic
from tests.support.maxwell import schema_record
from tests.support.schema_topics import UNDESCRIBED

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
    assert maxwell.topics.overtaken(reached, _ORDERS, UNDESCRIBED) is not None
    reached = maxwell.source("items", 45)
    assert maxwell.topics.overtaken(reached, _ITEMS, UNDESCRIBED) is None


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
    assert maxwell.topics.overtaken(reached, _ITEMS, UNDESCRIBED) is not None


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
