"""Finds a second snapshot of a table without a key, whose rows the table may have already.

With `mode: append` a row is identified by the position of its change. Rows that a snapshot reads
have no position of their own in the binlog, so a row that is in two snapshots would become two
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.names import APPENDED
from lakesplice.model.position import BEFORE_ALL, ROW_BITS, Ordering, Position
from lakesplice.planning.intake.order.record_order import RecordIndex

ADVICE = (
    "a second snapshot has rows that the table may already have, and without a key nothing shows"
    " which; give `lakesplice reset --anew` once the topic contains only the new snapshot, or"
    " name unique columns as `key` instead of mode: append"
)


def further_snapshots(
    blocks: Sequence[ImageBlock], files: Sequence[Integers], reached: Position
) -> Iterator[RecordIndex]:
    """Yield the first record of each block, of a table without a key, that a further snapshot read.

    Such a record is above all changes before it, and not at the one position that all rows of the
    snapshot before have. `files` are the blocks' binlog files, `reached` is the highest position
    before them.

    Two snapshots between which the server wrote nothing have one position, and look like one.
    """
    highest = reached
    for block, file in sorted(
        zip(blocks, files, strict=False), key=lambda pair: int(pair[0].rows[0])
    ):
        if block.schema.key != APPENDED or block.ordering is not Ordering.BINLOG:
            continue
        offset = block.position_offset
        for at in range(len(offset)) if (block.op == Op.READ).any() else ():
            place = Position(int(file[at]), int(offset[at]))
            is_read = int(block.op[at]) == Op.READ
            if (
                is_read
                and highest != BEFORE_ALL
                and place > highest
                and _are_of_different_events(place, highest)
            ):
                yield RecordIndex(int(block.rows[at]))
                break
            highest = max(highest, place)
        else:
            if len(offset):
                last = int(np.lexsort((offset, file))[-1])
                highest = max(highest, Position(int(file[last]), int(offset[last])))


def _are_of_different_events(one: Position, other: Position) -> bool:
    """Whether two positions belong to different events of the binlog."""
    shift = ROW_BITS + 1
    return (one.file, one.offset >> shift) != (other.file, other.offset >> shift)
