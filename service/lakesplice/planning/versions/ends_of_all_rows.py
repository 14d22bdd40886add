"""Ends of many rows: a TRUNCATE or DROP at the source, or a snapshot, as a row of a history table.

Which rows it ended isn't known when it is read: other partitions and dead letters may bring
changes from before it later. So one row of its own marks the position, and readers end all
versions there (`periods.py`):

    _history_op            t
    _history_position      the position of the statement; as in other rows the last part of the key,
                           so a statement that is read twice is stored once
    _history_transaction   its GTID, `_source_ts` its time, both null if the event has none
    the source's key       no value has a meaning, but key columns can't be null: 0 or an empty
                           text. Columns that distinguish shards say which shard was ended
    other columns          null

A snapshot of the whole table ends the rows that it lacks, once it is proven to be complete. Its end
has these values instead:

    _history_op            s
    _history_position      the one just below the snapshot's, which its own rows have. So a row that
                           has a change there wasn't ended
    _history_transaction   null; `_source_ts` is the time when the snapshot's first row was read
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op, changes_schema
from lakesplice.model.moments import EpochUs
from lakesplice.model.names import (
    HISTORY_END,
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_SNAPSHOT_END,
    HISTORY_TRANSACTION,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    SOURCE_TS,
)
from lakesplice.model.position import Position, below_snapshot
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.versions.version_columns import position_texts

_TEXTS = {Primitive.STRING: "", Primitive.BINARY: b""}


def ends_of_all_rows(
    fences: Fences,
    file: Integers,
    schema: TableSchema,
    shard: Mapping[str, str],
    op: str = HISTORY_END,
) -> pa.Table:
    """Return TRUNCATEs and DROPs as changes in `changes_schema(schema)` of a history table.

    `file` has the upper halves of their positions, with the epoch. `shard` are the key columns, by
    stored name, in which all rows of the topic have one value. `op` is what they get as
    `_history_op`.
    """
    count = len(fences.rows)
    values = {
        HISTORY_OP: pa.repeat(op, count),
        HISTORY_POSITION: position_texts(file, fences.position_offset),
        HISTORY_TRANSACTION: fences.gtid.cast(pa.string()),
        OP: pa.array(np.full(count, Op.DELETE, np.int8)),
        POSITION_FILE: pa.array(file, pa.int64()),
        POSITION_OFFSET: pa.array(fences.position_offset, pa.int64()),
        SOURCE_TS: fences.source_ts,
    }
    types = {column.name: column.type for column in schema.columns}
    for name in schema.versioned_key:
        values[name] = pa.repeat(_placeholder(types[name], shard.get(name)), count)
    key = pa.table({name: values[name] for name in schema.key})
    high, low = key_hash(key, schema)
    values |= {KEY_HIGH: pa.array(high), KEY_LOW: pa.array(low)}
    layout = changes_schema(schema)
    columns = [values.get(field.name, pa.nulls(count, field.type)) for field in layout]
    return pa.Table.from_arrays(columns, schema=layout)


def end_of_snapshot(
    position: Position, moment: EpochUs | None, schema: TableSchema, shard: Mapping[str, str]
) -> pa.Table:
    """Return the end of the rows that a snapshot at a position lacks, in the same form; `moment` is
    the time when its first row was read.
    """
    end = Fences.of({0: Fence(below_snapshot(position), moment=moment)})
    return ends_of_all_rows(end, end.position_file, schema, shard, HISTORY_SNAPSHOT_END)


def _placeholder(kind: ColumnType, of_shard: str | None) -> pa.Scalar:
    if kind.kind in _TEXTS:
        return pa.scalar(_TEXTS[kind.kind] if of_shard is None else of_shard, kind.arrow)
    whole = pa.int32() if kind.kind is Primitive.DATE else pa.int64()
    return pa.scalar(0, whole).cast(kind.arrow)
