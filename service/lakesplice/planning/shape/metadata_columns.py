"""Metadata columns: facts of an event besides its row, as columns of the table.

    name            type        holds
    op_ts           timestamp   when the source made the change; of a snapshot, when it was read
    op              string      c, u, r: the row was created, updated, read by a snapshot
    gtid            string      the change's transaction; null where the event names none
    database_name   string      the source's database
    table_name      string      the source's table, whatever it is called in the lake
    topic           string      the topic

Each value follows from the change or from its topic, so a change that is read twice gives the same
value. A record's offset can't be a metadata column: a change that is sent again has another offset,
and the offset that its row shows would depend on the batch.

Columns about a topic are like any other column: before-images and after-images have the same value.
Columns about a change don't describe the row, so before-images lack them. They aren't part of row
digests, and each change sets them (`Column.of_change`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.change import Op
from lakesplice.model.names import TableName
from lakesplice.model.schema import OF_CHANGE, OF_TOPIC
from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import ColumnType, Primitive


class MetadataContent(StrEnum):
    """The content of a metadata column."""

    OP_TS = "op_ts"
    OP = "op"
    GTID = "gtid"
    DATABASE_NAME = "database_name"
    TABLE_NAME = "table_name"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class RecordOrigin:
    """Where records come from: their topic, and the source's name of the table."""

    topic: str
    table: TableName


_OF_TOPIC: Mapping[MetadataContent, Callable[[RecordOrigin], str]] = {
    MetadataContent.DATABASE_NAME: lambda origin: origin.table.database,
    MetadataContent.TABLE_NAME: lambda origin: origin.table.table,
    MetadataContent.TOPIC: lambda origin: origin.topic,
}
_LETTERS = {Op.CREATE: "c", Op.UPDATE: "u", Op.DELETE: "d", Op.READ: "r"}
_ELSEWHERE = {
    "partition": "a record that is sent again may be in another partition",
    "offset": "a record that is sent again has another offset",
    "schema_name": "MySQL has databases, not schemas: database_name",
}


def metadata_of(names: Sequence[str]) -> tuple[MetadataContent, ...]:
    """Parse names of metadata, in their order; `ConfigurationError` for an unknown or repeated
    one.
    """
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ConfigurationError(
                "the same metadata is given twice; remove one of the two", metadata=name
            )
        if name not in list(MetadataContent):
            known = ", ".join(MetadataContent)
            why = _ELSEWHERE.get(name, f"known: {known}")
            raise ConfigurationError(f"isn't a metadata column; {why}", metadata=name)
    return tuple(MetadataContent(name) for name in names)


def metadata_field(name: str, what: MetadataContent) -> SourceField:
    """Return the column `name` that holds it."""
    mark = OF_TOPIC if what in _OF_TOPIC else OF_CHANGE
    kind = Primitive.TIMESTAMP if what is MetadataContent.OP_TS else Primitive.STRING
    return SourceField(name, ColumnType(kind), f"{mark}{what}")


def metadata_values(what: MetadataContent, block: ImageBlock, origin: RecordOrigin) -> pa.Array:
    """Return the column's value for every change of a block."""
    if is_of_topic(what):
        return pa.repeat(pa.scalar(topic_value(what, origin), pa.string()), len(block))
    return change_values(what, block)


def change_values(what: MetadataContent, block: ImageBlock) -> pa.Array:
    """Return the values of a column about changes, for every change of a block."""
    if what is MetadataContent.OP_TS:
        return block.source_ts
    if what is MetadataContent.GTID:
        return block.gtid.cast(pa.string())
    return _letters(block.op)


def topic_value(what: MetadataContent, origin: RecordOrigin) -> str:
    """Return the value that all rows of a topic have in a column about the topic."""
    return _OF_TOPIC[what](origin)


def is_of_topic(what: MetadataContent) -> bool:
    """Whether all rows of a topic have the same value in it."""
    return what in _OF_TOPIC


def _letters(op: np.ndarray[tuple[int], np.dtype[np.int8]]) -> pa.Array:
    letters = pa.array([_LETTERS[one] for one in Op])
    return letters.take(pa.array(op))
