"""How a cell is written in JSON, and the column it becomes.

An encoding says what the bytes mean; the type what the column is; the source type is a text that
changes whenever the meaning of the bytes does, so that evolution notices (a DECIMAL(12,2) and a
DECIMAL(16,4) are both base64 text).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from lakesplice.model.schema import SourceField
from lakesplice.model.types import ColumnType, Kind

# Years 1 to 9999: all that Delta's readers agree on.
DAY_MIN, DAY_MAX = -719_162, 2_932_896
_DAY_MICROS = 86_400_000_000
MICROS_MIN, MICROS_MAX = DAY_MIN * _DAY_MICROS, (DAY_MAX + 1) * _DAY_MICROS - 1


class Encoding(StrEnum):
    """The ways in which Kafka Connect's JSON writes a value."""

    PLAIN = "plain"
    BASE64 = "base64"
    DECIMAL_BASE64 = "decimal-base64"
    DECIMAL_TEXT = "decimal-text"
    DATE_DAYS = "date-days"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    TIMESTAMP_ZONED = "timestamp-zoned"


_TEXT = (
    Encoding.BASE64, Encoding.DECIMAL_BASE64, Encoding.DECIMAL_TEXT, Encoding.TIMESTAMP_ZONED,
)  # fmt: skip
_PLAIN_JSON = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a row image: its name, its type, and how its values are written."""

    name: str
    type: ColumnType
    encoding: Encoding
    source_type: str

    @property
    def json_type(self) -> pa.DataType:
        """The Arrow type to read the JSON as; integers are read wide and then checked."""
        if self.encoding in _TEXT:
            return pa.string()
        if self.encoding is Encoding.PLAIN:
            return _PLAIN_JSON.get(self.type.kind, pa.int64())
        return pa.int64()

    @property
    def field(self) -> SourceField:
        """The cell as the rest of the system sees it."""
        return SourceField(self.name, self.type, self.source_type)
