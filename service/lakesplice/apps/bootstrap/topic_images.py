"""Reads from a topic's newest records which columns its table has, and from its first records where
it starts.
"""

from __future__ import annotations

from lakesplice.errors import UsageError
from lakesplice.model.choices import FormatName
from lakesplice.model.offsets import Offset, OffsetRange
from lakesplice.model.position import Ordering, Position
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.newest_image import lowest_position, newest_image
from lakesplice.spark.kafka.topic_ranges import TopicReader
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.ports import SchemaSource, schemas_of

# How many of each partition's last records are read first; more if none of them has a row.
_RECORDS = (50, 5_000)
_DEBEZIUM = (
    FormatName.DEBEZIUM,
    FormatName.AVRO,
    FormatName.FLATTENED,
    FormatName.FLATTENED_AVRO,
)


def newest_schema(
    reader: TopicReader, topic: Topic, reading: RecordReading, registry: SchemaSource | None
) -> SourceSchema:
    """Return the columns and types of the topic's newest row. Blocks.

    Raises `UsageError` if the topic has no row, or if its rows have no binlog positions that can be
    compared with reads of the database.
    """
    for count in _RECORDS:
        ranges = {
            at: OffsetRange(max(topic.earliest[at], Offset(end - count)), end)
            for at, end in topic.latest.items()
            if end > topic.earliest[at]
        }
        batches = [batch for _, batch in reader.read(topic.name, ranges)] if ranges else []
        found = newest_image(batches, reading, schemas_of(batches, registry))
        if found is not None:
            break
    else:
        raise UsageError(
            "the topic has no record of a row yet, so nothing shows how the connector writes its "
            "columns, nor that it runs; change a row, and run the command again",
            topic=topic.name,
        )
    if found.ordering is not Ordering.BINLOG or found.format not in _DEBEZIUM:
        raise UsageError(
            "only tables that Debezium streams from a binlog can be read from their database; for"
            " this one, let its connector take a snapshot",
            topic=topic.name,
            format=found.format,
        )
    return found.schema


def first_positions(
    reader: TopicReader, topic: Topic, reading: RecordReading, registry: SchemaSource | None
) -> dict[int, Position]:
    """Return, for each partition with records, the lowest position among its first ones. Blocks."""
    ranges = {
        at: OffsetRange(first, min(topic.latest[at], Offset(first + _RECORDS[0])))
        for at, first in topic.earliest.items()
        if topic.latest[at] > first
    }
    found: dict[int, Position] = {}
    for partition, batch in reader.read(topic.name, ranges) if ranges else ():
        lowest = lowest_position(batch, reading, schemas_of([batch], registry))
        if lowest is not None:
            found[partition] = min(lowest, found.get(partition, lowest))
    return found
