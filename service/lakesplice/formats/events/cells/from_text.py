"""Conversions of texts: dates, times, numbers and bits that a format writes as texts.

A MySQL TIMESTAMP arrives as a text with an offset from Debezium (`zoned_timestamp_text`), and as a
wall clock of UTC from Maxwell and Canal (`datetime_text`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.cells.binary import bytes_of_latin1
from lakesplice.formats.events.cells.column import Column, column_of, finite, matched, wrong_type
from lakesplice.formats.events.cells.enumerated import enum_values, set_values
from lakesplice.formats.events.cells.from_bytes import octets_of
from lakesplice.formats.events.cells.numbers import bits, exact_number, micros, plain
from lakesplice.formats.events.values.encoding import (
    Cell,
    Encoding,
)
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask


def cast_each(raw: pa.Array, to: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Cast texts; if the whole array can't be cast, cast its halves, so that only bad texts are
    lost.
    """
    try:
        return raw.cast(to), None
    except pa.ArrowInvalid:
        if len(raw) == 1:
            return pa.nulls(1, to), np.ones(1, np.bool_)
    middle = len(raw) // 2
    halves = [cast_each(half, to) for half in (raw.slice(0, middle), raw.slice(middle))]
    sizes = (middle, len(raw) - middle)
    masks = [
        np.zeros(size, np.bool_) if wrong is None else wrong
        for (_, wrong), size in zip(halves, sizes, strict=True)
    ]
    return pa.concat_arrays([values for values, _ in halves]), np.concatenate(masks)


_MICROS = pa.timestamp("us", tz="UTC")
_CLOCK = pa.timestamp("us")
# Year 0 is in none of Delta's readers.
_DATE = r"^(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-[0-9]{2}-[0-9]{2}$"
_DATETIME = _DATE[:-1] + r" [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"
_INTEGER = r"^-?[0-9]{1,19}$"
_UNSIGNED = r"^[0-9]{1,20}$"
_FLOAT = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$"
_TIME = (
    r"^(?P<sign>-?)(?P<hours>[0-9]{2,3}):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9])"
    r"(?:\.(?P<fraction>[0-9]{1,6}))?$"
)


def decimal_text(raw: pa.Array, cell: Cell) -> Column:
    """A decimal in digits."""
    values, wrong = cast_each(raw, cell.wide_decimal)
    ranged = exact_number(values, cell)
    return Column(ranged.values, (*wrong_type(wrong), *ranged.flaws))


def zoned_timestamp_text(raw: pa.Array, cell: Cell) -> Column:
    """A text with an offset (Debezium's ZonedTimestamp) becomes microseconds of UTC.

    The text may be within the years 1 to 9999, and the moment in UTC outside of them: that is
    marked.
    """
    moments, wrong = cast_each(raw, _MICROS)
    ranged = micros(moments.cast(pa.int64()), cell)
    return Column(ranged.values, (*wrong_type(wrong), *ranged.flaws))


def date_text(raw: pa.Array, _: Cell) -> Column:
    """A date as `YYYY-MM-DD`."""
    return matched(raw, _DATE, lambda texts: cast_each(texts, pa.date32()))


def datetime_text(raw: pa.Array, _: Cell) -> Column:
    """A text such as `2026-11-22 09:00:00` becomes microseconds, as if it were a time of UTC."""
    return matched(raw, _DATETIME, lambda texts: cast_each(texts, _CLOCK), _MICROS)


def time_text(raw: pa.Array, _: Cell) -> Column:
    """A TIME, up to 838 hours of either sign, becomes microseconds."""
    parts = pc.extract_regex(raw, _TIME)
    wrong = pc.and_(parts.is_null(), raw.is_valid())
    sign, hours, minutes, seconds, fraction = parts.flatten()
    hours, minutes, seconds = (part.cast(pa.int64()) for part in (hours, minutes, seconds))
    micros = pc.utf8_rpad(fraction, 6, "0").cast(pa.int64())
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    size = pc.add(pc.multiply(whole, 1_000_000), micros)
    values = pc.if_else(pc.equal(sign, "-"), pc.negate(size), size)
    flawed = wrong.to_numpy(zero_copy_only=False) if wrong.true_count else None
    return column_of(values, flawed, DeadReason.WRONG_TYPE)


def integer_text(raw: pa.Array, cell: Cell) -> Column:
    """An integer in digits."""
    read = matched(raw, _INTEGER, lambda texts: cast_each(texts, pa.int64()))
    ranged = plain(read.values, cell)
    return Column(ranged.values, (*read.flaws, *ranged.flaws))


def float_text(raw: pa.Array, cell: Cell) -> Column:
    """A floating point number in digits."""
    read = matched(raw, _FLOAT, lambda texts: cast_each(texts, cell.type.arrow))
    ranged = finite(read.values)
    return Column(ranged.values, (*read.flaws, *ranged.flaws))


def boolean_text(raw: pa.Array, _: Cell) -> Column:
    """A boolean as `0` or `1`."""
    return matched(raw, "^[01]$", lambda texts: (pc.equal(texts, "1"), None))


def bits_text(raw: pa.Array, cell: Cell) -> Column:
    """A BIT(n) as its number in digits."""
    read = matched(raw, _UNSIGNED, lambda texts: cast_each(texts, pa.decimal128(20, 0)))
    ranged = bits(read.values, cell)
    return Column(ranged.values, (*read.flaws, *ranged.flaws))


def latin1_text(raw: pa.Array, cell: Cell) -> Column:
    """Bytes as characters of Latin-1."""
    return octets_of(*bytes_of_latin1(raw), cell.width)


def enumerated(raw: pa.Array, cell: Cell) -> Column:
    """An ENUM or SET as the number that stands for its members."""
    read = enum_values if cell.encoding is Encoding.ENUM_TEXT else set_values
    values, wrong = read(raw, cell.labels)
    return column_of(values, wrong if wrong.any() else None, DeadReason.WRONG_TYPE)


def wide_decimal_text(raw: pa.Array, cell: Cell) -> Column:
    """A decimal with more digits than a decimal column can hold stays a text."""
    precision, scale = map(int, cell.source_type.rpartition("(")[2].rstrip(")").split(","))
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    pattern = rf"^-?[0-9]{{1,{max(precision - scale, 1)}}}{fraction}$"
    return matched(raw, pattern, lambda texts: (texts, None))


def set_list(raw: pa.Array, _: Cell) -> Column:
    """The members in the order of the column's definition, as MySQL shows a SET. No member has a
    comma.
    """
    values = pc.binary_join(raw, ",")
    wrong = pc.and_(values.is_null(), raw.is_valid())
    flawed = wrong.to_numpy(zero_copy_only=False) if wrong.true_count else None
    return column_of(values, flawed, DeadReason.WRONG_TYPE)
