"""Properties of the shop's events as a whole."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.testing import shop
from lakesplice.testing.oracle import position
from lakesplice.testing.shop import columns


def _payload(event: shop.Event) -> dict[str, Any]:
    value = json.loads(event.value or b"null")
    payload: dict[str, Any] = value["payload"]
    return payload


def _changes(events: list[shop.Event]) -> list[dict[str, Any]]:
    return [_payload(event) for event in events if event.value]


@pytest.mark.slow
def test_equal_arguments_give_equal_bytes_however_the_steps_are_cut() -> None:
    one, other = shop.Shop(7), shop.Shop(7)
    assert one.snapshot() == other.snapshot()
    cut = [event for _ in range(20) for event in one.step(10)]
    whole = other.step(len(cut))
    assert cut == whole[: len(cut)]
    assert shop.Shop(8).snapshot() != shop.Shop(7).snapshot()


def test_snapshot_rows_share_one_place_and_name_no_transaction() -> None:
    sources = [change["source"] for change in _changes(shop.Shop(1, rows=20).snapshot())]
    assert {(s["file"], s["pos"], s["row"], s["server_id"], s["gtid"]) for s in sources} == {
        ("binlog.000001", 6703, 0, 0, None)
    }
    assert sources[0]["snapshot"] == "first"
    assert sources[-1]["snapshot"] == "last"


@pytest.mark.slow
def test_positions_rise_and_binlog_files_rotate() -> None:
    changes = _changes(shop.Shop(2, binlog_file_bytes=50_000).step(3_000))
    places = [position(change["source"], change["op"]) for change in changes]
    # Only the halves of a key change share their place; the delete comes first.
    assert all(before < after for before, after in pairwise(places))
    assert len({place[0] for place in places}) > 3


@pytest.mark.slow
def test_statements_share_an_offset_and_transactions_an_id() -> None:
    changes = _changes(shop.Shop(3).step(2_000))
    rows_per_offset = Counter((c["source"]["file"], c["source"]["pos"]) for c in changes)
    assert max(rows_per_offset.values()) > 2
    tables_per_gtid: dict[str, set[str]] = {}
    for change in changes:
        source = change["source"]
        tables_per_gtid.setdefault(source["gtid"], set()).add(source["table"])
    assert {"orders", "order_lines", "products"} in tables_per_gtid.values()


@pytest.mark.slow
def test_every_kind_of_change_occurs() -> None:
    events = shop.Shop(4).step(5_000)
    ops = Counter((_payload(e)["source"]["table"], _payload(e)["op"]) for e in events if e.value)
    assert {op for table, op in ops if table == "carts"} == {"c", "u", "d"}
    assert ops["order_lines", "d"]
    assert ops["products", "u"] > 500
    headers = {name for event in events for name, _ in event.headers}
    assert {"__debezium.newkey", "__debezium.oldkey"} <= headers
    deletes = sum(1 for event in events if event.value and _payload(event)["op"] == "d")
    assert deletes == sum(1 for event in events if event.value is None)


@pytest.mark.slow
def test_a_key_is_taken_again_after_its_delete() -> None:
    last_op: dict[bytes, str] = {}
    returned = 0
    for event in shop.Shop(5).step(5_000):
        if event.value and event.key and event.topic.endswith(".carts"):
            op = _payload(event)["op"]
            returned += op == "c" and last_op.get(event.key) == "d"
            last_op[event.key] = op
    assert returned > 10


@pytest.mark.slow
def test_an_updates_before_image_is_the_row_as_it_last_stood() -> None:
    rows: dict[bytes, Any] = {}
    made = shop.Shop(6)
    for event in made.snapshot() + made.step(3_000):
        if event.value and event.key:
            change = _payload(event)
            assert change["op"] == "r" or change["before"] == rows.get(event.key)
            rows[event.key] = change["after"]


@pytest.mark.slow
def test_events_without_schemas_are_the_same_events() -> None:
    with_schemas, plain = shop.Shop(9), shop.Shop(9, with_schemas=False)
    for rich, bare in zip(with_schemas.step(200), plain.step(200), strict=True):
        if rich.value and bare.value:
            assert _payload(rich) == json.loads(bare.value)


def test_a_wide_update_is_of_the_size_that_benchmarks_speak_of() -> None:
    events = shop.Shop(1, [shop.WIDE], with_schemas=False, rows=100).step(200)
    sizes = [len(event.value) for event in events if event.value and b'"op":"u"' in event.value]
    assert 1_250 < sum(sizes) / len(sizes) < 1_550
    assert len(shop.WIDE.columns) == 23


@pytest.mark.slow
def test_four_hundred_tables_have_topics_of_their_own() -> None:
    made = shop.Shop(1, shop.small_tables(400), rows=2)
    assert len({event.topic for event in made.step(8_000)}) == 400


def test_an_added_column_travels_with_later_changes() -> None:
    made = shop.Shop(3)
    made.add_column("products", columns.integer("reserved", optional=False, default=7))
    changes = [_payload(e) for e in made.step(200) if e.value and e.topic.endswith(".products")]
    assert all(change["after"]["reserved"] == 7 for change in changes if change["op"] == "u")
    assert made.truth("products").schema.field("reserved").type == pa.int32()


def test_a_table_without_a_key_has_events_without_one() -> None:
    events = shop.Shop(1, [shop.VISITS]).step(10)
    assert all(event.key is None and event.value for event in events)


@pytest.mark.slow
def test_declared_types_name_the_columns_types() -> None:
    made = shop.Shop(1, [*shop.SHOP, shop.WIDE])
    declared = made.database.declared_types()
    for table in made.tables:
        for column in table.columns:
            assert DeclaredType.parse(declared[table.name][column.name]).type == column.type


@pytest.mark.parametrize(
    ("table", "column", "type_"),
    [
        ("customers", "balance", pa.decimal128(12, 2)),
        ("customers", "loyalty", pa.decimal128(30, 18)),
        ("customers", "born", pa.date32()),
        ("customers", "calls_after", pa.int64()),
        ("customers", "newsletter", pa.bool_()),
        ("customers", "avatar", pa.binary()),
        ("customers", "created_at", pa.timestamp("us", tz="UTC")),
        ("products", "weight", pa.float32()),
        ("products", "shelf", pa.int16()),
        ("products", "updated_at", pa.timestamp("us", tz="UTC")),
        ("orders", "status", pa.string()),
    ],
)
def test_truth_stands_in_the_lakes_types(table: str, column: str, type_: pa.DataType) -> None:
    assert shop.Shop(1).truth(table).schema.field(column).type == type_
