"""Rows of a table without a key: each is identified by the position of its change.

    <transaction>:<file>:<offset>   a change in the binlog: its GTID, which may be empty, and the
                                    two integers of its position, so that a change that is sent
                                    twice is one row
    kafka:<partition>:<offset>      a change without a position of its own: rows of a snapshot,
                                    which share one, and changes not ordered by the binlog

The GTID is included since after a failover the numbers of the source's binlog files start again.
A change without a GTID has the number of its epoch in that place, as `epoch-<number>`, except in
the first epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.names import APPENDED, SOURCE_POSITION
from lakesplice.model.position import FILE_BITS, Ordering
from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import ColumnType, Primitive

_FIELD = SourceField(SOURCE_POSITION, ColumnType(Primitive.STRING), "source position")


def placed(decoded: Decoded, offsets: Integers, partition: int) -> Decoded:
    """Return decoded records of a partition with `_source_position` as the last column of each
    block whose key it is.

    `offsets` are the records'.
    """
    return replace(
        decoded,
        blocks=tuple(
            _placed(block, offsets, partition) if block.schema.key[-1:] == APPENDED else block
            for block in decoded.blocks
        ),
    )


def in_epochs(blocks: Sequence[ImageBlock], files: Sequence[Integers]) -> Sequence[ImageBlock]:
    """Return the blocks with final values of `_source_position`, where `placed` has added it;
    `files` are the first integers of the changes' positions, which include the epoch.
    """
    return [
        _in_epochs(block, file >> FILE_BITS)
        if block.schema.key[-1:] == APPENDED and block.ordering is Ordering.BINLOG
        else block
        for block, file in zip(blocks, files, strict=False)
    ]


def _in_epochs(block: ImageBlock, epoch: Integers) -> ImageBlock:
    unmarked = pc.and_(pa.array((epoch > 0) & (block.op != Op.READ)), block.gtid.is_null())
    if SOURCE_POSITION not in block.after.column_names or not pc.any(unmarked).as_py():
        return block
    marked = pc.binary_join_element_wise("epoch-", _text(epoch), "")
    place = pc.binary_join_element_wise(
        marked, _text(block.position_file), _text(block.position_offset), ":"
    )
    before, after = (
        image.set_column(
            image.column_names.index(SOURCE_POSITION),
            SOURCE_POSITION,
            pc.if_else(unmarked, place, image.column(SOURCE_POSITION)),
        )
        for image in (block.before, block.after)
    )
    return replace(block, before=before, after=after)


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
