"""How a cell is written in JSON, and the column that it becomes.

The encoding says what the written value means, and the type what the column holds. The source type
is a text that changes whenever the meaning changes, so that a schema change is noticed (a
DECIMAL(12,2) and a DECIMAL(16,4) are both base64 text).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import ColumnType, Primitive

# Years 1 to 9999, the range in which all readers of Delta agree.
DAY_MIN, DAY_MAX = -719_162, 2_932_896
_DAY_MICROS = 86_400_000_000
MICROS_MIN, MICROS_MAX = DAY_MIN * _DAY_MICROS, (DAY_MAX + 1) * _DAY_MICROS - 1


class Encoding(StrEnum):
    """The ways in which a value is written: Kafka Connect's in JSON, then those of other formats,
    last Avro's.
    """

    PLAIN = "plain"
    BASE64 = "base64"
    DECIMAL_BASE64 = "decimal-base64"
    DECIMAL_TEXT = "decimal-text"
    DATE_DAYS = "date-days"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    TIMESTAMP_ZONED = "timestamp-zoned"
    TIME_MILLIS = "time-millis"
    TIME_NANOS = "time-nanos"
    DECIMAL_NUMBER = "decimal-number"
    BOOLEAN_NUMBER = "boolean-number"
    BITS_NUMBER = "bits-number"
    DATE_TEXT = "date-text"
    DATETIME_TEXT = "datetime-text"
    TIME_TEXT = "time-text"
    SET_LIST = "set-list"
    INTEGER_TEXT = "integer-text"
    FLOAT_TEXT = "float-text"
    BOOLEAN_TEXT = "boolean-text"
    BITS_TEXT = "bits-text"
    LATIN1_TEXT = "latin1-text"
    ENUM_TEXT = "enum-text"
    SET_TEXT = "set-text"
    GEOMETRY_TEXT = "geometry-text"
    WIDE_DECIMAL_TEXT = "wide-decimal-text"
    UNSIGNED_LONG = "unsigned-long"
    WIDE_DECIMAL_BASE64 = "wide-decimal-base64"
    GEOMETRY = "geometry"
    DECIMAL_BYTES = "decimal-bytes"
    WIDE_DECIMAL_BYTES = "wide-decimal-bytes"
    GEOMETRY_BYTES = "geometry-bytes"


_TEXT = (
    Encoding.BASE64, Encoding.DECIMAL_BASE64, Encoding.DECIMAL_TEXT, Encoding.TIMESTAMP_ZONED,
    Encoding.DATE_TEXT, Encoding.DATETIME_TEXT, Encoding.TIME_TEXT, Encoding.INTEGER_TEXT,
    Encoding.FLOAT_TEXT, Encoding.BOOLEAN_TEXT, Encoding.BITS_TEXT, Encoding.LATIN1_TEXT,
    Encoding.WIDE_DECIMAL_BASE64, Encoding.ENUM_TEXT, Encoding.SET_TEXT, Encoding.GEOMETRY_TEXT,
    Encoding.WIDE_DECIMAL_TEXT,
)  # fmt: skip
_WIDE_DIGITS = 76
GEOMETRY_MEMBERS = (("wkb", pa.string()), ("srid", pa.int64()))
POINT_MEMBERS = (("x", pa.float64()), ("y", pa.float64()), *GEOMETRY_MEMBERS)
# Wide enough for 64 bits.
_UNSIGNED = pa.decimal128(20, 0)
_PLAIN_JSON = {
    Primitive.BOOLEAN: pa.bool_(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.STRING: pa.string(),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a row image: its name, its type, and how its values are written. `members` are
    those of values that are objects. `fill` is the value that existing rows got when the column was
    added, if known. A value of fewer than `width` bytes had zeros at its end, which the source left
    out. `by_setting` says that its notation depends on a setting of the connector, which may be
    configured wrongly. `labels` are the members of an ENUM or SET, in order, if numbers are sent
    for them.
    """

    name: str
    type: ColumnType
    encoding: Encoding
    source_type: str
    members: tuple[tuple[str, pa.DataType], ...] = ()
    fill: str | None = None
    width: int = 0
    by_setting: bool = False
    labels: tuple[str, ...] = ()

    @property
    def json_type(self) -> pa.DataType:
        """The Arrow type in which the JSON is read; integers are read in a wide type and then
        checked.

        A decimal is read from a number or its digits as text, without rounding.
        """
        if self.encoding is Encoding.DECIMAL_NUMBER:
            return self.wide_decimal
        if self.encoding is Encoding.BITS_NUMBER:
            return _UNSIGNED
        if self.encoding is Encoding.GEOMETRY:
            return pa.struct(list(self.members or GEOMETRY_MEMBERS))
        if self.encoding is Encoding.SET_LIST:
            return pa.list_(pa.string())
        if self.encoding in _TEXT:
            return pa.string()
        if self.encoding is Encoding.PLAIN:
            return _PLAIN_JSON.get(self.type.kind, pa.int64())
        return pa.int64()

    @property
    def wide_decimal(self) -> pa.DataType:
        """The type in which a decimal's digits are read.

        Arrow counts digits before it appends zeros, and then overflows without an error (pyarrow
        26). So this type has room for as many zeros as the scale; the digits must be counted again.
        """
        return pa.decimal256(_WIDE_DIGITS - self.type.scale, self.type.scale)

    @property
    def field(self) -> SourceField:
        """The column as a field of a source schema."""
        return SourceField(self.name, self.type, self.source_type, self.fill)
