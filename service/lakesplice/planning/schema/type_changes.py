"""Changes of a column's type: which ones keep every stored value, and what the column becomes.

No event shows the rows that an ALTER converts, so a table may follow a change of type only if the
source left every value as it was. A change that rounds, cuts or reinterprets values is refused.
What a value means follows from the source's type together with ours: the same number may count
milliseconds or days.

    family     members                             may become
    whole      TINYINT to BIGINT, signed or not    a wider one, DECIMAL, FLOAT, DOUBLE, text
    fixed      DECIMAL                             one with more digits before or after the point
    floating   FLOAT, DOUBLE                       FLOAT: DOUBLE
    text       CHAR, VARCHAR, TEXT, ENUM, SET      one another
    octets     VARBINARY, BLOB                     one another; BINARY(n) becomes one
    date       DATE                                DATETIME
    wall       DATETIME                            one with more digits of a second
    moment     TIMESTAMP                           the same
    time       TIME                                the same

A narrower whole number, or a narrower decimal of the same scale, is accepted and stored in the
wider type: a server in strict mode refuses an ALTER for which a value doesn't fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

import pyarrow as pa

from lakesplice.model.column_values import fill_text, fill_value, promoted
from lakesplice.model.schema import Column
from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import DECIMAL_PRECISION_MAX, WHOLE_DIGITS, ColumnType, Primitive


class _Family(Enum):
    WHOLE = auto()
    FIXED = auto()
    FLOATING = auto()
    TEXT = auto()
    OCTETS = auto()
    PADDED = auto()
    DATE = auto()
    WALL = auto()
    MOMENT = auto()
    TIME = auto()


# The widest whole numbers that a binary fraction can hold exactly.
_IN_FLOATING = {Primitive.FLOAT: 5, Primitive.DOUBLE: 10}
_FAMILIES: dict[str, _Family] = {
    **dict.fromkeys(
        ("int8", "int16", "int32", "int64", "byte", "short", "integer", "long"), _Family.WHOLE
    ),
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _Family.WHOLE),
    **dict.fromkeys(("decimal", "decimal_text", "numeric"), _Family.FIXED),
    "bytes:org.apache.kafka.connect.data.decimal": _Family.FIXED,
    **dict.fromkeys(("float", "double"), _Family.FLOATING),
    **dict.fromkeys(
        ("string", "string:io.debezium.data.enum", "string:io.debezium.data.enumset"), _Family.TEXT
    ),
    **dict.fromkeys(("char", "varchar", "text", "enum"), _Family.TEXT),
    **dict.fromkeys(("tinytext", "mediumtext", "longtext", "set"), _Family.TEXT),
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _Family.OCTETS),
    **dict.fromkeys(
        ("date", "int32:io.debezium.time.date", "int32:org.apache.kafka.connect.data.date"),
        _Family.DATE,
    ),
}
_WALL_DIGITS = {
    "int64:io.debezium.time.timestamp": 3,
    "int64:org.apache.kafka.connect.data.timestamp": 3,
    "timestamp_millis": 3,
    "int64:io.debezium.time.microtimestamp": 6,
    "timestamp_micros": 6,
    **{f"datetime({digits})": digits for digits in range(7)},
    "datetime": 0,
}
# The number of fractional digits after the type's name.
_CLOCKS = {"timestamp": _Family.MOMENT, "time": _Family.TIME}
_CLOCK = re.compile(r"canal:(timestamp|time)(?:\(([0-6])\))?")
_BINARY = re.compile(r"canal:binary(\(\d+\))?")
_BY_DIGITS = (_Family.WALL, _Family.MOMENT, _Family.TIME)
_MEMBER = re.compile(r"'((?:[^']|'')*)'")
_PREFIX = re.compile(r"(declared|canal):")
_SUFFIX = re.compile(r"\(.*\)| unsigned| zerofill")


@dataclass(frozen=True, slots=True)
class _Typed:
    """A type as both sides describe it; `digits` are the fractional digits of a wall clock's
    seconds.
    """

    type: ColumnType
    family: _Family | None
    digits: int = 0

    @property
    def scale(self) -> int:
        return self.type.scale

    @property
    def whole_digits(self) -> int:
        """The number of digits before the point."""
        known = WHOLE_DIGITS.get(self.type.kind)
        return self.type.precision - self.type.scale if known is None else known


def accepts(column: Column, field: SourceField) -> bool:
    """Whether values of the image's type can be stored in the stored type, as they are or cast."""
    if (field.type, field.source_type) == (column.type, column.source_type):
        return True
    stored, image = _typed(column.type, column.source_type), _typed_field(field)
    if image is None or stored.family is None or image.family is None:
        return False
    if stored.family in _BY_DIGITS:
        return image.family is stored.family and image.digits == stored.digits
    if _exact(stored.family) and _exact(image.family):
        return image.scale == stored.scale and image.whole_digits <= stored.whole_digits
    if stored.family is not image.family or stored.family is _Family.PADDED:
        return False
    return stored.type == image.type and _in_order(column.source_type, field.source_type)


def widened(column: Column, field: SourceField) -> Column | None:
    """Return the column as values of the image's type need it; None if the source's change of type
    changed values, too, or no type holds both.
    """
    stored, image = _typed(column.type, column.source_type), _typed_field(field)
    if image is None or stored.family is None or image.family is None:
        return None
    joined = _joined(stored, image)
    if joined is None or not _in_order(column.source_type, field.source_type):
        return None
    fill = column.fill
    if fill is not None:
        value = promoted(pa.array([fill_value(fill, column.type)]), joined.arrow)
        fill = fill_text(value[0], joined)
    return replace(column, type=joined, source_type=field.source_type, fill=fill)


def keeps_key_hash(before: ColumnType, after: ColumnType) -> bool:
    """Whether a key column's change of type leaves the hashes in the row index right."""
    whole = before.kind in WHOLE_DIGITS and after.kind in WHOLE_DIGITS
    decimals = before.kind is after.kind is Primitive.DECIMAL and before.scale == after.scale
    return before == after or whole or decimals


def is_wall_clock(column: Column) -> bool:
    """Whether a column's values are DATETIMEs: what a clock showed, without a time zone."""
    return _typed(column.type, column.source_type).family is _Family.WALL


def _joined(stored: _Typed, image: _Typed) -> ColumnType | None:
    pair = (stored.family, image.family)
    if pair == (_Family.WHOLE, _Family.WHOLE):
        return max(stored.type, image.type, key=lambda kind: WHOLE_DIGITS.get(kind.kind, 38))
    if stored.family in (_Family.WHOLE, _Family.FIXED) and image.family is _Family.FIXED:
        return _decimal(stored, image)
    if pair == (_Family.WHOLE, _Family.FLOATING):
        return image.type if stored.whole_digits <= _IN_FLOATING[image.type.kind] else None
    if pair == (_Family.FLOATING, _Family.FLOATING):
        return image.type if image.type.kind is Primitive.DOUBLE else None
    if pair == (_Family.WHOLE, _Family.TEXT) or pair == (_Family.TEXT, _Family.TEXT):
        return image.type
    if pair == (_Family.DATE, _Family.WALL):
        return image.type
    if pair == (_Family.PADDED, _Family.OCTETS):
        return image.type
    if stored.family in _BY_DIGITS and image.family is stored.family:
        return image.type if image.digits >= stored.digits else None
    return None


def _decimal(stored: _Typed, image: _Typed) -> ColumnType | None:
    if image.scale < stored.scale:
        return None  # the source rounded
    precision = max(stored.whole_digits, image.whole_digits) + image.scale
    if precision > DECIMAL_PRECISION_MAX:
        return None
    return ColumnType(Primitive.DECIMAL, precision, image.scale)


def _exact(family: _Family) -> bool:
    return family in (_Family.WHOLE, _Family.FIXED)


def _typed_field(field: SourceField) -> _Typed | None:
    return None if field.type is None else _typed(field.type, field.source_type)


def _in_order(stored: str, image: str) -> bool:
    """Whether a SET's values are written as before: its members are in the same order."""
    if not stored.startswith("canal:set(") or not image.startswith("canal:set("):
        return True
    places = {member: at for at, member in enumerate(_MEMBER.findall(image))}
    kept = [places[member] for member in _MEMBER.findall(stored) if member in places]
    return kept == sorted(kept)


def _typed(kind: ColumnType, source_type: str) -> _Typed:
    if clock := _CLOCK.fullmatch(source_type):
        return _Typed(kind, _CLOCKS[clock[1]], int(clock[2] or 0))
    if _BINARY.fullmatch(source_type):
        return _Typed(kind, _Family.PADDED)
    type_name = _PREFIX.sub("", source_type.strip().lower())
    if kind.kind is Primitive.TIMESTAMP:
        digits = _WALL_DIGITS.get(type_name)
        return _Typed(kind, None if digits is None else _Family.WALL, digits or 0)
    family = _FAMILIES.get(_SUFFIX.sub("", type_name).strip())
    if kind.kind is Primitive.DECIMAL and family is _Family.WHOLE:  # BIGINT UNSIGNED
        family = _Family.FIXED
    fits = family is None or kind.kind in _KINDS[family]
    return _Typed(kind, family if fits else None)


_KINDS: dict[_Family, frozenset[Primitive]] = {
    _Family.WHOLE: frozenset(WHOLE_DIGITS),
    _Family.FIXED: frozenset((Primitive.DECIMAL,)),
    _Family.FLOATING: frozenset((Primitive.FLOAT, Primitive.DOUBLE)),
    _Family.TEXT: frozenset((Primitive.STRING,)),
    _Family.OCTETS: frozenset((Primitive.BINARY,)),
    _Family.DATE: frozenset((Primitive.DATE,)),
}
