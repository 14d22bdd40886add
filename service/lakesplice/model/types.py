"""Column types: those that a base file, the log and a delta can represent exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from lakesplice.errors import UnsupportedError

DECIMAL_PRECISION_MAX = 38


class Primitive(StrEnum):
    """The primitive types of the Delta protocol that a MySQL column can become."""

    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INTEGER = "integer"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"


WHOLE_DIGITS = {Primitive.BYTE: 3, Primitive.SHORT: 5, Primitive.INTEGER: 10, Primitive.LONG: 19}
"""The types of whole numbers, the narrowest first, with the digits that their values may have."""
WHOLE_NUMBERS = tuple(WHOLE_DIGITS)

_ARROW: dict[Primitive, pa.DataType] = {
    Primitive.BOOLEAN: pa.bool_(),
    Primitive.BYTE: pa.int8(),
    Primitive.SHORT: pa.int16(),
    Primitive.INTEGER: pa.int32(),
    Primitive.LONG: pa.int64(),
    Primitive.FLOAT: pa.float32(),
    Primitive.DOUBLE: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BINARY: pa.binary(),
    Primitive.DATE: pa.date32(),
    Primitive.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
_DECIMAL_NAME = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One column's type; `precision` and `scale` are zero except for decimals."""

    kind: Primitive
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind is not Primitive.DECIMAL:
            return
        if (
            not 1 <= self.precision <= DECIMAL_PRECISION_MAX
            or not 0 <= self.scale <= self.precision
        ):
            raise UnsupportedError(
                "a decimal holds 1 to 38 digits; map this column to a string at the source",
                precision=self.precision,
                scale=self.scale,
            )

    @classmethod
    def parse(cls, name: str) -> ColumnType:
        """Read the Delta name of a type, such as `long` or `decimal(12,2)`."""
        decimal = _DECIMAL_NAME.fullmatch(name.replace(" ", ""))
        if decimal:
            return cls(Primitive.DECIMAL, int(decimal[1]), int(decimal[2]))
        try:
            return cls(Primitive(name))
        except ValueError:
            known = ", ".join(kind.value for kind in Primitive)
            raise UnsupportedError(f"unknown column type; known: {known}", type=name) from None

    @property
    def name(self) -> str:
        """The type's name in the Delta log."""
        if self.kind is Primitive.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return self.kind.value

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the column in memory and in base files."""
        if self.kind is Primitive.DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        return _ARROW[self.kind]
