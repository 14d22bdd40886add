"""The shop's events against the ones that a real connector wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakesplice.testing import shop
from lakesplice.testing.shop import columns as c
from lakesplice.testing.shop.events import EventWriter

PREFIX = "dbsch"
CAPTURED = {
    "orders": shop.TableSpec(
        "orders",
        (
            c.bigint("order_id", optional=False),
            c.integer("line_no", optional=False),
            c.varchar("sku"),
            c.integer("qty"),
            c.decimal("price", 10, 4),
        ),
        ("order_id", "line_no"),
    ),
    "customers": shop.TableSpec(
        "customers",
        (
            c.bigint("id", optional=False),
            c.varchar("email", optional=False),
            c.varchar("name"),
            c.decimal("balance", 12, 2, optional=False, default=0),
            c.decimal("rate", 30, 18),
            c.bigint("big_id"),
            c.integer("small_u"),
            c.smallint("tiny"),
            c.bits("flags", 8),
            c.boolean("onebit"),
            c.enum("status", ("new", "active", "blocked"), optional=False, default="new"),
            c.enum_set("tags", ("a", "b", "c")),
            c.varchar("prefs"),
            c.blob("avatar"),
            c.blob("bin16"),
            c.blob("vb"),
            c.varchar("note"),
            c.date("born"),
            c.time("at_time"),
            c.time("at_time6"),
            c.datetime_millis("dt"),
            c.datetime_millis("dt3"),
            c.datetime_micros("dt6"),
            c.timestamp("ts", 0),
            c.timestamp("ts6", 6),
            c.year("yr"),
            c.real("f"),
            c.double("d"),
            c.timestamp("created_at", 3, optional=False, default=0),
        ),
        ("id",),
    ),
}


@pytest.fixture
def captured(shared: Callable[..., Path]) -> list[dict[str, Any]]:
    path = shared("examples", "captures", "debezium-mariadb-dbsch.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _of(records: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return [record for record in records if record["topic"] == f"{PREFIX}.shop.{table}"]


@pytest.mark.parametrize("table", ["orders", "customers"])
def test_schema_blocks_are_the_connectors_to_the_byte(
    captured: list[dict[str, Any]], table: str
) -> None:
    writer = EventWriter(CAPTURED[table], PREFIX, "shop", "run", with_schemas=True)
    # The first snapshot row: nothing was altered yet.
    record = next(r for r in _of(captured, table) if '"op":"r"' in (r["value"] or ""))
    assert record["value"].startswith(writer.value_prefix)
    assert record["key"].startswith(writer.key_prefix)


@pytest.mark.parametrize("op", ["c", "u", "d"])
def test_an_event_has_the_members_of_a_captured_one_in_their_order(
    captured: list[dict[str, Any]], op: str
) -> None:
    real = next(r for r in _of(captured, "orders") if f'"op":"{op}"' in (r["value"] or ""))
    database = shop.Database([CAPTURED["orders"]], server=PREFIX)
    database.insert("orders", [(1, 1, "sku-a", 1, 10_000)])
    database.update("orders", [(1, 1)], lambda row: (*row[:3], 2, row[4]))
    database.delete("orders", [(1, 1)])
    ours = next(e for e in database.drain() if f'"op":"{op}"' in (e.value or b"").decode())
    # The captures' converter put defaults in the place of nulls.
    wanted = json.loads(real["value"].replace('"snapshot":"false"', '"snapshot":null'))
    assert _shape(json.loads(ours.value or b"")) == _shape(wanted)
    assert _shape(json.loads(ours.key or b"")) == _shape(json.loads(real["key"]))


def test_a_captured_row_is_written_to_the_byte(captured: list[dict[str, Any]]) -> None:
    record = next(
        r for r in _of(captured, "customers") if '"ann@example.com"' in (r["value"] or "")
    )
    writer = EventWriter(CAPTURED["customers"], PREFIX, "shop", "run", with_schemas=True)
    image = writer.image(
        (
            1, "ann@example.com", "Ann Ünï 😀", 123456789012, 123456789012123456789012345678, -1,
            65535, 1, b"\xa5", True, "active", "a,c", '{"k":[1,2,{"z":null}],"u":"ü"}',
            bytes.fromhex("00ff10deadbeef"), bytes.fromhex("00112233445566778899aabbccddeeff"),
            b"\xca\xfe", "long text", -1, -45_296_000_000, 86_399_123_456, 1709251199_000_000,
            1709251199_123_000, 1709251199_123_456, 1710037800_000_000, 1710037800_654_321, 2024,
            1.5, 2.718281828459045, 1704067200_001_000,
        )
    )  # fmt: skip
    assert f'"after":{image.text},' in record["value"]


def test_a_key_change_is_a_delete_its_tombstone_and_a_create_at_one_place(
    captured: list[dict[str, Any]],
) -> None:
    database = shop.Database([CAPTURED["orders"]], server=PREFIX)
    database.insert("orders", [(1, 2, "sku", 1, 1)])
    database.drain()
    database.update("orders", [(1, 2)], lambda row: (1, 20, *row[2:]))
    delete, tombstone, create = database.drain()
    real = [
        r for r in _of(captured, "orders") if _header_names(r["headers"]) & {"newkey", "oldkey"}
    ]
    assert len(real) == 3
    ours = [(e.headers[0][0], e.headers[0][1].decode()) for e in (delete, tombstone, create)]
    theirs = sorted((r["headers"][0] for r in real), key=lambda header: header[0])
    assert sorted(ours) == [tuple(header) for header in theirs]
    sources = [json.loads(e.value)["payload"]["source"] for e in (delete, create) if e.value]
    assert sources[0] == sources[1]
    assert tombstone.value is None


def test_context_headers_are_the_connectors(captured: list[dict[str, Any]]) -> None:
    database = shop.Database([CAPTURED["orders"]], server=PREFIX)
    database.insert("orders", [(1, 2, "sku", 1, 1)])
    [event] = database.drain()
    real = next(
        r
        for r in _of(captured, "orders")
        if '"op":"c"' in (r["value"] or "") and len(r["headers"]) == 4
    )
    assert [name for name, _ in event.headers] == [name for name, _ in real["headers"]]
    assert [v.decode() for _, v in event.headers[:3]] == [v for _, v in real["headers"][:3]]


def _header_names(headers: list[list[str]]) -> set[str]:
    return {name.removeprefix("__debezium.") for name, _ in headers}


def _shape(value: Any) -> Any:
    """The value with its leaves replaced by their kind, members in order; schemas stay."""
    if isinstance(value, dict):
        return [(name, of if name == "schema" else _shape(of)) for name, of in value.items()]
    return type(value).__name__
