"""Conversions of numbers: integers, decimals, bits, and dates and times sent as numbers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.cells.column import Column, column_of, finite, ranged
from lakesplice.formats.events.cells.decimals import (
    decimal_limits,
)
from lakesplice.formats.events.values.encoding import (
    DAY_MAX,
    DAY_MIN,
    MICROS_MAX,
    MICROS_MIN,
    Cell,
)
from lakesplice.model.types import Primitive

_MICROS = pa.timestamp("us", tz="UTC")


def plain(raw: pa.Array, cell: Cell) -> Column:
    """A number that has its column's type already, or a wider one."""
    if may_overflow(cell):
        return finite(raw)
    if raw.type == cell.type.arrow:
        return Column(raw)
    limits = np.iinfo(cell.type.arrow.to_pandas_dtype())
    return ranged(
        raw, int(limits.min), int(limits.max), lambda values: values.cast(cell.type.arrow)
    )


def may_overflow(cell: Cell) -> bool:
    """Return whether numbers that are read for a cell can be beyond its type's range: Arrow reads
    NaN and Infinity in JSON, too.
    """
    return cell.type.kind in (Primitive.FLOAT, Primitive.DOUBLE)


def unsigned_long(raw: pa.Array, cell: Cell) -> Column:
    """A number of 64 bits that was sent as if it were signed."""
    return Column(raw.view(pa.uint64()).cast(cell.type.arrow))


def exact_number(raw: pa.Array, cell: Cell) -> Column:
    """A decimal that was sent as a number."""
    least, most = decimal_limits(cell.type, raw.type)
    beyond = pc.or_(pc.less(raw, least), pc.greater(raw, most)).fill_null(False)
    values = pc.if_else(beyond, pa.scalar(None, raw.type), raw) if beyond.true_count else raw
    flawed = beyond.to_numpy(zero_copy_only=False) if beyond.true_count else None
    return column_of(values.cast(cell.type.arrow), flawed)


def boolean(raw: pa.Array, _: Cell) -> Column:
    """A boolean as 0 or 1."""
    return ranged(raw, 0, 1, lambda values: values.cast(pa.bool_()))


def bits(raw: pa.Array, cell: Cell) -> Column:
    """A BIT(n)'s number becomes its n bits in whole bytes, the least significant byte first."""
    width = int(cell.source_type.partition("(")[2].rstrip(")"))
    beyond = pc.or_(pc.less(raw, 0), pc.greater_equal(raw, Decimal(1 << width))).fill_null(False)
    values = pc.if_else(beyond, pa.scalar(None, raw.type), raw)
    numbers = values.cast(pa.uint64()).fill_null(0).to_numpy().astype("<u8")
    size = -(-width // 8)
    octets = numbers.view(np.uint8).reshape(-1, 8)[:, :size]
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(raw), [None, pa.py_buffer(np.ascontiguousarray(octets))]
    ).cast(pa.binary())
    bits = pc.if_else(values.is_valid(), fixed, pa.scalar(None, pa.binary()))
    return column_of(bits, beyond.to_numpy(zero_copy_only=False) if beyond.true_count else None)


def days(raw: pa.Array, _: Cell) -> Column:
    """A date as days since 1970."""
    return ranged(raw, DAY_MIN, DAY_MAX, lambda days: days.cast(pa.int32()).cast(pa.date32()))


def millis(raw: pa.Array, _: Cell) -> Column:
    """A moment as milliseconds since 1970."""
    least, most = MICROS_MIN // 1000, MICROS_MAX // 1000
    return ranged(raw, least, most, lambda ms: pc.multiply(ms, 1000).cast(_MICROS))


def micros(raw: pa.Array, _: Cell) -> Column:
    """A moment as microseconds since 1970."""
    return ranged(raw, MICROS_MIN, MICROS_MAX, lambda us: us.cast(_MICROS))


def nanos(raw: pa.Array, _: Cell) -> Column:
    """A moment as nanoseconds; if these aren't whole microseconds, the value is wrong."""
    micros = pc.divide(raw, 1000)
    floor = pc.if_else(pc.greater(pc.multiply(micros, 1000), raw), pc.subtract(micros, 1), micros)
    inexact = pc.not_equal(pc.multiply(floor, 1000), raw).fill_null(False)
    values = pc.if_else(inexact, pa.scalar(None, raw.type), floor).cast(_MICROS)
    return column_of(values, inexact.to_numpy(zero_copy_only=False) if inexact.true_count else None)


def time_millis(raw: pa.Array, _: Cell) -> Column:
    """A TIME as milliseconds."""
    most = np.iinfo(np.int64).max // 1000
    return ranged(raw, -most, most, lambda ms: pc.multiply(ms, 1000))


def time_nanos(raw: pa.Array, cell: Cell) -> Column:
    """A TIME as nanoseconds."""
    moments = nanos(raw, cell)
    return Column(moments.values.cast(pa.int64()), moments.flaws)
