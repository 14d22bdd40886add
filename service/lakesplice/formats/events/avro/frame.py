"""The head of an Avro record in Kafka: a zero byte, then the number of its schema in a registry.

Confluent's serialisers write the number as four bytes, and so do Apicurio's in their compatible
mode; Apicurio's own format has eight. No registry gives number 0 to a schema, and none has 2^32
schemas: so four zero bytes are the beginning of a number with eight.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.texts import text_bytes

MAGIC = 0
_SHORT, _LONG = 5, 9


@dataclass(frozen=True, slots=True)
class FramedRecord:
    """A record's head: its bytes, and the number of the schema that it names."""

    prefix: bytes
    schema: int


def framed(record: bytes) -> FramedRecord | None:
    """Return the head of a record; None if it has none."""
    if len(record) < _SHORT or record[0] != MAGIC:
        return None
    if number := int.from_bytes(record[1:_SHORT], "big"):
        return FramedRecord(record[:_SHORT], number)
    number = int.from_bytes(record[_SHORT:_LONG], "big")
    return FramedRecord(record[:_LONG], number) if number and len(record) >= _LONG else None


def schema_ids(columns: Iterable[pa.Array]) -> set[int]:
    """Return the numbers of the schemas that the records' heads name; the columns are binary.

    Records of another format may look as if they had a head: a number need not be that of a schema.
    """
    found: set[int] = set()
    for column in columns:
        data, offsets = text_bytes(column if column.type == pa.binary() else column.cast("binary"))
        starts, lengths = offsets[:-1], np.diff(offsets)
        starts = starts[lengths >= _SHORT]
        starts = starts[data[starts] == MAGIC] if len(starts) else starts
        if not len(starts):
            continue
        heads = np.zeros((len(starts), _LONG), np.uint8)
        ends = np.minimum(starts + _LONG, len(data)) - starts
        for at in range(_LONG):
            inside = ends > at
            heads[inside, at] = data[starts[inside] + at]
        for head in np.unique(heads, axis=0):
            if head_ := framed(head.tobytes()):
                found.add(head_.schema)
    return found
