"""Every reader opens what ingest accepts from a topic of any format, with equal rows. What ingest
doesn't accept becomes a dead letter or parks the table, and never raises an exception.

These are the formats without schemas; `test_accepted_record_laws` has Debezium's with schemas,
`test_accepted_avro_laws` those in Avro. Records are written byte by byte: names that Delta's
readers stumble over, values at and beyond the ends of their types, texts that are no UTF-8, numbers
that JSON doesn't have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import declare
from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import payload
from tests.support.drawing import examples
from tests.support.readers import READERS
from tests.support.simulated import driver_of, folder

NAMES = (
    "", " ", "na me", "na_x20_me", "_is_deleted", "_IS_DELETED", "_position_file", "_row", "_op",
    "__op", "__deleted", "_commit_version", "_change_type", "_column_positions", "a", "A", "é", "É",
    "a.b", "a`b", 'a"b', "a\\b", "a\nb", "a\0b", "%41", "a=b", "ß", "İ", "\U0001f600", "\ud800",
    "_x5f_row", "n" * 300, "id",
)  # fmt: skip
# Of no type in particular; each stands in for any value.
ODD = (
    b"null", b"true", b"0", b"-0", b"-0.0", b"1e400", b"-1e400", b"NaN", b"Infinity", b"1.5",
    b"123456789012345678901234567890123456789012345678901234567890123456", b"[]", b"{}", b'""',
    b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\u0000"', b'"NaN"', b'"Infinity"', b'"1"',
    b'"0000-00-00"', b'"\xf0\x9f\x98\x80"',
)  # fmt: skip


@dataclass(frozen=True)
class Primitive:
    """How a type is declared, how MySQL calls it, and values at its ends."""

    declared: str
    mysql: str
    values: Sequence[bytes]


def _decimal(precision: int, scale: int, *values: bytes) -> Primitive:
    spelt = f"decimal({precision},{scale})"
    return Primitive(spelt, spelt, values)


KINDS = (
    Primitive("bigint", "bigint",
         (b"1", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808", b'"7"')),
    Primitive("tinyint", "tinyint(4)", (b"127", b"-128", b"128", b'"-128"')),
    Primitive("double", "double",
         (b"5e-324", b"1.7976931348623157e308", b"NaN", b'"NaN"', b"-0.0", b"0.0",
          b"9007199254740993", b'"1e999"', b'"1.5"')),
    Primitive("float", "float",
         (b"3.5e38", b"1e-50", b"NaN", b"16777217", b'"16777217"')),
    Primitive("string", "varchar(40)", (b'"a"', b'"\\ud83d\\ude00"', b'"a "')),
    Primitive("binary", "varbinary(9)", (b'"/w=="', b'"/w"', b'"\\u00ff"')),
    Primitive("boolean", "bit(1)", (b"false", b"1", b'"2"', b'"1"')),
    _decimal(38, 38, b'"BQ=="', b'"S9kw+PpbL5Sh/////////w=="', b'"9"', b'"0.5"', b'"-0"'),
    _decimal(38, 0, b'"S0O0yoWohv8="', b'"//////////////////////8="', b'"' + b"9" * 39 + b'"',
             b'"1e37"'),
    _decimal(38, 30, b'"BQ=="', b'"' + b"9" * 9 + b'"', b'"' + b"9" * 8 + b'.1"'),
    Primitive("decimal_number(20,3)", "decimal(20,3)",
         (b"1.5", b"7", b"9007199254740993", b'"1.250"', b"1e16", b"1e17")),
    Primitive("date", "date",
         (b"0", b"2932896", b"2932897", b"-719162", b"-719163", b"2147483647", b"-2147483648",
          b'"0000-01-01"', b'"10000-01-01"', b'"1000-00-01"', b'"0001-01-01"', b'"9999-12-31"')),
    Primitive("timestamp_micros", "datetime(6)",
         (b"0", b"253402300799999999", b"253402300800000000", b"-62135596800000000",
          b"-62135596800000001", b"9223372036854775807", b'"0000-01-01 00:00:00"',
          b'"9999-12-31 23:59:59.999999"')),
    Primitive("timestamp_millis", "datetime",
         (b"253402300799999", b"9223372036854775807", b"-9223372036854775808",
          b'"2024-02-30 00:00:00"', b'"2024-02-29 00:00:00"')),
    Primitive("timestamp", "timestamp(6)",
         (b'"9999-12-31T23:59:59.999999Z"', b'"0001-01-01T00:00:00Z"', b'"2024-01-01T24:00:00Z"',
          b'"10000-01-01T00:00:00Z"', b'"2024-01-01 00:00:00"')),
    Primitive("time", "time(6)",
         (b"-3020399000000", b"9223372036854775807", b'"838:59:59"', b'"-00:00:01"')),
)  # fmt: skip
COLUMN = st.tuples(st.sampled_from(NAMES) | st.text(min_size=1, max_size=3), st.sampled_from(KINDS))
Column = tuple[str, Primitive]
Image = dict[str, bytes]


def _json(members: Mapping[str, bytes]) -> bytes:
    inner = (json.dumps(name).encode() + b":" + value for name, value in members.items())
    return b"{" + b",".join(inner) + b"}"


def _told(value: object) -> bytes:
    return json.dumps(value).encode()


def _debezium(place: int, key: str, image: Image) -> tuple[bytes, bytes]:
    event = {
        **{name: _told(value) for name, value in payload("c", None, None, pos=place).items()},
        "after": _json(image),
    }
    return _json({key: image[key]}), _json(event)


def _flattened(place: int, key: str, image: Image) -> tuple[bytes, bytes]:
    more = {"__deleted": "false", "__op": "c", "__source_file": "b.000001", "__source_pos": place,
            "__source_row": 0}  # fmt: skip
    row = {**image, **{name: _told(value) for name, value in more.items()}}
    return _json({key: image[key]}), _json(row)


def _maxwell(place: int, key: str, image: Image) -> tuple[bytes, bytes]:
    head = {
        "database": "shop", "table": "items", "type": "insert", "ts": 1, "xid": place, "xoffset": 0,
        "position": f"binlog.000001:{place}", "primary_key_columns": [key],
    }  # fmt: skip
    event = {name: _told(value) for name, value in head.items()}
    return b"{}", _json({**event, "data": _json(image)})


def _canal(place: int, key: str, image: Image, columns: Sequence[Column]) -> tuple[bytes, bytes]:
    message = {
        "database": "shop", "es": 1, "id": place, "isDdl": False, "pkNames": [key], "sql": "",
        "mysqlType": {name: kind.mysql for name, kind in columns}, "old": None, "table": "items",
        "ts": 1, "type": "INSERT",
    }  # fmt: skip
    event = {name: _told(value) for name, value in message.items()}
    return b"", _json({**event, "data": b"[" + _json(image) + b"]"})


def _written(format_: str, place: int, columns: Sequence[Column], values: Sequence[bytes]) -> Event:
    if format_ == "canal":  # which writes all values as text
        values = [b'"' + value + b'"' if value[:1] in b"-0123456789" else value for value in values]
    image = {name: value for (name, _), value in zip(columns, values, strict=True)}
    key = columns[0][0]
    if format_ == "canal":
        spelt, value = _canal(place, key, image, columns)
    else:
        write = {"debezium": _debezium, "flattened": _flattened, "maxwell": _maxwell}[format_]
        spelt, value = write(place, key, image)
    return Event("s.shop.items", spelt, value, (), 1)


_ODD_ONE = b"odd"
FORMATS = ["debezium", "flattened", "maxwell", "canal"]


def _weighed(kind: Primitive) -> list[bytes]:
    """The first is sound where Debezium writes it, the last where MySQL's texts are sent."""
    return [*[kind.values[0], kind.values[-1]] * len(kind.values), *kind.values, b"null", _ODD_ONE]


@st.composite
def _topics(draw: st.DrawFn) -> tuple[list[Column], list[list[bytes]]]:
    columns = draw(st.lists(COLUMN, min_size=2, max_size=3, unique_by=lambda column: column[0]))
    values = [
        [draw(st.sampled_from(_weighed(kind))) for _, kind in columns]
        for _ in range(draw(st.integers(1, 4)))
    ]
    odd = [
        [draw(st.sampled_from(ODD)) if one is _ODD_ONE else one for one in row] for row in values
    ]
    return columns, odd


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=examples(24), deadline=None)
@given(_topics())
@example(([("", KINDS[0]), ("a", KINDS[1])], [[b"1", b"127"]]))
@example(([("\ud800", KINDS[0]), ("a", KINDS[1])], [[b"1", b"127"]]))
@example(([("id", KINDS[3]), ("a", KINDS[1])], [[b"16777217", b"127"], [b"1.5", b"127"]]))
def test_every_reader_opens_tables_made_from_accepted_topics(
    format_: str, topic: tuple[list[Column], list[list[bytes]]]
) -> None:
    columns, rows = topic
    records = SimulatedTopic("s.shop.items")
    events = [_written(format_, 100 + at, columns, row) for at, row in enumerate(rows)]
    records.append(0, events)
    declared = declare({name: kind.declared for name, kind in columns})
    with folder() as lake:
        driver = driver_of(FedTopic(records), LocalStore(lake), declared=declared)
        for end in {1, len(events)}:
            if driver.table.parked is None:
                assert driver.batch({0: Offset(end)}) is CommitOutcome.DONE
        if driver.table.snapshot is not None:
            require_opens(driver, lake / driver.name.path, len(events))


@dataclass(frozen=True)
class FedTopic:
    """What a driver reads from."""

    topic: SimulatedTopic


def require_opens(driver: SimulatedDriver, root: Path, sent: int) -> None:
    """No record is lost, and all readers have the same rows of the compacted table."""
    driver.compact()
    table = Table(driver.table.store)
    found = table.read(View.READ_OPTIMISED)
    assert found.num_rows == len(found.to_pylist()) == table.read().num_rows
    letters = sum(ref.rows for ref in driver.table.manifest.dead_letters)
    if driver.table.parked is None:
        assert min(1, sent - letters) <= found.num_rows <= sent - letters
    for reader, read in READERS.items():
        theirs = read(root, table.version)
        shown = theirs.filter(pc.invert(theirs.column("_is_deleted"))).select(found.column_names)
        assert _rows(shown, found.schema) == _rows(found, found.schema), reader


def _rows(table: pa.Table, schema: pa.Schema) -> list[str]:
    """Rows in the order of their text: NaN is like itself, -0.0 unlike 0.0."""
    return sorted(map(repr, table.cast(schema).to_pylist()))
