"""Converts columns of JSON values to their exact types; a value that doesn't fit is marked, never
altered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from operator import attrgetter

import pyarrow as pa

from lakesplice.formats.events.cells.column import Column
from lakesplice.formats.events.cells.from_bytes import (
    base64,
    decimal_base64,
    decimal_bytes,
    geometry,
    geometry_bytes,
    geometry_text,
    wide_decimal_base64,
    wide_decimal_bytes,
)
from lakesplice.formats.events.cells.from_text import (
    bits_text,
    boolean_text,
    date_text,
    datetime_text,
    decimal_text,
    enumerated,
    float_text,
    integer_text,
    latin1_text,
    set_list,
    time_text,
    wide_decimal_text,
    zoned_timestamp_text,
)
from lakesplice.formats.events.cells.numbers import (
    bits,
    boolean,
    days,
    exact_number,
    may_overflow,
    micros,
    millis,
    nanos,
    plain,
    time_millis,
    time_nanos,
    unsigned_long,
)
from lakesplice.formats.events.values.encoding import (
    Cell,
    Encoding,
)

_TOGETHER_ROWS_MAX = 2048


def convert(columns: Sequence[tuple[pa.Array, Cell]]) -> list[Column]:
    """Return columns in the exact types of their cells; each was read as its cell's `json_type`.

    All have the same length, and so have the results, value for value. A column's result depends
    only on itself, not on the number of rows or the other columns.
    """
    if not columns or not 0 < len(columns[0][0]) <= _TOGETHER_ROWS_MAX:
        return [_CONVERSIONS[cell.encoding](raw, cell) for raw, cell in columns]
    converted: list[Column | None] = [None] * len(columns)
    alike: dict[tuple[object, pa.DataType], list[int]] = defaultdict(list)
    for at, (raw, cell) in enumerate(columns):
        alike[_kind(cell), raw.type].append(at)
    for places in alike.values():
        unnamed = replace(columns[places[0]][1], name="", fill=None)
        together = _together([columns[at][0] for at in places], unnamed)
        for at, column in zip(places, together, strict=True):
            converted[at] = column
    return [column for column in converted if column is not None]


# Everything that a conversion may depend on: columns that differ in it are converted separately.
_kind = attrgetter(*(field.name for field in fields(Cell) if field.name not in ("name", "fill")))


def _together(raws: list[pa.Array], cell: Cell) -> list[Column]:
    """Convert equal columns as one: for few rows most of the cost is the conversion's own."""
    if (
        cell.encoding is Encoding.PLAIN
        and raws[0].type == cell.type.arrow
        and not may_overflow(cell)
    ):
        return [Column(raw) for raw in raws]
    rows = len(raws[0])
    whole = _CONVERSIONS[cell.encoding](pa.concat_arrays(raws), cell)
    columns = []
    for start in range(0, rows * len(raws), rows):
        # A copy, so that no column keeps the others' values in memory.
        values = pa.concat_arrays([whole.values.slice(start, rows)])
        flaws = tuple((wrong[start : start + rows], reason) for wrong, reason in whole.flaws)
        columns.append(Column(values, flaws))
    return columns


_CONVERSIONS: dict[Encoding, Callable[[pa.Array, Cell], Column]] = {
    Encoding.PLAIN: plain,
    Encoding.BASE64: base64,
    Encoding.DECIMAL_BASE64: decimal_base64,
    Encoding.DECIMAL_TEXT: decimal_text,
    Encoding.DATE_DAYS: days,
    Encoding.TIMESTAMP_MILLIS: millis,
    Encoding.TIMESTAMP_MICROS: micros,
    Encoding.TIMESTAMP_NANOS: nanos,
    Encoding.TIMESTAMP_ZONED: zoned_timestamp_text,
    Encoding.TIME_MILLIS: time_millis,
    Encoding.TIME_NANOS: time_nanos,
    Encoding.DECIMAL_NUMBER: exact_number,
    Encoding.BOOLEAN_NUMBER: boolean,
    Encoding.BITS_NUMBER: bits,
    Encoding.DATE_TEXT: date_text,
    Encoding.DATETIME_TEXT: datetime_text,
    Encoding.TIME_TEXT: time_text,
    Encoding.SET_LIST: set_list,
    Encoding.INTEGER_TEXT: integer_text,
    Encoding.FLOAT_TEXT: float_text,
    Encoding.BOOLEAN_TEXT: boolean_text,
    Encoding.BITS_TEXT: bits_text,
    Encoding.LATIN1_TEXT: latin1_text,
    Encoding.DECIMAL_BYTES: decimal_bytes,
    Encoding.ENUM_TEXT: enumerated,
    Encoding.SET_TEXT: enumerated,
    Encoding.GEOMETRY_TEXT: geometry_text,
    Encoding.WIDE_DECIMAL_TEXT: wide_decimal_text,
    Encoding.UNSIGNED_LONG: unsigned_long,
    Encoding.WIDE_DECIMAL_BASE64: wide_decimal_base64,
    Encoding.WIDE_DECIMAL_BYTES: wide_decimal_bytes,
    Encoding.GEOMETRY: geometry,
    Encoding.GEOMETRY_BYTES: geometry_bytes,
}
