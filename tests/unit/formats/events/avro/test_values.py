"""Values of Avro: those of the specification's examples, and what damage does."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.avro import Record, parse_schema, read_values, schema_ids
from lakesplice.formats.events.avro.walk import arrow_type
from lakesplice.testing.avro_records import frame, write_value
from tests.support.avro import record


def read(type_: Any, *values: bytes) -> tuple[list[Any], dict[int, str]]:
    """Values of one type, and which of them are flawed."""
    node = parse_schema(json.dumps(record("One", {"it": type_})))
    assert isinstance(node, Record)
    found = read_values(pa.array(values, pa.binary()), node)
    assert found.values.type == arrow_type(node)
    return (
        [row["it"] for row in found.values.to_pylist()],
        {row: flaw.detail for row, flaw in found.flaws.items()},
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [("00", 0), ("01", -1), ("02", 1), ("03", -2), ("04", 2), ("7f", -64), ("8001", 64),
     ("ffffffffffffffffff01", -(1 << 63)), ("feffffffffffffffff01", (1 << 63) - 1),
     ("8080808080808001", 1 << 48), ("808080808080808001", 1 << 55)],
)  # fmt: skip
def test_numbers_are_zigzag_in_sevens_of_bits(text: str, number: int) -> None:
    assert read("long", bytes.fromhex(text)) == ([number], {})


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("string", "06666f6f", "foo"),
        ("string", "00", ""),
        ("bytes", "0400ff", b"\0\xff"),
        ("boolean", "01", True),
        ("boolean", "00", False),
        ("int", "feffffff0f", (1 << 31) - 1),
        ("int", "ffffffff0f", -(1 << 31)),
        ("float", "0000c03f", 1.5),
        ("double", "000000000000f8bf", -1.5),
        (["null", "string"], "00", None),
        (["null", "string"], "020261", "a"),
        (["string", "null"], "000261", "a"),
        (["string", "null"], "02", None),
        ({"type": "fixed", "name": "Two", "size": 2}, "abcd", b"\xab\xcd"),
        ({"type": "enum", "name": "Abc", "symbols": ["A", "B"]}, "02", "B"),
        ({"type": "enum", "name": "Abc", "symbols": ["A", "B"]}, "00", "A"),
        ("null", "", None),
        (record("Inner", {"a": "int", "b": "string"}), "360666" + "6f6f", {"a": 27, "b": "foo"}),
    ],
)
def test_each_type_reads_as_the_specification_writes_it(
    type_: Any, text: str, value: object
) -> None:
    assert read(type_, bytes.fromhex(text)) == ([value], {})


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        ("long", "", "runs beyond the record"),
        ("long", "80", "runs beyond the record"),
        ("long", "0000", "after the end of the value"),
        ("long", "ffffffffffffffffff02", "beyond 64 bits"),
        ("long", "ffffffffffffffffffff01", "beyond 64 bits"),
        ("int", "8080808010", "beyond 32 bits"),
        ("int", "8180808010", "beyond 32 bits"),
        ("string", "08616263", "runs beyond the record"),
        ("string", "01", "runs beyond the record"),
        ("string", "02ff", "isn't UTF-8"),
        ("boolean", "02", "beyond 0 or 1"),
        ("double", "00000000000000", "runs beyond the record"),
        (["null", "long"], "04", "of no type of its union"),
        (["null", "long"], "01", "of no type of its union"),
        ({"type": "enum", "name": "Abc", "symbols": ["A", "B"]}, "04", "beyond its symbols"),
        ({"type": "enum", "name": "Abc", "symbols": ["A", "B"]}, "01", "beyond its symbols"),
    ],
)
def test_damage_is_reported_and_costs_no_neighbour(type_: Any, text: str, why: str) -> None:
    node = parse_schema(json.dumps(record("One", {"it": type_})))
    sound = write_value(node, {"it": _sample(type_)})
    values, flaws = read(type_, sound, bytes.fromhex(text), sound)
    assert flaws.keys() == {1}
    assert why in flaws[1]
    assert (values[0], values[2]) == (_sample(type_), _sample(type_))


def _sample(type_: Any) -> Any:
    if isinstance(type_, list):
        return 5
    named = {"int": 300, "long": -300, "string": "ü", "boolean": True, "double": 0.5}
    return named.get(type_ if isinstance(type_, str) else "", "B")


def test_an_unwanted_value_is_skipped_but_checked() -> None:
    node = parse_schema(json.dumps(record("Two", {"a": ["null", "string"], "b": "long"})))
    assert isinstance(node, Record)
    rows = [bytes.fromhex("02026104"), bytes.fromhex("0004"), bytes.fromhex("02086104")]
    found = read_values(pa.array(rows, pa.binary()), node, {"b": None})
    assert found.values.to_pylist()[:2] == [{"b": 2}, {"b": 2}]
    assert found.flaws.keys() == {2}


def test_names_are_found_where_they_were_defined_also_in_another_schema() -> None:
    inner = record("Inner", {"a": "int"})
    outer = record("Outer", {"one": "Inner", "two": ["null", "test.shop.items.Inner"]})
    node = parse_schema(json.dumps(outer), [json.dumps(inner)])
    assert isinstance(node, Record)
    found = read_values(pa.array([bytes.fromhex("020204")], pa.binary()), node)
    assert found.values.to_pylist() == [{"one": {"a": 1}, "two": {"a": 2}}]


def test_an_avro_type_that_is_not_supported_is_refused_by_name() -> None:
    for type_ in ({"type": "array", "items": "int"}, ["null", "int", "string"]):
        node = parse_schema(json.dumps(record("One", {"it": type_})))
        with pytest.raises(UnsupportedError):
            arrow_type(node)
    itself = record("Itself", {"next": ["null", "Itself"]})
    with pytest.raises(UnsupportedError):
        parse_schema(json.dumps(itself))


def test_heads_name_schemas_by_four_bytes_or_by_eight() -> None:
    values = [frame(7, b"x"), frame(8, b"", 8), frame(7, b""), b"", None, b"\0\0", b"{}      ",
              b"\0" * 9, frame(1 << 30, b"")]  # fmt: skip
    assert schema_ids([pa.array(values, pa.binary())]) == {7, 8, 1 << 30}
    assert schema_ids([pa.array(values, pa.binary()).slice(2, 6)]) == {7}


@pytest.mark.parametrize("kind", ["items", "values"])
def test_a_schema_of_too_many_levels_is_refused(kind: str) -> None:
    nested: object = "long"
    for _ in range(30):
        nested = {"type": "array" if kind == "items" else "map", kind: nested}
    with pytest.raises(UnsupportedError, match="too deeply"):
        parse_schema(json.dumps(record("One", {"it": nested})))
