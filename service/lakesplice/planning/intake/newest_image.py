"""The newest row image among records of a topic: which columns the source has, and as what types
they are streamed; and the lowest position, which shows where the records begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakesplice.formats.events import SchemaText, decode
from lakesplice.model.choices import FormatName
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.line import RecordReading


@dataclass(frozen=True, slots=True)
class NewestImage:
    """The schema of the image at the highest position, and how its record is written."""

    schema: SourceSchema
    position: Position
    format: FormatName | None
    ordering: Ordering


def newest_image(
    batches: Iterable[pa.RecordBatch],
    reading: RecordReading,
    schemas: Mapping[int, SchemaText] | None = None,
) -> NewestImage | None:
    """Return the newest whole image of some records; None if they have none.

    Each batch is of one partition, in the columns that formats decode.
    """
    newest: NewestImage | None = None
    context = reading.context(None, schemas)
    for batch in batches:
        decoded = decode(batch, context)
        for block in decoded.blocks:
            if block.schema.key_alone or block.schema.partial or not len(block):
                continue
            places = zip(block.position_file.tolist(), block.position_offset.tolist(), strict=True)
            highest = max(Position(file, offset) for file, offset in places)
            if highest > (BEFORE_ALL if newest is None else newest.position):
                newest = NewestImage(block.schema, highest, decoded.format, block.ordering)
    return newest


def lowest_position(
    batch: pa.RecordBatch,
    reading: RecordReading,
    schemas: Mapping[int, SchemaText] | None = None,
) -> Position | None:
    """Return the lowest position of some records of a partition; None if none has a position."""
    decoded = decode(batch, reading.context(None, schemas))
    places = (
        Position(file, offset)
        for block in decoded.blocks
        for file, offset in zip(
            block.position_file.tolist(), block.position_offset.tolist(), strict=True
        )
    )
    return min(places, default=None)
