"""Laws of decoding: values are exact, no bytes raise an exception, no record is lost."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.debezium.envelope import inspect
from lakesplice.formats.events.debezium.schemaless import TableShapes
from lakesplice.formats.events.json_reading.bad_texts import matching, starting_right
from lakesplice.formats.events.json_reading.null_proof import unproven_rows, written_nulls
from lakesplice.formats.events.json_reading.template import Template
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Flavour,
    Record,
    compact,
    dead,
    decode_all,
    envelope_schema,
    image,
    images,
    key_schema,
    money,
    payload,
    with_schema,
)
from tests.support.drawing import examples

_EXACT = Context(prec=60)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FLAVOURS = pytest.mark.parametrize("schemas", [True, False], ids=["schemas", "plain"])


@dataclass(frozen=True)
class Primitive:
    """One type: how Connect describes it, how it is declared, its values, and how they are sent."""

    connect: dict[str, Any]
    declared: str
    values: st.SearchStrategy[Any]
    send: Callable[[Any], object] = lambda value: value


def _named(primitive: str, name: str, **parameters: str) -> dict[str, Any]:
    described: dict[str, Any] = {"type": primitive, "name": name, "version": 1}
    return {**described, "parameters": parameters} if parameters else described


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _decimal(precision: int, scale: int) -> Primitive:
    most = 10**precision - 1
    name = "org.apache.kafka.connect.data.Decimal"
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    unscaled = st.integers(-most, most) | st.sampled_from([-most, most, 0, -1, 127, 128, -128])
    fitting = unscaled.filter(lambda n: abs(n) <= most)
    return Primitive(
        _named("bytes", name, **parameters),
        f"decimal({precision},{scale})",
        fitting.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))),
        lambda value: money(int(value.scaleb(scale, _EXACT))),
    )


def _zoned(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return text.replace(".000000Z", "Z")


def _micros(value: datetime) -> int:
    return (value - EPOCH) // timedelta(microseconds=1)


_texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['":null,"', ":null", '"', "\\", '\\":null', "}{", "} null", "\n", "\u2028", "😀", "\0", "é"]
)
_moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)).map(  # noqa: DTZ001  # hypothesis wants none
    lambda moment: moment.replace(tzinfo=UTC)
)
_millis = _moments.map(lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000))
_floats = st.floats(allow_nan=False, allow_infinity=False)


def _integers(bits: int) -> st.SearchStrategy[int]:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.integers(least, most) | st.sampled_from([least, most, 0, -1])


KINDS: dict[str, Primitive] = {
    "byte": Primitive({"type": "int8"}, "byte", _integers(8)),
    "short": Primitive({"type": "int16"}, "smallint", _integers(16)),
    "integer": Primitive({"type": "int32"}, "integer", _integers(32)),
    "long": Primitive({"type": "int64"}, "long", _integers(64)),
    "boolean": Primitive({"type": "boolean"}, "boolean", st.booleans()),
    "float": Primitive(
        {"type": "float"},
        "float",
        st.floats(width=32, allow_nan=False, allow_infinity=False),
        lambda value: float(str(np.float32(value))),
    ),
    "double": Primitive({"type": "double"}, "double", _floats),
    "string": Primitive({"type": "string"}, "string", _texts),
    "json": Primitive(_named("string", "io.debezium.data.Json"), "string", _texts),
    "enum": Primitive(_named("string", "io.debezium.data.Enum", allowed="a,b"), "string", _texts),
    "binary": Primitive({"type": "bytes"}, "binary", st.binary(max_size=12), _base64),
    "bits": Primitive(
        _named("bytes", "io.debezium.data.Bits", length="8"),
        "binary",
        st.binary(max_size=2),
        _base64,
    ),
    "cents": _decimal(8, 2),
    "wide": _decimal(38, 18),
    "whole": _decimal(20, 0),
    "date": Primitive(
        _named("int32", "io.debezium.time.Date"),
        "date",
        st.dates(),
        lambda value: (value - date(1970, 1, 1)).days,
    ),
    "millis": Primitive(
        _named("int64", "io.debezium.time.Timestamp"),
        "timestamp_millis",
        _millis,
        lambda value: _micros(value) // 1000,
    ),
    "micros": Primitive(
        _named("int64", "io.debezium.time.MicroTimestamp"), "timestamp_micros", _moments, _micros
    ),
    "nanos": Primitive(
        _named("int64", "io.debezium.time.NanoTimestamp"),
        "timestamp_nanos",
        st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001  # hypothesis wants none
            lambda moment: moment.replace(tzinfo=UTC)
        ),
        lambda value: _micros(value) * 1000,
    ),
    "zoned": Primitive(
        _named("string", "io.debezium.time.ZonedTimestamp"), "timestamp", _moments, _zoned
    ),
    "time": Primitive(_named("int64", "io.debezium.time.MicroTime"), "time", _integers(64)),
    "year": Primitive(_named("int32", "io.debezium.time.Year"), "year", st.integers(0, 2155)),
}  # fmt: skip
NAMES = list(KINDS)
_rows = st.lists(
    st.fixed_dictionaries({name: st.none() | kind.values for name, kind in KINDS.items()}),
    min_size=1,
    max_size=6,
)


def _as_sent(row: dict[str, Any]) -> dict[str, object]:
    return {n: None if v is None else KINDS[n].send(v) for n, v in row.items()}


def _jackson(value: object) -> bytes:
    """As Jackson writes: characters beyond the basic plane as escaped surrogate pairs."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    pairs = (
        c if ord(c) <= 0xFFFF else json.dumps(c)[1:-1].upper().replace("\\U", "\\u") for c in text
    )
    return "".join(pairs).encode()


@pytest.mark.slow
@FLAVOURS
@given(rows=_rows)
def test_values_of_every_type_come_back_exactly(schemas: bool, rows: list[dict[str, Any]]) -> None:
    fields = [{"type": "int64", "optional": False, "field": "id"}]
    fields += [{**kind.connect, "optional": True, "field": n} for n, kind in KINDS.items()]
    declared = declare({"id": "long", **{name: kind.declared for name, kind in KINDS.items()}})
    records = []
    for at, row in enumerate(rows):
        sent = {"id": at, **_as_sent(row)}
        content = payload("u", {**sent, "long": 5}, sent, pos=at)
        key: dict[str, Any] = {"id": at}
        if schemas:
            content = with_schema(content, envelope_schema(fields))
            key = with_schema(key, key_schema(fields[:1]))
        records.append((compact(key), _jackson(content)))
    context = DecodeContext(TABLE, None if schemas else declared)
    decoded = decode_all(records, context)
    assert dead(decoded) == {}, decoded.dead.detail
    for at, (before, after) in images(decoded).items():
        assert before is not None
        assert after is not None
        assert before["long"] == 5
        for name in NAMES:
            _same(after[name], rows[at][name], name)


def _same(found: Any, wanted: Any, name: str) -> None:
    if isinstance(wanted, float):
        assert found == wanted, name
        assert math.copysign(1, found) == math.copysign(1, wanted), name
    elif isinstance(wanted, Decimal):
        assert found.as_tuple() == wanted.as_tuple() or found == wanted, name
    else:
        assert found == wanted, name
        assert type(found) is type(wanted) or isinstance(wanted, datetime), name


_bytes = (
    st.binary(max_size=60)
    | st.text('{}[]":,\\ntrue01.e-ip \n\r\t\0', max_size=60).map(str.encode)
    | st.sampled_from([b"null", b"}null", b"{}", b'{"schema":', b'{"schema":{},"payload":{}}'])
)


@FLAVOURS
@given(st.data())
def test_any_bytes_are_settled_and_harm_no_neighbour(schemas: bool, data: st.DataObject) -> None:
    flavour = Flavour(schemas=schemas)
    sound = {row: flavour.created(row) for row in range(4)}
    good_key, good = flavour.created(9)
    assert good is not None
    assert good_key is not None
    spliced = st.builds(
        lambda at, cut, junk: good[: at % len(good)] + junk + good[at % len(good) + cut :],
        st.integers(0, 5000), st.integers(0, 9), _bytes | st.just(b""),
    )  # fmt: skip
    values = st.none() | _bytes | spliced
    keys = st.none() | _bytes | st.just(good_key)
    strangers = data.draw(st.lists(st.tuples(keys, values), max_size=8))
    places = data.draw(st.permutations([*sound, *(None for _ in strangers)]))
    records: list[Record] = []
    expected: dict[int, int] = {}
    left = list(strangers)
    for place in places:
        if place is not None:
            expected[len(records)] = place
        records.append(left.pop() if place is None else sound[place])
    decoded = flavour.decode(records)
    end = min((stop.row for stop in decoded.stops), default=len(records))
    found = images(decoded)
    for at, row in expected.items():
        if at < end:
            after = found[at][1]
            assert after is not None
            assert (after["id"], after["name"], after["stock"]) == (row, f"item {row}", row)


@FLAVOURS
@settings(max_examples=examples(50))
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_the_order_and_place_of_rows_is_that_of_their_records(
    schemas: bool, kinds: list[int], data: st.DataObject
) -> None:
    flavour = Flavour(schemas=schemas)
    records, rows = [], []
    for at, kind in enumerate(kinds):
        if kind < 3:
            rows.append(at)
            records.append(flavour.created(1000 + at))
        elif kind == 3:
            records.append((flavour.key({"id": at}), None))
        else:
            records.append((flavour.key({"id": at}), data.draw(_bytes)))
    decoded = flavour.decode(records)
    if decoded.stops:
        return
    found = {at: after for at, (_, after) in images(decoded).items() if after}
    assert [at for at in rows if found[at]["id"] != 1000 + at] == []


_members = st.dictionaries(
    st.sampled_from(["a", "b", "name", "é", 'q"', "back\\", ":", "x "]),
    st.none() | st.integers(0, 9) | _texts,
    max_size=6,
)


@given(st.lists(_members, min_size=1, max_size=6), st.booleans())
@example([{'q"': None}], False)
@example([{"a": ":null"}, {"a": '":null,'}], True)
def test_no_more_nulls_are_counted_than_are_written(
    rows: list[dict[str, Any]], spaced: bool
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    texts = [json.dumps(row, separators=separators, ensure_ascii=False).encode() for row in rows]
    counted = written_nulls(pa.array(texts, pa.binary())).tolist()
    written = [sum(value is None for value in row.values()) for row in rows]
    assert all(few <= all_ for few, all_ in zip(counted, written, strict=True))
    ordinary = [not any(name[-1] in '"\\: ' for name in row) for row in rows]
    pairs = zip(counted, written, ordinary, strict=True)
    assert all(few == all_ for few, all_, plain in pairs if plain)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"s": st.none() | _texts}, optional={"a": st.none() | st.integers(0, 9)}
        ),
        min_size=1,
        max_size=8,
    )
)
def test_an_absent_member_is_always_noticed(rows: list[dict[str, Any]]) -> None:
    texts = pa.array([compact(row) for row in rows], pa.binary())
    read = pa.array(rows, pa.struct([("s", pa.string()), ("a", pa.int64())]))
    assert unproven_rows(texts, read).tolist() == ["a" not in row for row in rows]


@FLAVOURS
@given(_texts, st.none() | st.integers(-5, 5))
def test_the_screens_let_every_sound_text_pass(schemas: bool, name: str, stock: int | None) -> None:
    flavour = Flavour(schemas=schemas)
    row = image(1, name=name, stock=stock)
    value = flavour.value(payload("u", row, row))
    template = inspect(value, flavour.context, TableShapes(declare(DECLARED)))
    assert isinstance(template, Template)
    rest = pa.array([value[len(template.prefix) :]], pa.binary())
    assert starting_right(rest, template.shape.payload).to_pylist() == [True]
    assert matching(rest, template.shape.payload, template.closing).to_pylist() == [True]
