"""Converts columns of Parquet and CSV files to the values that streaming gives the same columns.

A value is accepted if streaming could give the same column exactly this value; otherwise the file
is refused. For each type of a table:

    type               from Parquet                               from CSV
    whole numbers      whole numbers, decimals without fraction   digits
    decimal            decimals, whole numbers                    digits
    float              float32; float64 that a float32 equals     never: a text has six digits
    double             float64                                    digits
    boolean            booleans, 0 and 1                          0 and 1
    date               dates                                      2026-11-24
    timestamp          timestamps without a zone or in UTC        2026-11-24 09:00:00.000001, in UTC
    long of a TIME     times; whole numbers as the records have   -838:59:59.000001
    integer of a YEAR  as the records have: 1900 for zero         the same
    string             texts                                      the text
    binary             bytes                                      never: no text has every byte

What a number, a text or bytes mean is in a field's source type, as Connect's schemas have it. For
columns whose types are declared, `with_stated_types` puts it there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.cells.conversion import convert
from lakesplice.formats.events.cells.from_bytes import octets_of
from lakesplice.formats.events.values.declared_types import DECLARED, DeclaredType
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive

_ENCODINGS_OF_TEXTS = {
    **dict.fromkeys(WHOLE_NUMBERS, Encoding.INTEGER_TEXT),
    Primitive.DECIMAL: Encoding.DECIMAL_TEXT,
    Primitive.DOUBLE: Encoding.FLOAT_TEXT,
    Primitive.BOOLEAN: Encoding.BOOLEAN_TEXT,
    Primitive.DATE: Encoding.DATE_TEXT,
    Primitive.TIMESTAMP: Encoding.DATETIME_TEXT,
}
_MICRO_TIME = "io.debezium.time.MicroTime"
_YEAR = "io.debezium.time.Year"
_WIDE_DECIMAL = "org.apache.kafka.connect.data.Decimal("
_DIGITS_MAX = 76
_GEOMETRY = "io.debezium.data.geometry."
_UNSIGNED = "bigint unsigned"
# Of a BIGINT UNSIGNED, or of a DECIMAL of twenty digits: records in Connect don't say of which.
_UNSIGNED_DECIMAL = ColumnType(Primitive.DECIMAL, 20, 0)
# What declared types mean, as Connect's schemas say it.
_STATED = {
    **dict.fromkeys(("time", "time_of_day"), f"int64:{_MICRO_TIME}"),
    **dict.fromkeys(("geometry", "point"), f"struct:{_GEOMETRY}Geometry"),
    **dict.fromkeys(("unsigned_long", "bigintunsigned"), f"int64:{_UNSIGNED}"),
    "year": f"int32:{_YEAR}",
}
_DECLARED_WIDE = re.compile(r"wide_decimal\((\d+,\d+)\)")
_SIZED = re.compile(re.escape(DECLARED) + r"(binary|bit)\((\d+)\)")
# Moments that are sent in milliseconds: of a DATETIME of up to three digits.
_MILLIS = re.compile(r"(io\.debezium\.time|kafka\.connect\.data)\.Timestamp$|:timestamp_millis$")
# How values of these types are given to streaming, which requires a range of them; others are given
# as they are.
_RANGES = {
    Primitive.DATE: (pa.int32(), Encoding.DATE_DAYS),
    Primitive.TIMESTAMP: (pa.int64(), Encoding.TIMESTAMP_MICROS),
}
# The lowest and highest number of a column of MySQL's. Others show that a file has another unit, a
# YEAR of zero as it is in the database, or the bits of an unsigned number as a signed one.
_LIMITS = {
    _MICRO_TIME: (-3_020_399_999_999, 3_020_399_999_999),
    _YEAR: (1900, 2155),
    _UNSIGNED: (0, (1 << 64) - 1),
}
# Little-endian, one of MySQL's seven shapes, with a reference system or without.
_SHAPES = [bytes([1, shape, 0, 0, system]) for shape in range(1, 8) for system in (0, 0x20)]
# Streaming leaves out a reference system of 0.
_ZERO_SYSTEMS = [bytes([1, shape, 0, 0, 0x20, 0, 0, 0, 0]) for shape in range(1, 8)]
# A number in digits as streaming writes it; ZEROFILL puts zeros before it.
_PLAIN_DIGITS = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$"
_NEGATIVE_ZERO = r"^-[0.]*$"


class InexactError(Exception):
    """A column can't be converted exactly; the message says why, `remedy` what to do."""

    def __init__(
        self, message: str, remedy: str = "write it in a form that docs/bootstrap.md lists"
    ) -> None:
        super().__init__(message)
        self.remedy = remedy


def with_stated_types(schema: SourceSchema, declared: Mapping[str, DeclaredType]) -> SourceSchema:
    """Return a schema whose declared columns say what their values mean, for the functions here."""
    return replace(
        schema,
        fields=tuple(_with_stated_type(field, declared.get(field.name)) for field in schema.fields),
    )


def _with_stated_type(field: SourceField, declared: DeclaredType | None) -> SourceField:
    if declared is None or field.source_type != f"{DECLARED}{declared.name}":
        return field
    written = declared.written
    if wide := _DECLARED_WIDE.fullmatch(written):
        return replace(field, source_type=f"bytes:{_WIDE_DECIMAL}{wide[1]})")
    if _SIZED.fullmatch(f"{DECLARED}{written}"):
        return replace(field, source_type=f"{DECLARED}{written}")
    return replace(field, source_type=_STATED.get(written, field.source_type))


def exact_values(field: SourceField, values: pa.Array) -> pa.Array:
    """Return typed values of a file in the column's type; raises `InexactError` if one would
    change.
    """
    type_ = _type_of(field)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not _may_become(values.type, type_, field.source_type):
        raise InexactError(f"a {values.type} can't be a {type_.name} exactly")
    of = type_.arrow
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), of)
    try:
        return _as_streamed(field, _exact(values, type_))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InexactError(f"a value isn't a {type_.name}: {error}") from error


def _exact(values: pa.Array, type_: ColumnType) -> pa.Array:
    of = type_.arrow
    values.validate(full=True)
    if pa.types.is_time(values.type):
        return values.cast(pa.time64("us")).cast(pa.int64())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).cast(of)
    if type_.kind in WHOLE_NUMBERS and pa.types.is_decimal(values.type):
        # Without a scale, which would need further digits on the way back.
        values = values.cast(pa.decimal256(_DIGITS_MAX, 0))
    if type_.kind is Primitive.BOOLEAN and pa.types.is_integer(values.type):
        return _same(values, values.cast(of))
    if type_ == _UNSIGNED_DECIMAL and pa.types.is_signed_integer(values.type):
        _require_no_signed_bits(values)
    if type_.kind is Primitive.DECIMAL and pa.types.is_integer(values.type):
        # Wide enough for 64 bits, whatever the column holds.
        return _same(values, values.cast(pa.decimal128(20, 0)).cast(of))
    return _same(values, values.cast(of, safe=type_.kind is not Primitive.FLOAT))


def _require_no_signed_bits(values: pa.Array) -> None:
    negative = values.filter(pc.less(values, 0))
    if len(negative):
        raise InexactError(
            f"{negative[0]} may be a BIGINT UNSIGNED whose bits were read as a signed number",
            "write it as a decimal",
        )


def _as_streamed(field: SourceField, values: pa.Array) -> pa.Array:
    """Return the values if streaming could give the column each of them."""
    type_ = _type_of(field)
    if _GEOMETRY in field.source_type:
        known = _begins_with_one(values, _SHAPES)
        if pc.and_(pc.invert(known), values.is_valid()).true_count:
            raise InexactError("a value isn't little-endian well-known binary")
        if _begins_with_one(values, _ZERO_SYSTEMS).true_count:
            raise InexactError("a value has a reference system of 0, which streaming leaves out")
        return values
    sized = _SIZED.fullmatch(field.source_type)
    if sized and type_.kind is Primitive.BINARY:
        return _of_size(values, sized[1], int(sized[2]))
    of, encoding = _RANGES.get(type_.kind, (type_.arrow, Encoding.PLAIN))
    if type_.kind is Primitive.STRING and _WIDE_DECIMAL in field.source_type:
        _require_plain_digits(values)
        encoding = Encoding.WIDE_DECIMAL_TEXT
    raw = values.cast(of)
    (column,) = convert([(raw, Cell(field.name, type_, encoding, field.source_type))])
    if column.flaws:
        wrong, _ = column.flaws[0]
        first = raw.filter(pa.array(wrong))[0]
        raise InexactError(f"{first} isn't a {type_.name} as the connector would send it")
    _require_within(field, column.values)
    return column.values


def _begins_with_one(values: pa.Array, heads: list[bytes]) -> pa.Array:
    return pc.is_in(pc.binary_slice(values, 0, len(heads[0])), pa.array(heads))


def _of_size(values: pa.Array, kind: str, size: int) -> pa.Array:
    """Return the values of a BINARY(n) or BIT(n) as the stream stores them."""
    if kind == "bit":
        octets, bits = -(-size // 8), (size - 1) % 8 + 1
        last = pc.is_in(
            pc.binary_slice(values, octets - 1, octets),
            pa.array([bytes([number]) for number in range(1 << bits)]),
        )
        fit = pc.and_(pc.equal(pc.binary_length(values), octets), last).fill_null(True)
        if not pc.all(fit).as_py():
            raise InexactError(f"a value isn't a BIT({size}), the least significant byte first")
        return values
    column = octets_of(values, None, size)
    if column.flaws:
        raise InexactError(f"a value has more than the {size} bytes of its column")
    return column.values


def _require_plain_digits(texts: pa.Array) -> None:
    plain = pc.match_substring_regex(texts, _PLAIN_DIGITS)
    odd = pc.or_(pc.invert(plain), pc.match_substring_regex(texts, _NEGATIVE_ZERO))
    if odd.true_count:
        first = texts.filter(odd)[0].as_py()
        raise InexactError(f"{first!r} isn't a number as streaming writes it")


def _require_within(field: SourceField, values: pa.Array) -> None:
    if _MILLIS.search(field.source_type):
        _same(values, values.cast(pa.timestamp("ms", "UTC"), safe=False))
    for name, ends in _LIMITS.items():
        if not field.source_type.endswith(name):
            continue
        low, high = (pa.scalar(end, values.type) for end in ends)
        outside = values.filter(pc.or_(pc.less(values, low), pc.greater(values, high)))
        if len(outside):
            raise InexactError(f"{outside[0]} isn't a value as the connector would send it")


def values_of_texts(field: SourceField, texts: pa.Array) -> pa.Array:
    """Return the values of a CSV file's texts; raises `InexactError` if one doesn't fit the
    column's type.
    """
    type_ = _type_of(field)
    if type_.kind is Primitive.STRING or not len(texts):
        return _as_streamed(field, texts.cast(type_.arrow))
    encoding = _ENCODINGS_OF_TEXTS.get(type_.kind)
    if type_.kind is Primitive.LONG and "io.debezium.time." in field.source_type:
        encoding = Encoding.TIME_TEXT if field.source_type.endswith(_MICRO_TIME) else None
    if encoding is None:
        raise InexactError(f"no text is a {type_.name} exactly", "write Parquet")
    (column,) = convert([(texts, Cell(field.name, type_, encoding, field.source_type))])
    if column.flaws:
        wrong, _ = column.flaws[0]
        first = texts.filter(pa.array(wrong))[0].as_py()
        raise InexactError(f"{first!r} isn't a {type_.name}")
    found = column.values.cast(type_.arrow)
    _require_within(field, found)
    return found


def _type_of(field: SourceField) -> ColumnType:
    if field.type is None:
        raise InexactError("the topic's records don't state its type", "set it under `columns`")
    return field.type


def _may_become(of: pa.DataType, type_: ColumnType, source_type: str) -> bool:
    """Whether values of a file's type can have a column's type at all."""
    kind, is_whole = type_.kind, pa.types.is_integer(of)
    is_time = type_.kind is Primitive.LONG and source_type.endswith(_MICRO_TIME)
    allowed = {
        **dict.fromkeys(WHOLE_NUMBERS, is_whole or pa.types.is_decimal(of)),
        Primitive.DECIMAL: is_whole or pa.types.is_decimal(of),
        Primitive.FLOAT: pa.types.is_float32(of) or pa.types.is_float64(of),
        Primitive.DOUBLE: pa.types.is_float64(of),
        Primitive.BOOLEAN: is_whole or pa.types.is_boolean(of),
        Primitive.DATE: pa.types.is_date(of),
        Primitive.TIMESTAMP: pa.types.is_timestamp(of) and of.tz in (None, "UTC", "+00:00"),
        Primitive.STRING: pa.types.is_string(of) or pa.types.is_large_string(of),
        Primitive.BINARY: _is_octets(of),
    }
    return bool(allowed[kind] or pa.types.is_null(of) or (is_time and pa.types.is_time(of)))


def _is_octets(of: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_kind(of) for is_kind in kinds)


def _same(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return the values if converting them back gives the same."""
    back = after.cast(before.type, safe=False)
    unequal = pc.fill_null(pc.not_equal(back, before), False)
    if unequal.true_count:
        raise InexactError(f"{before.filter(unequal)[0]} changes in the conversion")
    return after
