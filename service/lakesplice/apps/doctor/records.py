"""Decodes some records of a topic, with the service's configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from lakesplice.apps.record_reading import reading_of
from lakesplice.config import Settings
from lakesplice.formats.events import DeadReason, Decoded, decode
from lakesplice.model.change import Op
from lakesplice.model.names import TableName, possible_tables
from lakesplice.model.parking import ParkCode
from lakesplice.planning.diagnosis.records import RecordFacts
from lakesplice.spark.kafka.record_samples import RecordSampler
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.ports import SchemaSource, schemas_of

_PARTS_CLEAR = 3
_NO_KEY = (
    "rows can't be distinguished: the source's table has no primary key, and none is configured"
)


def record_facts(
    settings: Settings,
    schemas: SchemaSource | None,
    topic: str,
    table: TableName,
    batches: Sequence[pa.RecordBatch],
) -> RecordFacts:
    """Decode records of a topic of the source's table, and return what was found.

    Blocks on the schema registry; `SourceUnavailable` if it doesn't answer.
    """
    has_schema_topic = any(
        topic.startswith(f"{name}.") for name in settings.schema_change_topics.names
    )
    dead: Counter[str] = Counter()
    stops: list[tuple[str, str]] = []
    formats: list[str] = []
    suspects: set[str] = set()
    changes = 0
    for records in batches:
        decoded = _decoded(settings, schemas, table, records)
        dead.update(decoded.dead.reason)
        suspects |= decoded.suspect_settings
        formats.extend([decoded.format] if decoded.format else [])
        changes += sum(int((block.op != Op.READ).sum()) for block in decoded.blocks)
        stops.extend((stop.code, stop.detail) for stop in decoded.stops)
        if any(not block.schema.key for block in decoded.blocks):
            stops.append((ParkCode.NO_KEY, _NO_KEY))
    # The types are in the topic of schema changes, which isn't read here.
    meant = [one for one in stops if not (has_schema_topic and one[0] == ParkCode.TYPES_UNDECLARED)]
    return RecordFacts(
        topic=topic,
        records=sum(len(records) for records in batches),
        format=formats[0] if formats else None,
        changes=changes,
        dead=dead,
        stop=meant[0] if meant else None,
        suspects=frozenset(suspects),
    )


def table_of(
    settings: Settings, topic: str, known: Topic | None, sampler: RecordSampler
) -> TableName:
    """Return the source table that a topic belongs to; if dots in its name make that ambiguous, its
    first records decide, and the call blocks. `UsageError` if no table can have that name.
    """
    plain = TableName.from_topic(topic)
    parts = topic.split(".")
    if len(parts) <= _PARTS_CLEAR or not all(parts) or known is None or known.leaderless:
        return plain
    for records in sampler.sample(known, 1, 0):
        fitting = [
            name
            for name in possible_tables(topic)
            if DeadReason.WRONG_TABLE not in _decoded(settings, None, name, records).dead.reason
        ]
        return fitting[0] if len(fitting) == 1 else plain
    return plain


def _decoded(
    settings: Settings,
    schemas: SchemaSource | None,
    table: TableName,
    records: pa.RecordBatch,
) -> Decoded:
    context = reading_of(settings, table).context(None, schemas_of([records], schemas))
    return decode(records, context)
