"""Rows that ExtractNewRecordState made of events: what they contain, and what parks a table if it
is missing.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering, Position
from tests.support.debezium import DECLARED, TABLE, compact, dead, decode_all, image, images

ADDED = {
    "__deleted": "false",
    "__op": "c",
    "__table": "items",
    "__source_ts_ms": 1795247776000,
    "__source_file": "binlog.000003",
    "__source_pos": 4,
    "__source_row": 0,
    "__source_gtid": "0-1-7",
}
CONTEXT = DecodeContext(TABLE, declare(DECLARED))


def flat(row: int, *without: str, **added: object) -> tuple[bytes, bytes]:
    members = {**image(row), **ADDED, **added}
    return compact({"id": row}), compact({n: v for n, v in members.items() if n not in without})


def test_a_row_is_its_columns_and_what_was_added_is_what_happened() -> None:
    records = [flat(1), flat(2, __op="u", __source_pos=9), flat(1, __op="d", __deleted="true")]
    decoded = decode_all(records, CONTEXT)
    assert decoded.format is FormatName.FLATTENED
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.CREATE, Op.UPDATE, Op.DELETE]
    row = {"id": 1, "name": "item 1", "price": Decimal("1.00"), "stock": 1}
    assert images(decoded)[0] == (None, row)
    assert images(decoded)[2] == (row, None)
    assert block.ordering is Ordering.BINLOG
    position = Position(int(block.position_file[1]), int(block.position_offset[1]))
    assert position == Position.of(0, 3, 9, 0, 1)
    assert block.source_ts[0].as_py() == datetime(2026, 11, 21, 7, 56, 16, tzinfo=UTC)
    assert block.gtid[0].as_py() == "0-1-7"


@pytest.mark.parametrize("missing", ["__source_file", "__source_pos", "__source_row"])
def test_without_a_whole_position_the_order_is_that_of_the_records(missing: str) -> None:
    (block,) = decode_all([flat(1, missing), flat(2, missing)], CONTEXT).blocks
    assert block.ordering is Ordering.KAFKA
    assert block.position_file.tolist() == [0, 0]
    assert block.position_offset[0] < block.position_offset[1]
    assert block.gtid.null_count == 2


def test_fields_are_also_added_under_their_own_names() -> None:
    renamed = {name.replace("__source_", "__"): value for name, value in ADDED.items()}
    value = compact({**image(1), **renamed, "__ts_ms": 5})
    (block,) = decode_all([(compact({"id": 1}), value)], CONTEXT).blocks
    assert block.ordering is Ordering.BINLOG
    assert block.source_ts[0].as_py() is None


def test_without_an_operation_a_row_that_is_not_deleted_was_changed() -> None:
    (block,) = decode_all([flat(1, "__op"), flat(2, "__op", __deleted="true")], CONTEXT).blocks
    assert block.op.tolist() == [Op.UPDATE, Op.DELETE]


def test_rows_that_do_not_say_whether_they_are_deleted_park_the_table() -> None:
    decoded = decode_all([flat(1, "__deleted")], CONTEXT)
    (stop,) = decoded.stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "delete.tombstone.handling.mode" in stop.detail


def test_columns_without_a_declared_type_park_the_table() -> None:
    decoded = decode_all([flat(1, __mine=1)], CONTEXT)
    assert decoded.stops[0].code is ParkCode.TYPES_UNDECLARED
    assert "__mine" in decoded.stops[0].detail


def test_a_column_that_is_named_like_an_added_field_is_a_column_if_it_is_declared() -> None:
    context = DecodeContext(TABLE, declare({**DECLARED, "__pos": "int"}))
    decoded = decode_all([flat(1, __pos=7)], context)
    after = images(decoded)[0][1]
    assert after is not None
    assert after["__pos"] == 7


def test_with_a_schema_types_come_from_it() -> None:
    fields = [
        {"type": "int64", "optional": False, "field": "id"},
        {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "field": "day"},
        *({"type": "string", "optional": True, "field": n} for n in ("__deleted", "__op")),
    ]
    schema = {"type": "struct", "fields": fields, "optional": True, "name": "t.shop.items.Value"}
    payload = {"id": 1, "day": 1, "__deleted": "false", "__op": "r"}
    key_schema = {"type": "struct", "fields": fields[:1], "optional": False, "name": "Key"}
    key = compact({"schema": key_schema, "payload": {"id": 1}})
    value = compact({"schema": schema, "payload": payload})
    gone = compact({"schema": None, "payload": None})
    decoded = decode_all([(key, value), (key, gone)], DecodeContext(TABLE))
    (block,) = decoded.blocks
    assert [(f.name, f.type and f.type.name) for f in block.schema.fields] == [
        ("id", "long"),
        ("day", "date"),
    ]
    assert decoded.ignored == {"tombstone": 1}


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "a deleted that is neither": ({"__deleted": "maybe"}, "wrong-type"),
    "an unknown operation": ({"__op": "x"}, "unknown-op"),
    "an operation and a deletion that disagree": ({"__op": "d"}, "unknown-op"),
    "another table": ({"__table": "other"}, "wrong-table"),
    "another database": ({"__db": "elsewhere"}, "wrong-table"),
    "a row beyond its bits": ({"__source_row": 1 << 30}, "out-of-range"),
    "a file that is no binlog": ({"__source_file": "x"}, "missing-position"),
    "no position in one": ({"__source_pos": None}, "missing-position"),
    "a column of another type": ({"stock": "many"}, "wrong-type"),
    "a value beyond its type": ({"stock": 1 << 40}, "out-of-range"),
    "a time beyond years": ({"__source_ts_ms": 1 << 60}, "out-of-range"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_row_costs_only_itself(kind: str) -> None:
    more, reason = MALFORMED[kind]
    decoded = decode_all([flat(1), flat(2, **more), flat(3)], CONTEXT)
    assert dead(decoded) == {1: reason}
    assert sorted(images(decoded)) == [0, 2]


@pytest.mark.parametrize("value", [[], {}, 5, "row", ["id"]], ids=repr)
def test_a_value_that_is_no_row_is_a_dead_letter_and_parks_nothing(value: object) -> None:
    decoded = decode_all([flat(1), (compact({"id": 2}), compact(value)), flat(3)], CONTEXT)
    assert dead(decoded) == {1: "not-an-envelope"}
    assert not decoded.stops
    assert sorted(images(decoded)) == [0, 2]


def test_a_truncation_stops_the_table() -> None:
    decoded = decode_all([flat(1), flat(2, __op="t"), flat(3)], CONTEXT)
    assert [(stop.row, stop.code) for stop in decoded.stops] == [(1, ParkCode.TRUNCATED)]


def test_a_record_of_another_format_parks_the_table_that_has_one() -> None:
    context = DecodeContext(TABLE, declare(DECLARED), FormatName.DEBEZIUM)
    decoded = decode_all([flat(1)], context)
    assert decoded.stops[0].code is ParkCode.FORMAT_CHANGED
    assert "debezium-flattened-json" in decoded.stops[0].detail


def test_the_first_record_that_is_an_event_shows_the_format() -> None:
    records = [(None, None), (None, b"junk"), flat(1)]
    assert decode_all(records, CONTEXT).format is FormatName.FLATTENED
    nothing = decode_all(records[:2], CONTEXT)
    assert (nothing.format, dead(nothing)) == (None, {1: "not-json"})


def test_a_table_of_a_topic_with_one_part_has_any_database() -> None:
    context = DecodeContext(TableName.from_topic("items"), declare(DECLARED))
    assert len(decode_all([flat(1, __db="elsewhere")], context).blocks) == 1


def test_a_geometry_is_read_from_a_flattened_row() -> None:
    """A POINT has two members more, and a null shows neither."""
    wkb = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    of_4326 = wkb[:4] + b"\x20\xe6\x10\0\0" + wkb[5:]
    written = base64.b64encode(wkb).decode()
    shapes = [
        None, {"wkb": written, "srid": 4326}, {"x": 1.0, "y": 2.0, "wkb": written, "srid": None},
        {"wkb": written, "srid": None}, None,
    ]  # fmt: skip
    context = DecodeContext(TABLE, declare({**DECLARED, "v": "geometry"}))
    records = [flat(at, v=shape) for at, shape in enumerate(shapes)]
    decoded = decode_all([*records, flat(5, v={"wkb": "?", "srid": 0})], context)
    assert dead(decoded) == {5: "wrong-type"}
    found = [after and after["v"] for _, after in images(decoded).values()]
    assert sorted(found, key=str) == sorted([None, of_4326, wkb, wkb, None], key=str)
