"""Partition columns: which columns a table can have as such, and which partition a row is in.

Every base file has one value of each. The log has each value as text, and null for null; an empty
text is null there as well, since the log can't distinguish them. Files keep the columns, so our own
readers see the empty text. Source: the Delta protocol, "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UnsupportedError
from lakesplice.model.address import Partition
from lakesplice.model.arrays import Integers
from lakesplice.model.parking import ParkCode
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import WHOLE_NUMBERS, Primitive
from lakesplice.planning.rows.row_digest import contiguous
from lakesplice.planning.shape.computing.moments import clock

# Of floating point equal values have several spellings; delta-rs fails at decimals between -1 and
# 0, however they are written; binary has no spelling.
_KINDS = frozenset(
    (Primitive.STRING, *WHOLE_NUMBERS, Primitive.DATE, Primitive.TIMESTAMP, Primitive.BOOLEAN)
)
_DAYS = (-719162, 2932896)  # 0001-01-01 to 9999-12-31: readers disagree about others
# All digits, so that a moment has one spelling; without the zone readers would take their own.
_MOMENT = "%Y-%m-%dT%H:%M:%SZ"
_RESET = "or give `lakesplice reset --anew` to read it again"

Problem = tuple[ParkCode, str]


@dataclass(frozen=True)
class Partitions:
    """The partitions of some rows: row i is in `values[codes[i]]`; each value occurs once."""

    values: tuple[Partition, ...]
    codes: Integers


def partitions_of(rows: pa.Table, schema: TableSchema) -> Partitions:
    """Return the partition of each row; `rows` has at least the partition columns.

    `UnsupportedError` for a date or moment that readers of the log read differently.
    """
    if not rows.num_rows:
        return Partitions((), np.empty(0, np.int64))
    spelled = [_spelled(rows, name) for name in schema.partitioned_by]
    found, codes = np.unique(
        np.stack([column for column, _ in spelled], axis=1), axis=0, return_inverse=True
    )
    values = tuple(
        tuple(words[code] for code, (_, words) in zip(codes_of, spelled, strict=True))
        for codes_of in found.tolist()
    )
    return Partitions(values, codes.reshape(-1).astype(np.int64))


def partitioned(
    current: TableSchema, next_schema: TableSchema, by: Sequence[str]
) -> TableSchema | Problem:
    """Return the next schema, or why it is impossible.

    A table's first schema gets columns of its source to be partitioned `by`; later ones may not
    rename, retype or drop any of them.
    """
    if not current.columns:
        return _born(next_schema, by)
    return _moved_apart(current, next_schema) or next_schema


def partitioning_changed(current: TableSchema, by: Sequence[str]) -> Problem | None:
    """Return why an existing table can't continue with other partition columns; None if they are
    the same.
    """
    names = {column.name: column.source_name for column in current.columns}
    is_by = [names[stored] for stored in current.partitioned_by]
    if not current.columns or is_by == list(by):
        return None
    return (
        ParkCode.SCHEMA_CHANGE,
        f"shape.partition_by is {list(by)}, and the table is partitioned by {is_by}, which can't"
        f" change: set it back and give `lakesplice unpark`, {_RESET}",
    )


def _born(schema: TableSchema, by: Sequence[str]) -> TableSchema | Problem:
    for name in by:
        column = schema.by_source.get(name)
        if column is None:
            return (
                ParkCode.UNSUPPORTED,
                f"column={name!r} of shape.partition_by isn't among the columns that the table gets"
                " from its source; correct it and give `lakesplice unpark`",
            )
        if column.type.kind not in _KINDS:
            return (
                ParkCode.UNSUPPORTED,
                f"column={name!r} of type {column.type.name} can't be a partition column, since"
                " readers disagree on how its values are written; compute a text, a date or a"
                " whole number from it (shape.computed), and partition by that",
            )
    return replace(schema, partitioned_by=tuple(schema.by_source[name].name for name in by))


def dropped(column: Column) -> Problem:
    """Return why a table can't continue without one of its partition columns."""
    return (
        ParkCode.SCHEMA_CHANGE,
        f"column={column.source_name!r} is a partition column, and it was renamed, dropped or got"
        f" another type at the source: undo that at the source, {_RESET}",
    )


def _moved_apart(current: TableSchema, next_schema: TableSchema) -> Problem | None:
    now = {column.id: column for column in next_schema.columns}
    for column in current.columns:
        if column.name in current.partitioned_by:
            after = now[column.id]
            if (after.name, after.source_name, after.type, after.hidden) != (
                column.name,
                column.source_name,
                column.type,
                column.hidden,
            ):
                return dropped(column)
    return None


def _spelled(rows: pa.Table, name: str) -> tuple[Integers, list[str | None]]:
    """Return a column's values as numbers, and the log's text of each."""
    values = contiguous(rows.column(name))
    if pa.types.is_temporal(values.type):
        _require_days(values.cast(pa.date32(), safe=False), name)
    if pa.types.is_timestamp(values.type):
        values = pc.strftime(clock(values), _MOMENT)
    encoded = values.cast(pa.string()).dictionary_encode()
    words = [None if word == "" else word for word in encoded.dictionary.to_pylist()]
    # Null, and with it an empty text, has the number after the last word's.
    none = len(words)
    codes = np.asarray(encoded.indices.fill_null(none).to_numpy(), np.int64)
    if None in words:
        codes = np.where(codes == words.index(None), none, codes)
    return codes, [*words, None]


def _require_days(values: pa.Array, name: str) -> None:
    days = values.cast(pa.int32())
    beyond = pc.or_(pc.less(days, _DAYS[0]), pc.greater(days, _DAYS[1]))
    if pc.any(beyond).as_py():
        raise UnsupportedError(
            "a date outside of the years 1 to 9999 can't be a partition's value; correct it at"
            " the source, or partition by another column",
            column=name,
        )
