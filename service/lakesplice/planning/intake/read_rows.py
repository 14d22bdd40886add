"""Rows that one snapshot of the source read become changes of a table.

All rows of a read have the position that the source had reached when its snapshot was taken. A
change that the read saw is below it and has no effect on them; a change that it didn't see is
above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.refusals import DeadLetters
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.line import IntakeLine, RecordReading, RecordSource

_NO_PARTITION = -1


@dataclass(frozen=True)
class ReadRows:
    """Rows that one snapshot read: `images` has a column per field of `schema`, by source name.

    `read_ms` is the source's time of the snapshot, in milliseconds. With `gone` the snapshot has no
    such rows: `images` are what the table holds of them.
    """

    schema: SourceSchema
    images: pa.Table
    position: Position
    read_ms: EpochMs
    gone: bool = False

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.images.num_rows)


@dataclass
class RowIntake:
    """What rows became: changes in `changes_schema` of the table's schema.

    `new_schemas` are schemas that the table lacks, as `PartitionReport` has them. `refused`
    says why the table can't take the rows, "" if it can.
    """

    changes: list[pa.Table] = field(default_factory=list)
    new_schemas: list[tuple[Position, SourceSchema]] = field(default_factory=list)
    refused: str = ""


def take_rows(
    reads: Iterable[ReadRows],
    reading: RecordReading,
    topic: str,
    *,
    schema: TableSchema,
    known: KnownTopic,
) -> RowIntake:
    """Process rows as the topic's records would be: shaped, typed and fitted to the schema."""
    taken = RowIntake()
    for read in (one for one in reads if one.count):
        line = IntakeLine(
            reading,
            topic,
            _NO_PARTITION,
            schema=schema,
            state=PartitionState(Offset(0)),
            known=known,
            origins=RecordSource.SOURCE_ROWS,
        )
        result = line.take_decoded(np.arange(read.count, dtype=np.int64), _decoded(read, known))
        report = line.report()
        taken.changes += result.changes
        taken.new_schemas += report.new_schemas
        if report.parked is not None:
            taken.refused = report.parked.detail
        elif result.dead_letters:
            letter = result.dead_letters[0]
            taken.refused = f"{letter.reason}: {letter.detail}"
    return taken


def highest_of(reads: Sequence[ReadRows]) -> Position:
    """Return the highest position of some reads."""
    return max((read.position for read in reads), default=BEFORE_ALL)


def _decoded(read: ReadRows, known: KnownTopic) -> Decoded:
    count = read.count
    rows: Integers = np.arange(count, dtype=np.int64)
    here = np.full(count, True)
    moment = pa.scalar(read.read_ms * 1000, pa.timestamp("us", "UTC"))
    images = read.images.combine_chunks()
    block = ImageBlock(
        schema=read.schema,
        rows=rows,
        op=np.full(count, Op.DELETE if read.gone else Op.READ, np.int8),
        position_file=np.full(count, read.position.file, np.int64),
        position_offset=np.full(count, read.position.offset, np.int64),
        source_ts=pa.repeat(moment, count),
        gtid=pa.nulls(count, pa.string()),
        before=images,
        before_present=here if read.gone else ~here,
        after=images,
        after_present=~here if read.gone else here,
        ordering=Ordering.BINLOG,
    )
    return Decoded((block,), DeadLetters(), (), {}, format=known.format)
