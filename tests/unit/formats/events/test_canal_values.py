"""Values of Canal's and TiCDC's messages, by the types that these name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakesplice.model.parking import ParkCode
from tests.support.canal_messages import WRITERS, decode, message, row
from tests.support.debezium import dead, images

POINT = bytes.fromhex("0101000000000000000000f03f000000000000f0bf")
VALUES: dict[str, tuple[str, str, object]] = {
    "a tinyint": ("tinyint(1)", "-128", -128),
    "an unsigned tinyint": ("tinyint(3) unsigned", "255", 255),
    "an unsigned smallint": ("smallint unsigned", "65535", 65535),
    "an unsigned int": ("int(10) unsigned zerofill", "4294967295", 4294967295),
    "a bigint": ("bigint(20)", str(-(2**63)), -(2**63)),
    "an unsigned bigint": ("bigint(20) unsigned", str(2**64 - 1), Decimal(2**64 - 1)),
    "a decimal": ("decimal(38,18)", "-0.000000000000000001", Decimal("-1e-18")),
    "a float": ("float", "1.5", 1.5),
    "a double": ("double", "2.718281828459045", 2.718281828459045),
    "a bit": ("bit(1)", "1", True),
    "bits": ("bit(12)", str(0x8A5), b"\xa5\x08"),
    "text": ("longtext", "Ünï 😀", "Ünï 😀"),
    "json": ("json", '{"a":[1,"}]"]}', '{"a":[1,"}]"]}'),
    "bytes": (
        "varbinary(40)", "\x05\x07\n\x0f$2+cx<&ÿþ-7F",
        bytes([5, 7, 10, 15, 36, 50, 43, 99, 120, 60, 38, 255, 254, 45, 55, 70]),
    ),
    "all bytes": ("blob", bytes(range(256)).decode("latin-1"), bytes(range(256))),
    "no bytes": ("blob", "", b""),
    "a date": ("date", "9999-12-31", date(9999, 12, 31)),
    "a datetime": (
        "datetime(6)", "1000-01-01 00:00:00.000001", datetime(1000, 1, 1, 0, 0, 0, 1, UTC),
    ),
    "a time": ("time(6)", "-838:59:59.000001", -3020399000001),
    "a year": ("year(4)", "2155", 2155),
    "a decimal with a space": ("DECIMAL(8, 0)", "12345678", Decimal(12345678)),
    "a numeric": ("NUMERIC(8,3) unsigned zerofill", "12345.110", Decimal("12345.110")),
    "a dec": ("dec(4)", "1234", Decimal(1234)),
    "a double precision": ("DOUBLE PRECISION(10,7) unsigned zerofill", "1.000111", 1.000111),
    "a real": ("REAL", "1.000001", 1.000001),
    "a float of a double's digits": ("float(53)", "0.1", 0.1),
    "a bool": ("BOOLEAN", "127", 127),
    "an int8": ("INT8", "-9", -9),
    "a serial": ("SERIAL", "40000000000", Decimal(40000000000)),
    "national text": ("national varchar(10)", "ß", "ß"),
    "a decimal beyond a decimal": ("FIXED(40,3)", "-" + "9" * 37 + ".110", "-" + "9" * 37 + ".110"),
    "a whole one": ("decimal(65)", "9" * 65, "9" * 65),
    "an enum": ("ENUM('a','it''s','C,d')", "2", "it's"),
    "an enum's last": ("enum('a','b', 'C,d')", "3", "C,d"),
    "an enum's error": ("enum('a','b')", "0", ""),
    "an enum by its name": ("enum('a','b')", "b", "b"),
    "an enum of digits": ("enum('2','1')", "1", "2"),
    "a set": ("SET('a','b','c','d')", "13", "a,c,d"),
    "an empty set": ("set('a','b')", "0", ""),
    "a set that has an empty name": ("set('a','')", "a,", "a,"),
    "a set by its names": ("set('a','b','c')", "a,c", "a,c"),
    "all of a set": (
        f"set({','.join(repr(f'm{at}') for at in range(64))})", str(2**64 - 1),
        ",".join(f"m{at}" for at in range(64)),
    ),
    "a point": (
        "POINT", "\0\0\0\0" + POINT.decode("latin-1"), POINT,
    ),
    "a geometry of a reference system": (
        "geometry", "\xe6\x10\0\0" + POINT.decode("latin-1"),
        POINT[:4] + b"\x20" + b"\xe6\x10\0\0" + POINT[5:],
    ),
}  # fmt: skip


@WRITERS
@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_what_the_database_had(kind: str, write: Any) -> None:
    mysql_type, sent, value = VALUES[kind]
    types = {"types": {"v": mysql_type}}
    decoded = decode(
        write("INSERT", [row(1, v=sent)], **types),
        write("INSERT", [row(2, v=None)], **types),
        write("DELETE", [row(1, v=sent)], **types),
    )
    assert dead(decoded) == {}, decoded.dead.detail
    found = [before or after for before, after in images(decoded).values()]
    assert [image and image["v"] for image in found] == [value, None, value]


REFUSED: dict[str, tuple[str, object]] = {
    "a number that is a number": ("int", 5),
    "a number that is none": ("int", "5x"),
    "a number beyond its type": ("tinyint", "128"),
    "a number beyond any": ("bigint", "9" * 19),
    "a decimal beyond its type": ("decimal(4,2)", "100.5"),
    "a decimal that overflows": ("decimal(38,18)", "1" + "0" * 30),
    "a float that is none": ("float", "nan"),
    "a float beyond its type": ("float", "1e39"),
    "a bit beyond 1": ("bit(1)", "2"),
    "bits beyond their number": ("bit(4)", "16"),
    "bytes beyond a byte": ("blob", "Ā"),
    "a zero date": ("date", "0000-00-00"),
    "a time that is none": ("time", "noon"),
    "an enum of no member": ("enum('a','b')", "3"),
    "an enum of no name": ("enum('a','b')", "c"),
    "a set beyond its members": ("set('a','b')", "4"),
    "a set of no names": ("set('a','b')", "a,c"),
    "a wide decimal beyond its digits": ("decimal(40,2)", "9" * 39 + ".00"),
    "a wide decimal that is none": ("decimal(40,2)", "1e5"),
    "a geometry that is none": ("geometry", "\0\0"),
    "a geometry beyond bytes": ("geometry", "Ā" * 30),
}


@WRITERS
@pytest.mark.parametrize("kind", REFUSED)
def test_a_value_that_is_not_of_its_type_costs_only_its_message(kind: str, write: Any) -> None:
    mysql_type, sent = REFUSED[kind]
    types = {"types": {"v": mysql_type}}
    decoded = decode(
        write("INSERT", [row(1, v=None)], **types),
        write("INSERT", [row(2, v=sent)], **types),
        write("INSERT", [row(3, v=None)], **types),
    )
    assert sorted(dead(decoded)) == [1]
    assert sorted(images(decoded)) == [0, 2]


@pytest.mark.parametrize(
    "mysql_type",
    ["decimal", "bit", "enum", "set", "vector(3)", "decimal(66)", "char(3) character set binary",
     "enum('a'", "", "int; drop table x"],
)  # fmt: skip
def test_a_type_that_says_too_little_parks_the_table_unless_it_is_declared(mysql_type: str) -> None:
    record = message("INSERT", [row(1, v="1")], types={"v": mysql_type})
    decoded = decode(record)
    assert decoded.stops[0].code is ParkCode.TYPES_UNDECLARED
    assert '"v": TYPE' in decoded.stops[0].detail
    after = images(decode(record, v="int"))[0][1]
    assert after is not None
    assert after["v"] == 1
