"""Changes of rows as records of a table of changes, computed one by one in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakesplice.model.change import Op
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.row_digest import row_digest

Row = Sequence[Any]


def digest_of(schema: TableSchema, row: Row) -> int:
    """The digest of a row that has a value for each column."""
    image = dict(zip(schema.names, row, strict=True))
    table = pa.Table.from_pylist([image], schema=pa.schema(schema.user_fields))
    return int(row_digest(table, schema)[0])


def change_record(
    schema: TableSchema, op: Op, before: Row | None, after: Row | None
) -> dict[str, Any]:
    """What follows from a change's images: its values, digests, and the set of changed columns.

    Without the image before, the set isn't known. Key, position and time are the caller's.
    """
    image = before if op is Op.DELETE else after
    assert image is not None
    return {
        "_op": int(op),
        "_before_digest": None if before is None else digest_of(schema, before),
        "_row_digest": None if after is None else digest_of(schema, after),
        "_changed": None if before is None else _changed_columns(before, after or before),
        "_source_ts": None,
        **dict(zip(schema.names, image, strict=True)),
    }


def _changed_columns(before: Row, after: Row) -> bytes:
    bits: int = sum(
        (old != new) << at for at, (old, new) in enumerate(zip(before, after, strict=True))
    )
    return bits.to_bytes(-(-len(before) // 8), "little")
