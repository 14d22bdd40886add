"""From columns as JSON gives them to their exact types; what doesn't fit is marked, never bent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.cells.binary import bytes_of_latin1, decode_base64, padded
from lakesplice.formats.events.cells.casting import cast_each
from lakesplice.formats.events.cells.decimals import (
    decimal_limits,
    decimals_from_bytes,
    digits_from_bytes,
)
from lakesplice.formats.events.cells.enumerated import enum_values, set_values
from lakesplice.formats.events.cells.geometry import extended_wkb, geometry_members, of_mysql
from lakesplice.formats.events.json_reading.texts import Mask
from lakesplice.formats.events.values.blocks import DeadReason
from lakesplice.formats.events.values.encoding import (
    DAY_MAX,
    DAY_MIN,
    MICROS_MAX,
    MICROS_MIN,
    Cell,
    Encoding,
)
from lakesplice.model.types import Kind

_TOGETHER_ROWS_MAX = 2048
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


@dataclass(frozen=True)
class Column:
    """A column. `flaws` mark values that aren't of its type, null in `values`; and why."""

    values: pa.Array
    flaws: tuple[tuple[Mask, DeadReason], ...] = ()


def _column(
    values: pa.Array, wrong: Mask | None, reason: DeadReason = DeadReason.OUT_OF_RANGE
) -> Column:
    return Column(values) if wrong is None else Column(values, ((wrong, reason),))


def _unread(wrong: Mask | None) -> tuple[tuple[Mask, DeadReason], ...]:
    return () if wrong is None else ((wrong, DeadReason.WRONG_TYPE),)


def convert(columns: Sequence[tuple[pa.Array, Cell]]) -> list[Column]:
    """Return columns, each read as its cell's `json_type`, in their cells' exact types.

    All are of one length, and so are the results, value for value. A column's result depends on
    itself alone, not on the number of rows nor on the columns beside it.
    """
    if not columns or len(columns[0][0]) > _TOGETHER_ROWS_MAX:
        return [_CONVERSIONS[cell.encoding](raw, cell) for raw, cell in columns]
    converted: list[Column | None] = [None] * len(columns)
    alike: dict[tuple[Cell, pa.DataType], list[int]] = defaultdict(list)
    for at, (raw, cell) in enumerate(columns):
        alike[_unnamed(cell), raw.type].append(at)
    for (kind, _), places in alike.items():
        together = _together([columns[at][0] for at in places], kind)
        for at, column in zip(places, together, strict=True):
            converted[at] = column
    return [column for column in converted if column is not None]


def _unnamed(cell: Cell) -> Cell:
    """Return all that a conversion may look at: columns that differ in it are converted apart."""
    return replace(cell, name="", fill=None)


def _together(raws: list[pa.Array], cell: Cell) -> list[Column]:
    """Convert columns that are alike as one: of few rows a conversion's own cost is what counts."""
    if (
        cell.encoding is Encoding.PLAIN
        and raws[0].type == cell.type.arrow
        and not _may_overflow(cell)
    ):
        return [Column(raw) for raw in raws]
    rows = len(raws[0])
    whole = _CONVERSIONS[cell.encoding](pa.concat_arrays(raws), cell)
    columns = []
    for start in range(0, rows * len(raws), rows):
        # A copy, so that no column carries the others' values along.
        values = pa.concat_arrays([whole.values.slice(start, rows)])
        flaws = tuple((wrong[start : start + rows], reason) for wrong, reason in whole.flaws)
        columns.append(Column(values, flaws))
    return columns


def _may_overflow(cell: Cell) -> bool:
    return cell.type.kind is Kind.FLOAT


def _plain(raw: pa.Array, cell: Cell) -> Column:
    if _may_overflow(cell):
        return _finite(raw)
    if raw.type == cell.type.arrow:
        return Column(raw)
    limits = np.iinfo(cell.type.arrow.to_pandas_dtype())
    return _ranged(
        raw, int(limits.min), int(limits.max), lambda values: values.cast(cell.type.arrow)
    )


def _finite(raw: pa.Array) -> Column:
    """A number beyond the range of a float reads as infinite; MySQL has no infinity and no NaN."""
    infinite = pc.invert(pc.is_finite(raw)).fill_null(False)
    if not infinite.true_count:
        return Column(raw)
    values = pc.if_else(infinite, pa.scalar(None, raw.type), raw)
    return _column(values, infinite.to_numpy(zero_copy_only=False))


def _ranged(raw: pa.Array, least: int, most: int, finish: Callable[[pa.Array], pa.Array]) -> Column:
    """Finish numbers within a closed range; others are wrong."""
    found = pc.min_max(raw)
    if raw.null_count == len(raw) or (
        found["min"].as_py() >= least and found["max"].as_py() <= most
    ):
        return Column(finish(raw))
    beyond = pc.or_(pc.less(raw, least), pc.greater(raw, most)).fill_null(False)
    values = pc.if_else(beyond, pa.scalar(None, raw.type), raw)
    return _column(finish(values), beyond.to_numpy(zero_copy_only=False))


def _base64(raw: pa.Array, cell: Cell) -> Column:
    return _octets(*decode_base64(raw), cell.width)


def _decimal_base64(raw: pa.Array, cell: Cell) -> Column:
    unscaled, no_base64 = decode_base64(raw)
    values, beyond = decimals_from_bytes(unscaled, cell.type)
    flaws = [(beyond, DeadReason.OUT_OF_RANGE)] if beyond.any() else []
    if no_base64 is not None:
        flaws.append((no_base64, DeadReason.WRONG_TYPE))
    return Column(values, tuple(flaws))


def _unsigned_long(raw: pa.Array, cell: Cell) -> Column:
    """A number of 64 bits that was sent as if it were signed."""
    return Column(raw.view(pa.uint64()).cast(cell.type.arrow))


def _wide_decimal_bytes(raw: pa.Array, cell: Cell) -> Column:
    precision, scale = map(int, cell.source_type.rpartition("(")[2].rstrip(")").split(","))
    values, wrong = digits_from_bytes(raw, scale, precision)
    return _column(values, wrong if wrong.any() else None)


def _wide_decimal_base64(raw: pa.Array, cell: Cell) -> Column:
    unscaled, no_base64 = decode_base64(raw)
    wide = _wide_decimal_bytes(unscaled, cell)
    return Column(wide.values, (*_unread(no_base64), *wide.flaws))


def _geometry(raw: pa.Array, cell: Cell) -> Column:
    members = geometry_members(raw)
    wkb, no_base64 = decode_base64(members["wkb"])
    plain = [wkb, members["srid"]]
    shaped = _geometry_bytes(
        pa.StructArray.from_arrays(plain, ["wkb", "srid"], mask=raw.is_null()), cell
    )
    return Column(shaped.values, (*_unread(no_base64), *shaped.flaws))


def _geometry_bytes(raw: pa.Array, _: Cell) -> Column:
    values, wrong = extended_wkb(raw)
    return _column(values, wrong if wrong.any() else None, DeadReason.WRONG_TYPE)


def _decimal_bytes(raw: pa.Array, cell: Cell) -> Column:
    values, beyond = decimals_from_bytes(raw, cell.type)
    return _column(values, beyond if beyond.any() else None)


def _decimal_text(raw: pa.Array, cell: Cell) -> Column:
    values, wrong = cast_each(raw, cell.wide_decimal)
    ranged = _number(values, cell)
    return Column(ranged.values, (*_unread(wrong), *ranged.flaws))


def _date(raw: pa.Array, _: Cell) -> Column:
    return _ranged(raw, DAY_MIN, DAY_MAX, lambda days: days.cast(pa.int32()).cast(pa.date32()))


def _millis(raw: pa.Array, _: Cell) -> Column:
    least, most = MICROS_MIN // 1000, MICROS_MAX // 1000
    return _ranged(raw, least, most, lambda ms: pc.multiply(ms, 1000).cast(_MICROS))


def _micros(raw: pa.Array, _: Cell) -> Column:
    return _ranged(raw, MICROS_MIN, MICROS_MAX, lambda us: us.cast(_MICROS))


def _nanos(raw: pa.Array, _: Cell) -> Column:
    """Nanoseconds that aren't whole microseconds have no exact place."""
    micros = pc.divide(raw, 1000)
    floor = pc.if_else(pc.greater(pc.multiply(micros, 1000), raw), pc.subtract(micros, 1), micros)
    inexact = pc.not_equal(pc.multiply(floor, 1000), raw).fill_null(False)
    values = pc.if_else(inexact, pa.scalar(None, raw.type), floor).cast(_MICROS)
    return _column(values, inexact.to_numpy(zero_copy_only=False) if inexact.true_count else None)


def _time_millis(raw: pa.Array, _: Cell) -> Column:
    most = np.iinfo(np.int64).max // 1000
    return _ranged(raw, -most, most, lambda ms: pc.multiply(ms, 1000))


def _time_nanos(raw: pa.Array, cell: Cell) -> Column:
    moments = _nanos(raw, cell)
    return Column(moments.values.cast(pa.int64()), moments.flaws)


def _zoned(raw: pa.Array, cell: Cell) -> Column:
    """A moment within year 1 or 9999 may lie outside by its offset."""
    moments, wrong = cast_each(raw, _MICROS)
    ranged = _micros(moments.cast(pa.int64()), cell)
    return Column(ranged.values, (*_unread(wrong), *ranged.flaws))


def _number(raw: pa.Array, cell: Cell) -> Column:
    least, most = decimal_limits(cell.type, raw.type)
    beyond = pc.or_(pc.less(raw, least), pc.greater(raw, most)).fill_null(False)
    values = pc.if_else(beyond, pa.scalar(None, raw.type), raw) if beyond.true_count else raw
    flawed = beyond.to_numpy(zero_copy_only=False) if beyond.true_count else None
    return _column(values.cast(cell.type.arrow), flawed)


def _boolean(raw: pa.Array, _: Cell) -> Column:
    return _ranged(raw, 0, 1, lambda values: values.cast(pa.bool_()))


def _bits(raw: pa.Array, cell: Cell) -> Column:
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
    return _column(bits, beyond.to_numpy(zero_copy_only=False) if beyond.true_count else None)


def _date_text(raw: pa.Array, _: Cell) -> Column:
    return _matched(raw, _DATE, lambda texts: cast_each(texts, pa.date32()))


def _datetime_text(raw: pa.Array, _: Cell) -> Column:
    """A wall clock is kept as if it were UTC's."""
    return _matched(raw, _DATETIME, lambda texts: cast_each(texts, _CLOCK), _MICROS)


def _time_text(raw: pa.Array, _: Cell) -> Column:
    parts = pc.extract_regex(raw, _TIME)
    wrong = pc.and_(parts.is_null(), raw.is_valid())
    sign, hours, minutes, seconds, fraction = parts.flatten()
    hours, minutes, seconds = (part.cast(pa.int64()) for part in (hours, minutes, seconds))
    micros = pc.utf8_rpad(fraction, 6, "0").cast(pa.int64())
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    size = pc.add(pc.multiply(whole, 1_000_000), micros)
    values = pc.if_else(pc.equal(sign, "-"), pc.negate(size), size)
    flawed = wrong.to_numpy(zero_copy_only=False) if wrong.true_count else None
    return _column(values, flawed, DeadReason.WRONG_TYPE)


def _integer_text(raw: pa.Array, cell: Cell) -> Column:
    read = _matched(raw, _INTEGER, lambda texts: cast_each(texts, pa.int64()))
    ranged = _plain(read.values, cell)
    return Column(ranged.values, (*read.flaws, *ranged.flaws))


def _float_text(raw: pa.Array, cell: Cell) -> Column:
    read = _matched(raw, _FLOAT, lambda texts: cast_each(texts, cell.type.arrow))
    ranged = _finite(read.values)
    return Column(ranged.values, (*read.flaws, *ranged.flaws))


def _boolean_text(raw: pa.Array, _: Cell) -> Column:
    return _matched(raw, "^[01]$", lambda texts: (pc.equal(texts, "1"), None))


def _bits_text(raw: pa.Array, cell: Cell) -> Column:
    read = _matched(raw, _UNSIGNED, lambda texts: cast_each(texts, pa.decimal128(20, 0)))
    bits = _bits(read.values, cell)
    return Column(bits.values, (*read.flaws, *bits.flaws))


def _latin1_text(raw: pa.Array, cell: Cell) -> Column:
    return _octets(*bytes_of_latin1(raw), cell.width)


def _octets(values: pa.Array, wrong: Mask | None, width: int) -> Column:
    values, longer = padded(values, width)
    return Column(values, (*_unread(wrong), *_column(values, longer).flaws))


def _enumerated(raw: pa.Array, cell: Cell) -> Column:
    read = enum_values if cell.encoding is Encoding.ENUM_TEXT else set_values
    values, wrong = read(raw, cell.labels)
    return _column(values, wrong if wrong.any() else None, DeadReason.WRONG_TYPE)


def _geometry_text(raw: pa.Array, cell: Cell) -> Column:
    octets, wrong = bytes_of_latin1(raw)
    shaped = _geometry_bytes(of_mysql(octets), cell)
    return Column(shaped.values, (*_unread(wrong), *shaped.flaws))


def _wide_decimal_text(raw: pa.Array, cell: Cell) -> Column:
    """Digits beyond what a decimal column holds stay text."""
    precision, scale = map(int, cell.source_type.rpartition("(")[2].rstrip(")").split(","))
    fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
    pattern = rf"^-?[0-9]{{1,{max(precision - scale, 1)}}}{fraction}$"
    return _matched(raw, pattern, lambda texts: (texts, None))


def _set_list(raw: pa.Array, _: Cell) -> Column:
    """The members in the column's own order, as MySQL shows a SET; none of them holds a comma."""
    values = pc.binary_join(raw, ",")
    wrong = pc.and_(values.is_null(), raw.is_valid())
    flawed = wrong.to_numpy(zero_copy_only=False) if wrong.true_count else None
    return _column(values, flawed, DeadReason.WRONG_TYPE)


def _matched(
    raw: pa.Array,
    pattern: str,
    finish: Callable[[pa.Array], tuple[pa.Array, Mask | None]],
    to: pa.DataType | None = None,
) -> Column:
    """Finish the texts of a pattern; others, and those of it that are no such value, are wrong."""
    other = pc.invert(pc.match_substring_regex(raw, pattern)).fill_null(False)
    texts = pc.if_else(other, pa.scalar(None, pa.string()), raw) if other.true_count else raw
    values, wrong = finish(texts)
    if other.true_count:
        flawed = other.to_numpy(zero_copy_only=False)
        wrong = flawed if wrong is None else wrong | flawed
    return _column(values if to is None else values.cast(to), wrong, DeadReason.WRONG_TYPE)


_CONVERSIONS: dict[Encoding, Callable[[pa.Array, Cell], Column]] = {
    Encoding.PLAIN: _plain,
    Encoding.BASE64: _base64,
    Encoding.DECIMAL_BASE64: _decimal_base64,
    Encoding.DECIMAL_TEXT: _decimal_text,
    Encoding.DATE_DAYS: _date,
    Encoding.TIMESTAMP_MILLIS: _millis,
    Encoding.TIMESTAMP_MICROS: _micros,
    Encoding.TIMESTAMP_NANOS: _nanos,
    Encoding.TIMESTAMP_ZONED: _zoned,
    Encoding.TIME_MILLIS: _time_millis,
    Encoding.TIME_NANOS: _time_nanos,
    Encoding.DECIMAL_NUMBER: _number,
    Encoding.BOOLEAN_NUMBER: _boolean,
    Encoding.BITS_NUMBER: _bits,
    Encoding.DATE_TEXT: _date_text,
    Encoding.DATETIME_TEXT: _datetime_text,
    Encoding.TIME_TEXT: _time_text,
    Encoding.SET_LIST: _set_list,
    Encoding.INTEGER_TEXT: _integer_text,
    Encoding.FLOAT_TEXT: _float_text,
    Encoding.BOOLEAN_TEXT: _boolean_text,
    Encoding.BITS_TEXT: _bits_text,
    Encoding.LATIN1_TEXT: _latin1_text,
    Encoding.DECIMAL_BYTES: _decimal_bytes,
    Encoding.ENUM_TEXT: _enumerated,
    Encoding.SET_TEXT: _enumerated,
    Encoding.GEOMETRY_TEXT: _geometry_text,
    Encoding.WIDE_DECIMAL_TEXT: _wide_decimal_text,
    Encoding.UNSIGNED_LONG: _unsigned_long,
    Encoding.WIDE_DECIMAL_BASE64: _wide_decimal_base64,
    Encoding.WIDE_DECIMAL_BYTES: _wide_decimal_bytes,
    Encoding.GEOMETRY: _geometry,
    Encoding.GEOMETRY_BYTES: _geometry_bytes,
}
