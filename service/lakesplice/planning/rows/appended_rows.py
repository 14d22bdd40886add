"""Appended rows: those of a table without a key, each identified by its change's position.

    <transaction>:<file>:<offset>   a change of the binlog: its GTID, which may be empty, and the
                                    halves of its position, so that one sent twice is one row
    kafka:<partition>:<offset>      what has no position of its own: rows of a snapshot, which all
                                    have one, and changes that are ordered by something else

After a failover the source's files are numbered from the start again; its transactions distinguish
them.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.names import APPENDED, SOURCE_POSITION
from lakesplice.model.position import Ordering
from lakesplice.model.schema import SourceField
from lakesplice.model.types import ColumnType, Kind

_FIELD = SourceField(SOURCE_POSITION, ColumnType(Kind.STRING), "source position")


def placed(decoded: Decoded, offsets: Integers, partition: int) -> Decoded:
    """Return what was decoded of a partition's records, with `_source_position` as the last column
    of blocks whose key it is.

    `offsets` are the records'.
    """
    return replace(
        decoded,
        blocks=tuple(
            _placed(block, offsets, partition) if block.schema.key[-1:] == APPENDED else block
            for block in decoded.blocks
        ),
    )


def _placed(block: ImageBlock, offsets: Integers, partition: int) -> ImageBlock:
    if SOURCE_POSITION in block.after.column_names:
        problem = f"the source has a column={SOURCE_POSITION!r} itself; leave it out"
        return replace(block, schema=replace(block.schema, problem=problem))
    place = _kafka(partition, offsets[block.rows])
    if block.ordering is Ordering.BINLOG:
        has_none = pa.array(block.op == Op.READ)
        place = pc.if_else(has_none, place, _binlog(block))
    schema = replace(block.schema, fields=(*block.schema.fields, _FIELD))
    before, after = (
        image.append_column(SOURCE_POSITION, place) for image in (block.before, block.after)
    )
    return replace(block, schema=schema, before=before, after=after)


def _binlog(block: ImageBlock) -> pa.Array:
    transaction = block.gtid.cast(pa.string()).fill_null("")
    return pc.binary_join_element_wise(
        transaction, _text(block.position_file), _text(block.position_offset), ":"
    )


def _kafka(partition: int, offsets: Integers) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(f"kafka:{partition}"), _text(offsets), ":")


def _text(numbers: Integers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
