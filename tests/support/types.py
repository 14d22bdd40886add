"""Every type of MySQL and MariaDB: how each format sends it, and the resulting column.

`python -m tests.support.types` writes the table of docs/types.md; `tests/conformance/test_types.py`
tests it row by row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

from tests.support.sent_types import (
    DEAD,
    PARKED,
    TIME,
    Sent,
    Type,
    bytes_of_any_length,
    clock,
    connect,
    decimal,
    decimal_type,
    fixed_bytes,
    text,
    unscaled,
    whole,
)
from tests.support.workload import utc

_DATA = "io.debezium.data."


_STAMP = utc(2024, 3, 10, 2, 30, 0, 654321)
_LONGEST = 838 * 3_600_000_000 + 59 * 60_000_000 + 59 * 1_000_000
_WIDE = Decimal("12345678901234567890123456789012345.123456789012345678901234567891")
_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_POINT_4326 = bytes.fromhex("0101000020e6100000000000000000f03f0000000000000040")
_MOST = (1 << 64) - 1
_SOURCE = {"__debezium.source.column.type": "BIGINT UNSIGNED"}


TYPES: tuple[Type, ...] = (
    whole("TINYINT", "int16", "short", "tinyint", "byte", -128, 127),
    whole("TINYINT UNSIGNED", "int16", "short", "tinyint unsigned", "short", 0, 255),
    whole("SMALLINT", "int16", "short", "smallint", "short", -32768, 32767),
    whole("SMALLINT UNSIGNED", "int32", "integer", "smallint unsigned", "integer", 0, 65535),
    whole("MEDIUMINT", "int32", "integer", "mediumint", "integer", -(1 << 23), (1 << 23) - 1),
    whole(
        "MEDIUMINT UNSIGNED", "int32", "integer", "mediumint unsigned", "integer", 0, (1 << 24) - 1
    ),
    whole("INT", "int32", "integer", "int", "integer", -(1 << 31), (1 << 31) - 1),
    whole("INT UNSIGNED", "int64", "long", "int unsigned", "long", 0, (1 << 32) - 1),
    whole("INT UNSIGNED ZEROFILL", "int64", "long", "int unsigned", "long", 0, (1 << 32) - 1),
    whole("BIGINT", "int64", "long", "bigint", "long", -(1 << 63), (1 << 63) - 1),
    Type(
        "BIGINT UNSIGNED",
        (
            Sent(decimal(20, 0), unscaled(Decimal(_MOST), 0), Decimal(_MOST), "decimal(20,0)"),
            Sent({**connect("int64"), "parameters": _SOURCE}, -1, Decimal(_MOST), "decimal(20,0)"),
            Sent({**connect("int64"), "parameters": _SOURCE}, 5, Decimal(5), "decimal(20,0)"),
        ),
        (
            Sent("bigint unsigned", unscaled(Decimal(_MOST), 0), Decimal(_MOST), "decimal(20,0)"),
            Sent("unsigned_long", -1, Decimal(_MOST), "decimal(20,0)"),
        ),
        (Sent("bigint unsigned", _MOST, Decimal(_MOST), "decimal(20,0)"),),
        (Sent("bigint unsigned", str(_MOST), Decimal(_MOST), "decimal(20,0)"),),
        "by default Debezium sends it as a signed number (2^64-1 as -1) under a schema that doesn't"
        " say so, so Lakesplice can't notice it: set `bigint.unsigned.handling.mode=precise`, or"
        " `column.propagate.source.type=.*`, or declare `unsigned_long`",
    ),
    Type(
        "FLOAT",
        (Sent(connect("float"), 1.5, 1.5, "float"),),
        (Sent("float", -0.25, -0.25, "float"), Sent("float", 1e39, DEAD, "float")),
        (Sent("float", 1.5, 1.5, "float"),),
        (Sent("float", "1.5", 1.5, "float"), Sent("float", "1e39", DEAD, "float")),
    ),
    Type(
        "DOUBLE",
        (Sent(connect("double"), 2.718281828459045, 2.718281828459045, "double"),),
        (Sent("double", 1e300, 1e300, "double"),),
        (Sent("double", 2.718281828459045, 2.718281828459045, "double"),),
        (Sent("double", "1.7976931348623157E308", 1.7976931348623157e308, "double"),),
    ),
    decimal_type(12, 2, "-0.01", "9999999999.99", "0.00"),
    decimal_type(38, 10, "-9999999999999999999999999999.9999999999"),
    Type(
        "DECIMAL(65,30)",
        (
            Sent(decimal(65, 30), unscaled(_WIDE, 30), str(_WIDE), "string"),
            Sent(decimal(65, 30), unscaled(_WIDE.copy_negate(), 30), f"-{_WIDE}", "string"),
            Sent(decimal(65, 30), b"\xff", "-0." + "1".rjust(30, "0"), "string"),
            Sent(decimal(65, 0), unscaled(Decimal(10**64), 0), str(10**64), "string"),
            Sent(decimal(39, 0), unscaled(Decimal(10**39), 0), DEAD, "string"),
        ),
        (Sent("string", str(_WIDE), str(_WIDE), "string"),),
        (Sent("string", str(_WIDE), str(_WIDE), "string"),),
        (
            Sent("decimal(65,30)", str(_WIDE), str(_WIDE), "string"),
            Sent("decimal(65,30)", f"1{_WIDE}", DEAD, "string"),
        ),
        "beyond 38 digits no column holds it as a number: its digits are kept as text",
    ),
    Type(
        "BIT(1)",
        (Sent(connect("boolean"), True, True, "boolean"),),
        (Sent("bit(1)", False, False, "boolean"),),
        (Sent("bit(1)", 1, True, "boolean"), Sent("bit(1)", 2, DEAD, "boolean")),
        (Sent("bit(1)", "0", False, "boolean"),),
    ),
    Type(
        "BIT(12)",
        (Sent(connect("bytes", _DATA + "Bits", length="12"), b"\x34\x0a", b"\x34\x0a", "binary"),),
        (Sent("bit(12)", b"\x34\x0a", b"\x34\x0a", "binary"),),
        (Sent("bit(12)", 0xA34, b"\x34\x0a", "binary"), Sent("bit(12)", 4096, DEAD, "binary")),
        (Sent("bit(12)", str(0xA34), b"\x34\x0a", "binary"),),
        "its bits in whole bytes, the least significant byte first",
    ),
    Type(
        "YEAR",
        (Sent(connect("int32", TIME + "Year"), 2155, 2155, "integer"),),
        (Sent("year", 1901, 1901, "integer"),),
        (Sent("year", 0, 0, "integer"),),
        (Sent("year", "2024", 2024, "integer"),),
    ),
    Type(
        "DATE",
        (
            Sent(connect("int32", TIME + "Date"), -1, dt.date(1969, 12, 31), "date"),
            Sent(connect("int32", TIME + "Date"), 2_932_897, DEAD, "date"),
        ),
        (Sent("date", 19782, dt.date(2024, 2, 29), "date"),),
        (
            Sent("date", "1000-01-01", dt.date(1000, 1, 1), "date"),
            Sent("date", "0000-00-00", DEAD, "date"),
        ),
        (
            Sent("date", "9999-12-31", dt.date(9999, 12, 31), "date"),
            Sent("date", "2024-02-30", DEAD, "date"),
        ),
        "a zero date is null from Debezium (1970-01-01 where the column is NOT NULL), else a dead"
        " letter",
    ),
    *(clock(digits) for digits in (0, 3, 6)),
    Type(
        "TIMESTAMP(6)",
        (
            Sent(
                connect("string", TIME + "ZonedTimestamp"),
                "2024-03-10T02:30:00.654321Z",
                _STAMP,
                "timestamp",
            ),
            Sent(
                connect("string", TIME + "ZonedTimestamp"),
                "2024-03-10T10:30:00.654321+08:00",
                _STAMP,
                "timestamp",
            ),
            Sent(connect("string", TIME + "ZonedTimestamp"), "noon", DEAD, "timestamp"),
        ),
        (Sent("timestamp", "2024-03-09T23:30:00.654321-03:00", _STAMP, "timestamp"),),
        (Sent("timestamp", "2024-03-10 02:30:00.654321", _STAMP, "timestamp"),),
        (Sent("timestamp", "2024-03-10 02:30:00.654321", _STAMP, "timestamp"),),
        "a moment; Maxwell, Canal and TiCDC send a wall clock, which is read as UTC's: run them in"
        " UTC",
    ),
    Type(
        "TIME(6)",
        tuple(
            Sent(connect("int64", TIME + "MicroTime"), micros, micros, "long")
            for micros in (_LONGEST, -_LONGEST, 86_399_123_456)
        ),
        (Sent("time", -45_296_000_000, -45_296_000_000, "long"),),
        (
            Sent("time_of_day", "23:59:59.123456", 86_399_123_456, "long"),
            Sent("time", "03:29:08", PARKED, "long"),
        ),
        (
            Sent("time(6)", "-838:59:59", -_LONGEST, "long"),
            Sent("time(6)", "24:61:00", DEAD, "long"),
        ),
        "microseconds, negative and beyond a day as MySQL has them; Maxwell sends other values for"
        " those, so there it is `time_of_day`",
    ),
    text("CHAR(10)", "string", "", "ü", "😀"),
    text("VARCHAR(255)", "string", 'a "quoted"\nline\\', "\u0000"),
    *(text(f"{size}TEXT", "text", "text", "Ünï" * 99) for size in ("TINY", "", "MEDIUM", "LONG")),
    Type(
        "ENUM('a','b')",
        (Sent(connect("string", _DATA + "Enum"), "a", "a", "string"),),
        (Sent("enum", "a", "a", "string"),),
        (Sent("text", "a", "a", "string"),),
        (
            Sent("enum('a','b')", "2", "b", "string"),
            Sent("enum('a','b')", "0", "", "string"),
            Sent("enum('a','b')", "3", DEAD, "string"),
            Sent("enum", "2", PARKED, "string"),
        ),
        "its member; Canal and TiCDC send its number among them",
    ),
    Type(
        "SET('a','b')",
        (Sent(connect("string", _DATA + "EnumSet", allowed="a,b"), "a,b", "a,b", "string"),),
        (Sent("set", "a,b", "a,b", "string"),),
        (Sent("set", ["a", "b"], "a,b", "string"), Sent("set", [], "", "string")),
        (
            Sent("set('a','b')", "3", "a,b", "string"),
            Sent("set('a','b')", "4", DEAD, "string"),
            Sent("set", "3", PARKED, "string"),
        ),
        "its members joined by commas; Canal and TiCDC send a bit for each",
    ),
    Type(
        "JSON",
        (Sent(connect("string", _DATA + "Json"), '{"a":[1,null]}', '{"a":[1,null]}', "string"),),
        (Sent("json", '{"ü":"😀"}', '{"ü":"😀"}', "string"),),
        (
            Sent("json", '{"a":1}', '{"a":1}', "string"),
            Sent("json", {"a": [1, None]}, '{"a":[1,null]}', "string"),
        ),
        (Sent("json", '{"a":1}', '{"a":1}', "string"),),
        "the text as the connector writes it; Maxwell sends MySQL's as nested JSON, and the JSON"
        " null as null",
    ),
    fixed_bytes(3),
    bytes_of_any_length("VARBINARY(300)"),
    *(bytes_of_any_length(f"{size}BLOB") for size in ("TINY", "", "MEDIUM", "LONG")),
    Type(
        "GEOMETRY, POINT, …",
        (
            Sent("Geometry", {"wkb": _POINT, "srid": None}, _POINT, "binary"),
            Sent("Geometry", {"wkb": _POINT, "srid": 0}, _POINT, "binary"),
            Sent("Geometry", {"wkb": _POINT, "srid": 4326}, _POINT_4326, "binary"),
            Sent("Geometry", {"wkb": b"\x00\x01", "srid": 4326}, DEAD, "binary"),
        ),
        (
            Sent("geometry", {"wkb": _POINT, "srid": None}, _POINT, "binary"),
            Sent("geometry", {"wkb": _POINT, "srid": 4326}, _POINT_4326, "binary"),
            Sent("point", {"x": 1.0, "y": 2.0, "wkb": _POINT, "srid": 4326}, _POINT_4326, "binary"),
            Sent("geometry", {"wkb": b"\x00\x01", "srid": 4326}, DEAD, "binary"),
        ),
        (
            Sent("geometry", "POINT (1 2)", PARKED, "binary"),
            Sent("string", "POINT (1 2)", "POINT (1 2)", "string"),
        ),
        (
            Sent("point", "\0\0\0\0" + _POINT.decode("latin-1"), _POINT, "binary"),
            Sent("geometry", "\xe6\x10\0\0" + _POINT.decode("latin-1"), _POINT_4326, "binary"),
            Sent("geometry", "\0\0", DEAD, "binary"),
        ),
        "well-known binary; a reference system other than 0 is put in as PostGIS does. Maxwell"
        " sends text without the reference system, which a column declared `string` keeps",
    ),
)


def table() -> Iterator[str]:
    """Return the lines of the document's table."""
    heads = ("in MySQL", "from Debezium, by its schemas", "declared", "Maxwell", "Canal, TiCDC")
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for type_ in TYPES:
        cells = [
            type_.name,
            _columns(type_.connect),
            *(_declarations(sent) for sent in (type_.declared, type_.maxwell, type_.canal)),
        ]
        yield f"| {' | '.join(cells)} |"


def notes() -> Iterator[str]:
    """Yield the notes below the table, a line each."""
    for type_ in TYPES:
        if type_.note:
            yield f"- {type_.name}: {type_.note}."


def _columns(sent: tuple[Sent, ...]) -> str:
    return ", ".join(dict.fromkeys(f"`{one.column}`" for one in sent))


def _declarations(sent: tuple[Sent, ...]) -> str:
    kept = [one for one in sent if one.outcome is not PARKED]
    pairs = dict.fromkeys((str(one.type).removeprefix("declared "), one.column) for one in kept)
    return ", ".join(f"`{name}`: `{column}`" for name, column in pairs) or "parks"


if __name__ == "__main__":
    print("\n".join([*table(), "", *notes()]))
