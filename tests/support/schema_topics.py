"""A table and its topic of schema changes, in which a connector reports statements."""

from __future__ import annotations

from dataclasses import replace

import structlog

from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.config.sections.schema_topics import SchemaChangeTopicSettings
from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.spark.kafka.topics import Topic
from tests.support.schema_changes import connect_record

X = TableName("shop", "x")
_LONG = ColumnType(Primitive.LONG)
RETYPED = "ALTER TABLE x MODIFY price decimal(8,4)"


def schema_of(source_type: str) -> TableSchema:
    return TableSchema((Column(0, "id", "id", _LONG, source_type),), ("id",), (0, 1))


UNDESCRIBED = schema_of("declared:long")


class ReportedTable:
    """A topic of schema changes, and a table that stands somewhere in its own."""

    def __init__(self, name: str = "db") -> None:
        self.records: list[bytes | None] = []
        self.asked: list[tuple[int, int]] = []
        self.fails = False
        self.topic = Topic(name, "id-1", {0: Offset(0)}, {0: Offset(0)})
        settings = SchemaChangeTopicSettings(names=(name,))
        self.topics = SchemaTopics(settings, self._read, structlog.get_logger())
        self.state = SourceState(f"{name}.shop.x", "t", {0: PartitionState(Offset(0))})

    def tell(self, ddl: str, pos: int, **place: str) -> None:
        self.records.append(connect_record(ddl, pos=pos, changes=None, **place))

    def look(self) -> None:
        self.topic = replace(self.topic, latest={**self.topic.latest, 0: Offset(len(self.records))})
        self.topics.look({self.topic.name: self.topic})

    def types(self) -> TypeHistory | None:
        return self.topics.types(self.state, X)

    def reach(self, pos: int) -> None:
        position = Position.of(0, 3, pos, 0, 1)
        self.state = replace(self.state, partitions={0: PartitionState(Offset(9), position)})

    def _read(
        self, topic: str, ranges: OffsetRanges, mark: str | None
    ) -> list[tuple[int, Offset, bytes | None]]:
        assert (topic, mark) == (self.topic.name, None)
        if self.fails:
            raise SourceUnavailable("the broker does not answer")
        ((partition, (start, end)),) = ranges.items()
        self.asked.append((start, end))
        return [(partition, Offset(at), self.records[at]) for at in range(start, end)]


def told_of_creation(ddl: str = "CREATE TABLE x (id int, price decimal(8,2))") -> ReportedTable:
    """A source whose topic was read when it had the table's creation."""
    source = ReportedTable()
    source.tell(ddl, 10)
    source.look()
    return source


def told_late(ddl: str, reached: int = 30) -> ReportedTable:
    """A source that told of a statement at place 20 when its table had gone to another one."""
    source = told_of_creation()
    source.reach(reached)
    source.tell(ddl, 20)
    source.look()
    return source
