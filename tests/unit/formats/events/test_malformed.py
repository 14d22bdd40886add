"""Malformed records of each kind: only the record itself is lost, its neighbours are decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext, Decoded, declare
from lakesplice.formats.events.json_reading.bad_texts import WrongStarts
from lakesplice.formats.events.json_reading.texts import Refused, parse_options, read_texts
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
    money,
    payload,
    rows_after,
    with_schema,
)

Make = Callable[[Flavour], Record]
FLAVOURS = pytest.mark.parametrize(
    "flavour", [Flavour(schemas=True), Flavour(schemas=False)], ids=["schemas", "plain"]
)
ROW = 50


def _value(change: Callable[[bytes], bytes]) -> Make:
    def make(flavour: Flavour) -> Record:
        key, value = flavour.created(ROW)
        assert value is not None
        return key, change(value)

    return make


def _key(change: Callable[[Flavour], bytes]) -> Make:
    return lambda flavour: (change(flavour), flavour.created(ROW)[1])


def _after(**changed: object) -> Make:
    return lambda flavour: flavour.created(ROW, **changed)


def _event(**changed: Any) -> Make:
    return lambda f: f.record({**payload("c", None, image(ROW)), **changed}, ROW)


def _source(**changed: Any) -> Make:
    return lambda f: f.record(payload("c", None, image(ROW), **changed), ROW)


def _without(name: str) -> Make:
    def make(flavour: Flavour) -> Record:
        after = image(ROW)
        del after[name]
        return flavour.record(payload("c", None, after), ROW)

    return make


def _wrapper_escape(text: bytes) -> Make:
    return lambda _: (b'{"id":50}', text)


def _tail(text: bytes) -> Make:
    """A value whose payload goes on after its end."""
    return _value(lambda v: v[:-1] + text if v.startswith(b'{"schema"') else v + text)


MALFORMED: dict[str, tuple[Make, str]] = {
    "no bytes": (_value(lambda _: b""), "empty"),
    "text": (_value(lambda _: b"hello"), "not-json"),
    "cut off": (_value(lambda v: v[:-30]), "not-json"),
    "cut within the schema": (_value(lambda v: v[:40]), "not-json"),
    "one byte": (_value(lambda _: b"{"), "not-json"),
    "null bytes": (_value(lambda _: b"\0\0\0\0"), "not-json"),
    "a null byte within a string": (_value(lambda v: v.replace(b"item 50", b"it\0m")), "not-json"),
    "a null byte after the end": (_value(lambda v: v + b"\0"), "not-json"),
    "a line break within a string": (_value(lambda v: v.replace(b"item 50", b"it\nm")), "not-json"),
    "a carriage return within": (_value(lambda v: v.replace(b"item 50", b"it\rm")), "not-json"),
    "a line break for a value": (_value(lambda _: b"\n"), "not-json"),
    "two values": (_value(lambda v: v + v), "not-json"),
    "two values on two lines": (_value(lambda v: v + b"\n" + v), "not-json"),
    "no UTF-8": (_value(lambda v: v.replace(b"item 50", b"it\xff")), "not-json"),
    "half a surrogate pair": (_value(lambda v: v.replace(b"item 50", b"\\ud83d")), "wrong-type"),
    "a surrogate in bytes": (_value(lambda v: v.replace(b"item 50", b"\xed\xa0\xbd")), "not-json"),
    "a wrong escape": (_value(lambda v: v.replace(b"item 50", b"\\x41")), "not-json"),
    "a byte order mark": (_value(lambda v: b"\xef\xbb\xbf" + v), "not-json"),
    "UTF-16": (_value(lambda v: v.decode().encode("utf-16")), "not-json"),
    "not a number": (_value(lambda v: v.replace(b'"stock":50', b'"stock":NaN')), "not-json"),
    "a comma too many": (_value(lambda v: v.replace(b'"op":"c"', b'"op":"c",')), "not-json"),
    "a comment": (_tail(b"// so"), "not-json"),
    "out of the wrapper": (_tail(b'} {"i":7,"p":{}'), "not-json"),
    "out of the wrapper with null": (_tail(b"} null {"), "not-json"),
    "a foreign wrapper": (_wrapper_escape(b'1} {"i":7,"p":{}}'), "not-json"),
    "closed and null": (_wrapper_escape(b"null}null"), "not-json"),
    "only braces": (_wrapper_escape(b"}}}}"), "not-json"),
    "an open array": (_wrapper_escape(b"[" * 100_000), "not-json"),
    "deep nesting": (_wrapper_escape(b'{"a":' * 50_000 + b"1" + b"}" * 50_000), "not-json"),
    "deep nesting for an integer": (
        _value(lambda v: v.replace(b'"stock":50', b'"stock":' + b"[" * 900 + b"]" * 900)),
        "not-json",
    ),
    "deep nesting in the envelope": (
        _value(
            lambda v: v.replace(b'"transaction":null', b'"transaction":' + b"[" * 900 + b"]" * 900)
        ),
        "not-json",
    ),
    "a second after": (
        _value(lambda v: v.replace(b'"op":"c"', b'"after":null,"op":"c"')),
        "unexpected-field",
    ),
    "a field twice": (
        _value(lambda v: v.replace(b'"stock":50', b'"stock":1,"stock":50')),
        "unexpected-field",
    ),
    "an array": (_value(lambda _: b"[]"), "not-an-envelope"),
    "a string": (_value(lambda _: b'"x"'), "not-an-envelope"),
    "a number": (_value(lambda _: b"5"), "not-an-envelope"),
    "an empty object": (_value(lambda _: b"{}"), "not-an-envelope"),
    "a flattened row": (_value(lambda _: compact(image(ROW))), "not-an-envelope"),
    "a schema change": (
        _value(lambda _: compact({"source": {}, "ddl": "drop table x", "tableChanges": []})),
        "wrong-table",
    ),
    "another table": (_source(table="orders"), "wrong-table"),
    "another database": (_source(db="crm"), "wrong-table"),
    "no table": (_source(table=None), "wrong-table"),
    "an unknown operation": (_event(op="x"), "unknown-op"),
    "an operation of a wrong type": (_event(op=5), "unknown-op|wrong-type"),
    "an empty operation": (_event(op=""), "unknown-op"),
    "no operation": (_event(op=None), "not-an-envelope|unknown-op"),
    "no source": (_event(source=None), "not-an-envelope"),
    "no row after a create": (_event(after=None), "missing-image"),
    "a row that is text": (_event(after="row"), "wrong-type"),
    "text for an integer": (_after(stock="5"), "wrong-type"),
    "a fraction for an integer": (_after(stock=1.5), "wrong-type"),
    "a whole fraction for an integer": (
        _value(lambda v: v.replace(b'"stock":50', b'"stock":50.0')), "wrong-type",
    ),
    "a power for an integer": (
        _value(lambda v: v.replace(b'"stock":50', b'"stock":5e1')), "wrong-type",
    ),
    "true for an integer": (_after(stock=True), "wrong-type"),
    "an object for an integer": (_after(stock={}), "wrong-type"),
    "an array for an integer": (_after(stock=[1]), "wrong-type"),
    "a number for text": (_after(name=5), "wrong-type"),
    "beyond 32 bits": (_after(stock=2**31), "out-of-range"),
    "below 32 bits": (_after(stock=-(2**31) - 1), "out-of-range"),
    "beyond 64 bits": (_after(stock=2**63), "out-of-range"),
    "beyond all bits": (_after(stock=10**400), "out-of-range"),
    "more digits than Python reads": (
        _value(lambda v: v.replace(b'"stock":50', b'"stock":' + b"9" * 5000)),
        "not-json|out-of-range",
    ),
    "no base64": (_after(price="###"), "wrong-type"),
    "base64 without padding": (_after(price="JxA"), "wrong-type"),
    "a decimal without bytes": (_after(price=""), "out-of-range"),
    "a decimal with too many digits": (_after(price=money(10**8)), "out-of-range"),
    "a decimal of 17 bytes": (_after(price=money(2**130)), "out-of-range"),
    "a null key column": (_after(id=None), "missing-key"),
    "another key": (_after(id=51), "key-mismatch"),
    "a key that isn't JSON": (_key(lambda _: b"fifty"), "missing-key"),
    "an empty key": (_key(lambda _: b""), "missing-key"),
    "a key that isn't UTF-8": (_key(lambda _: b"\xff"), "missing-key"),
    "a key that is a number": (_key(lambda _: b"50"), "missing-key"),
    "a key without columns": (_key(lambda _: b"{}"), "missing-key"),
    "a key with a null": (_key(lambda f: f.key({"id": None})), "missing-key"),
    "a key of a wrong type": (_key(lambda f: f.key({"id": "50"})), "missing-key"),
    "a key of another column": (_key(lambda _: b'{"nr":50}'), "missing-key"),
    "no binlog file": (_source(file=None), "missing-position"),
    "a file without a number": (_source(file="binlog"), "missing-position"),
    "a file number of 11 digits": (_source(file="binlog.12345678901"), "missing-position"),
    "a file number beyond 32 bits": (_source(file="binlog.4294967296"), "out-of-range"),
    "no place in the file": (_source(pos=None), "missing-position"),
    "no row in the event": (_source(row=None), "missing-position"),
    "a negative place": (_source(pos=-1), "out-of-range"),
    "a place beyond 41 bits": (_source(pos=2**41), "out-of-range"),
    "a row beyond 21 bits": (_source(row=2**21), "out-of-range"),
    "a time beyond all years": (_source(ts_us=None, ts_ms=10**17), "out-of-range"),
}  # fmt: skip
WITH_SCHEMAS_ONLY: dict[str, tuple[Make, str]] = {
    "a missing field": (_without("stock"), "missing-field"),
    "a missing field of the envelope": (
        _value(lambda v: v.replace(b'"payload":{"before":null,', b'"payload":{')), "missing-field",
    ),
    "an unknown field": (_after(colour="red"), "unexpected-field"),
    "something after the payload": (_tail(b',"more":1}'), "not-json"),
    "a payload that is text": (
        _value(lambda v: v[: v.index(b'"payload":')] + b'"payload":"x"}'),
        "not-an-envelope|wrong-type",
    ),
    "a schema that is none": (
        _value(lambda v: b'{"schema":{"type":"string"},' + v[v.index(b'"payload":') :]),
        "not-an-envelope",
    ),
}  # fmt: skip


def _expect_one_dead(decoded: Decoded, at: int, reason: str) -> None:
    assert list(dead(decoded)) == [at], decoded.stops
    assert dead(decoded)[at] in reason.split("|"), decoded.dead.detail
    assert decoded.stops == ()


@FLAVOURS
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_record_is_a_dead_letter_and_its_neighbours_are_unharmed(
    flavour: Flavour, kind: str
) -> None:
    make, reason = MALFORMED[kind]
    neighbours = [flavour.created(row) for row in range(6)]
    alone = images(flavour.decode(neighbours))
    for at in (0, 3, 6):
        decoded = flavour.decode([*neighbours[:at], make(flavour), *neighbours[at:]])
        _expect_one_dead(decoded, at, reason)
        found = [found for _, found in sorted(images(decoded).items())]
        assert found == [alone[row] for row in range(6)]


@pytest.mark.parametrize("kind", WITH_SCHEMAS_ONLY)
def test_a_record_that_lacks_a_field_of_its_schema_is_a_dead_letter(kind: str) -> None:
    flavour = Flavour(schemas=True)
    make, reason = WITH_SCHEMAS_ONLY[kind]
    for at in (0, 1):
        records = [flavour.created(1), flavour.created(2)]
        records.insert(at, make(flavour))
        decoded = flavour.decode(records)
        _expect_one_dead(decoded, at, reason)
        assert len(images(decoded)) == 2


@pytest.mark.slow
@FLAVOURS
def test_all_kinds_together_in_one_batch_cost_only_themselves(flavour: Flavour) -> None:
    kinds = {**MALFORMED, **(WITH_SCHEMAS_ONLY if flavour.schemas else {})}
    records, bad = [], {}
    for row, (make, reason) in enumerate(kinds.values()):
        records += [flavour.created(1000 + row), make(flavour), flavour.created(2000 + row)]
        bad[3 * row + 1] = reason
    decoded = flavour.decode(records)
    assert decoded.stops == ()
    assert dead(decoded).keys() == bad.keys()
    found = dead(decoded).items()
    assert [
        (list(kinds)[row // 3], why) for row, why in found if why not in bad[row].split("|")
    ] == []
    ids = [row["id"] for row in rows_after(decoded)]
    assert ids == [n for row in range(len(kinds)) for n in (1000 + row, 2000 + row)]
    # Members that started wrong are remembered, which changes no verdict.
    again = flavour.decode([records[0], (records[0][0], None), *records[1:]])
    assert list(dead(again).values()) == list(dead(decoded).values())
    assert images(again).keys() == {row + (row > 0) for row in images(decoded)}


def test_members_whose_values_start_wrong_are_remembered_until_none_does() -> None:
    payload = pa.struct([(name, pa.int64()) for name in "abcdef"] + [("s", pa.string())])
    memory = WrongStarts(payload)
    sound, wrong = b'{"a":1,"s":"x"}', b'{"a":"1","s":"x"}'
    texts = pa.array([sound, wrong], pa.binary())
    refused = read_texts(texts, parse_options(payload), b"}", threads=False)
    assert isinstance(refused, Refused)
    assert memory.learn(refused.message)
    assert not memory.learn(refused.message)
    assert memory.starting_right(pa.array([sound, wrong, b'{"s":5}'])).to_pylist() == [1, 0, 1]
    for name in "bcde":  # more than are searched for one by one
        assert memory.learn(refused.message.replace("/a)", f"/{name})"))
    assert memory.starting_right(pa.array([sound, wrong, b'{"s":5}'])).to_pylist() == [1, 0, 0]
    memory.forget()
    assert not memory
    assert not memory.learn("JSON parse error: Missing a comma")


@pytest.mark.slow
@FLAVOURS
def test_a_huge_value_is_read_and_a_broken_one_affects_only_its_record(flavour: Flavour) -> None:
    giant = "ä" * 10_000_000
    key, value = flavour.created(2, name=giant)
    assert value is not None
    decoded = flavour.decode(
        [flavour.created(1), (key, value), (key, value[:-1]), flavour.created(3)]
    )
    found = images(decoded)
    assert sorted(found) == [0, 1, 3]
    assert found[1][1] is not None
    assert found[1][1]["name"] == giant
    assert dead(decoded) == {2: "not-json"}


def test_a_number_that_json_lacks_is_a_dead_letter_wherever_it_stands() -> None:
    context = DecodeContext(TABLE, declare({**DECLARED, "stock": "double"}))
    made = [compact(payload("c", None, image(at, stock=7.5))) for at in range(4)]
    numbers = (b"NaN", b"7.5", b"NaN", b"-Infinity")
    values = [value.replace(b"7.5", own) for value, own in zip(made, numbers, strict=True)]
    keys = [compact({"id": at}) for at in range(4)]
    assert list(dead(decode_all(zip(keys, values, strict=True), context))) == [0, 2, 3]


def test_a_default_that_is_no_value_of_its_column_is_unknown() -> None:
    defaults = [7, 0.5, 2**63, True, "7", [7]]
    names = [f"c{at}" for at in range(len(defaults))]
    fields = [
        {"type": "int64", "optional": True, "field": name, "default": default}
        for name, default in zip(names, defaults, strict=True)
    ]
    id_ = {"type": "int64", "optional": False, "field": "id"}
    event = payload("c", None, {"id": 1, **dict.fromkeys(names)})
    value = compact(with_schema(event, envelope_schema([id_, *fields])))
    decoded = decode_all([(compact({"id": 1}), value)], DecodeContext(TABLE))
    _, *fills = [field.fill for field in decoded.blocks[0].schema.fields]
    assert fills == ["7", *[None] * 5]


def test_details_say_what_is_wrong_and_stay_short() -> None:
    flavour = Flavour(schemas=False)
    decoded = flavour.decode([make(flavour) for make, _ in MALFORMED.values()])
    assert all(detail and "\n" not in detail for detail in decoded.dead.detail)
    assert max(map(len, decoded.dead.detail)) < 600
    flattened = flavour.decode([(b'{"id":1}', compact(image(1)))])
    assert "ExtractNewRecordState" in flattened.dead.detail[0]


@pytest.mark.parametrize("digits", ["1" + "0" * 30, "-" + "9" * 39, "1e57", "0." + "1" * 19])
def test_a_decimal_that_exceeds_its_type_never_becomes_another_number(digits: str) -> None:
    context = DecodeContext(TABLE, declare({**DECLARED, "price": "decimal_text(38,18)"}))
    value = compact(payload("c", None, image(1, price=digits)))
    decoded = decode_all([(compact({"id": 1}), value)], context)
    assert list(dead(decoded)) == [0]
