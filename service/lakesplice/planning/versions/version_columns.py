"""History tables: every change becomes a row of its own, a version of the row that it changed.

Three columns are added to what a change brings:

    _history_position      the position of the change, as text; the last part of the key, so a
                           change that is read twice is stored once
    _history_op            c, u, d, r: created, updated, deleted, read by a snapshot; t, s:
                           not a version, but an end of many rows (`ends_of_all_rows.py`)
    _history_transaction   the GTID of the change's transaction; null for rows of a snapshot, and
                           if the event names none

After a failover a change may be sent again with the position that it has in the new server's
binlog. Then it is stored twice, and the transaction shows it (`intervals.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.names import (
    HISTORY_COLUMNS,
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_TRANSACTION,
)
from lakesplice.model.position import FILE_BITS, ROW_BITS
from lakesplice.model.schema import OF_CHANGE
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.shape.metadata_columns import MetadataContent, change_values

_FIELDS = tuple(
    SourceField(
        name, ColumnType(Primitive.STRING), f"{OF_CHANGE}history {name.removeprefix('_history_')}"
    )
    for name in HISTORY_COLUMNS
)


def as_versions(decoded: Decoded) -> Decoded:
    """Return decoded records with the columns of history tables, in images before and after.

    A source table without a key stays one. The positions are final only after `at_positions`.
    """
    return replace(decoded, blocks=tuple(map(_as_versions, decoded.blocks)))


def at_positions(blocks: Sequence[ImageBlock], files: Sequence[Integers]) -> Sequence[ImageBlock]:
    """Return the blocks, those of history tables with positions in which the first integers are
    `files`: these include the epoch.
    """
    return [
        _with(block, HISTORY_POSITION, position_texts(file, block.position_offset))
        if HISTORY_POSITION in block.schema.key
        else block
        for block, file in zip(blocks, files, strict=False)
    ]


def versions_schema(schema: SourceSchema) -> SourceSchema:
    """Return the schema of a history table's images."""
    names = {column.name.lower() for column in (*schema.fields, *schema.omitted)}
    taken = [name for name in HISTORY_COLUMNS if name in names]
    if taken:
        problem = (
            f"the source has a column={taken[0]!r}, which a history table has itself; exclude it"
        )
        return replace(schema, problem=problem)
    key = (*schema.key, HISTORY_POSITION) if schema.key else ()
    return replace(schema, key=key, fields=(*schema.fields, *_FIELDS))


def _as_versions(block: ImageBlock) -> ImageBlock:
    schema = versions_schema(block.schema)
    if schema.problem:
        return replace(block, schema=schema)  # no table takes it
    transaction = change_values(MetadataContent.GTID, block)
    is_read = pa.array(block.op == Op.READ)
    values = {
        HISTORY_POSITION: position_texts(block.position_file, block.position_offset),
        HISTORY_OP: change_values(MetadataContent.OP, block),
        # A snapshot's rows weren't changed by the transaction at which it was taken.
        HISTORY_TRANSACTION: pc.if_else(is_read, pa.scalar(None, pa.string()), transaction),
    }
    before, after = block.before, block.after
    for name in HISTORY_COLUMNS:
        before, after = (image.append_column(name, values[name]) for image in (before, after))
    return replace(block, schema=schema, before=before, after=after)


def _with(block: ImageBlock, name: str, values: pa.Array) -> ImageBlock:
    at = block.after.column_names.index(name)
    before, after = (image.set_column(at, name, values) for image in (block.before, block.after))
    return replace(block, before=before, after=after)


def position_texts(file: Integers, offset: Integers) -> pa.Array:
    """Write positions as `Position` does."""
    parts = (
        file >> FILE_BITS,
        file & ((1 << FILE_BITS) - 1),
        offset >> (ROW_BITS + 1),
        (offset >> 1) & ((1 << ROW_BITS) - 1),
        offset & 1,
    )
    return pc.binary_join_element_wise(*(pa.array(part).cast(pa.string()) for part in parts), ":")
