"""A table that others publish: its rows in the database and in the lake, and how they compare.

It uses none of the product's code, as `public_schemas.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import DeltaTable

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class PublicColumn:
    """A column as information_schema has it."""

    name: str
    type: str
    declared: str
    nullable: bool

    @property
    def asked(self) -> str:
        """The expression that a SELECT asks for."""
        name = quoted(self.name)
        match self.type:
            case "float" | "double":
                return f"cast({name} as double)"
            case "bit":
                return f"cast({name} as unsigned)"
            case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob":
                return f"hex({name})"
            case "vector":
                return f"vec_totext({name})"
            case _ if self.is_geometry:
                return f"concat(st_srid({name}), ' ', hex(st_aswkb({name})))"
        return f"convert(cast({name} as char) using utf8mb4)"

    @property
    def is_geometry(self) -> bool:
        return self.type in _GEOMETRIES

    def text_of_source(self, value: Any) -> str | None:
        """Return a value that a SELECT gave as text."""
        if value is None:
            return None
        match self.type:
            case "float" | "double":
                return repr(float(value))
            case "timestamp" if value.startswith("0000"):
                return None
            case "date" | "datetime" if _NO_DATE.match(value):
                # What the connector makes of a date that is none.
                return None if self.nullable else _EPOCHS[self.type]
            case "datetime" | "timestamp" | "time":
                return _with_six_digits(value)
        return str(value)

    def text_of_lake(self, value: Any) -> str | None:
        """Return a value of the lake's column as text."""
        match value:
            case None:
                return None
            case bool():
                return str(int(value))
            case bytes() if self.type == "bit":
                return str(int.from_bytes(value, "little"))
            case bytes() if self.is_geometry:
                return _geometry(value)
            case bytes():
                return value.hex().upper()
            case float():
                return repr(value)
            case datetime():
                # No TIMESTAMP is that early: it is a zero, which the connector's binlog reader and
                # its snapshot take for different things.
                if self.type == "timestamp" and value.timestamp() == 0:
                    return None
                return value.replace(tzinfo=None).isoformat(" ", "microseconds")
            case date():
                return value.isoformat()
            case int() if self.type == "time":
                return _time(value)
            case Decimal() | int():
                return _padded(value, self)
        return str(value)


_GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection",
)  # fmt: skip
_EPOCHS = {"date": "1970-01-01", "datetime": "1970-01-01 00:00:00.000000"}
_NO_DATE = re.compile(r"0000|\d+-00|\d+-\d+-00")


@dataclass(frozen=True)
class PublicTable:
    """A table of one of the databases."""

    database: str
    name: str
    columns: tuple[PublicColumn, ...]

    @property
    def in_topic(self) -> str:
        """The table's name as the connector puts it into a topic's."""
        return re.sub(r"[^0-9A-Za-z._-]", "_", self.name)

    def in_lake(self, path: Path) -> Counter[Row]:
        """Return the rows of a folder's Delta table, each of this table's columns as text."""
        stored = pa.table(DeltaTable(str(path)).to_pyarrow_table())
        deleted = stored["_is_deleted"].to_pylist()
        columns = [
            [column.text_of_lake(value) for value in stored[_in_lake(column.name)].to_pylist()]
            for column in self.columns
        ]
        rows = zip(*columns, strict=True)
        return Counter(row for row, gone in zip(rows, deleted, strict=True) if not gone)


def _in_lake(name: str) -> str:
    """Return the name that a column has in the lake."""
    return re.sub(r"\W", lambda found: f"_x{ord(found[0]):x}_", name)


def quoted(name: str) -> str:
    """Return a name as a statement has it."""
    return "`" + name.replace("`", "``") + "`"


def difference(truth: Counter[Row], found: Counter[Row]) -> str | None:
    """Return how rows differ, with an example of each side; None if they don't."""
    if truth == found:
        return None
    lacking, beyond = truth - found, found - truth
    shown = (next(iter(rows), None) for rows in (lacking, beyond))
    return "{} of {} rows lack, {} are too many: {} / {}".format(
        lacking.total(), truth.total(), beyond.total(), *shown
    )


def cut(statement: str, rows_max: int | None) -> str:
    """Leave the first rows of an INSERT that has each in a line of its own."""
    if rows_max is None or statement[:6].lower() != "insert":
        return statement
    return ",\n".join(statement.split(",\n")[:rows_max])


def _with_six_digits(text: str) -> str:
    whole, _, digits = text.partition(".")
    return f"{whole}.{digits:<06}"


def _time(micros: int) -> str:
    seconds, rest = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' * (micros < 0)}{hours:02}:{minutes:02}:{seconds:02}.{rest:06}"


def _padded(value: Decimal | int, column: PublicColumn) -> str:
    """Return a number with the zeros that a ZEROFILL column or a YEAR shows."""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if column.type == "year":
        return f"{value:04}"
    width = re.search(r"\((\d+).*zerofill", column.declared)
    return text.zfill(int(width[1]) + ("." in text)) if width else text


def _geometry(value: bytes) -> str:
    """Return the reference system and the plain WKB of what PostGIS calls EWKB."""
    order: Literal["little", "big"] = "little" if value[0] else "big"
    kind = int.from_bytes(value[1:5], order)
    if not kind & 0x20000000:
        return f"0 {value.hex().upper()}"
    srid = int.from_bytes(value[5:9], order)
    plain = value[:1] + (kind ^ 0x20000000).to_bytes(4, order) + value[9:]
    return f"{srid} {plain.hex().upper()}"
