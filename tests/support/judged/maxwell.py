"""The forms of Maxwell's fixtures."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.support.debezium import Record, compact
from tests.support.judged.case import Case, Json, read, refused
from tests.support.maxwell import row_record, schema_record
from tests.support.maxwell_types import types

_KEYED = {"database": "shop", "table": "items"}
_ENCRYPTED = {"encrypted": {"iv": "AAAA", "bytes": "AAAA"}}


def _event(data: Json, kind: str = "insert", **more: Any) -> dict[str, Any]:
    keys = {"primary_key_columns": ["id"]} if "id" in data else {}
    return {**_KEYED, "type": kind, "ts": 1, "xid": 5, "commit": True, **keys, "data": data, **more}


def _record(data: Json, kind: str = "insert", **more: Any) -> Record:
    return None, compact(_event(data, kind, **more))


def _columns(expected: Json, data: Json, **declared: str) -> Case:
    """A row with a key and some columns."""
    return read([{"id": 1, **expected}], _record({"id": 1, **data}), id="int", **declared)


def _same(data: Json, **declared: str) -> Case:
    return _columns(data, data, **declared)


def _keyed(key: object, data: Json, **declared: str) -> Case:
    event = _event(data)
    event.pop("primary_key_columns", None)
    return Case([(compact(key), compact(event))], [{}], declared)


def _bootstrap() -> Case:
    return read(
        [{"id": 1}, {"id": 1, "a": None}],
        _record({"id": 1, "a": "x"}),
        _record({}, "bootstrap-start", comment="why"),
        _record({"id": 1, "a": None}, "bootstrap-insert", comment="why"),
        _record({}, "bootstrap-complete", comment="why"),
        id="int",
        a="text",
    )


def _schema_changes() -> Case:
    """Types by what Maxwell tells of an ALTER, which itself is no change of a row."""
    before, after = {"id": "int"}, {"id": "int", "note": "varchar(9)"}
    sql = "ALTER TABLE items ADD note varchar(9)"
    told = [
        schema_record("CREATE TABLE items (id int primary key)", 100, after=before),
        schema_record(sql, 200, before=before, after=after),
    ]
    rows = [row_record("insert", {"id": 1, "note": "x"}, 300), (None, told[1])]
    return Case(rows, [{"id": 1, "note": "x"}], history=types(*told))


_JSON = {"a": [1, {"b": "c"}], "d": 1.50}
_PLACED: dict[str, Any] = {"position": "binlog.000001:4", "gtid": None, "schema_id": 2}
_SEVERAL: dict[str, Any] = {"primary_key": [1, "a"], "primary_key_columns": ["id", "name"]}

CASES: dict[str, list[Case]] = {
    "Maxwell, `sql/json/bootstrap-*`": [_bootstrap()],
    "Maxwell, `test_1j`, `test_create_like`, `test_create_select`": [
        read(
            [{"id": 1}, {"id": 1, "at": None}, {"at": None, "n": 5}],
            _record({"id": 1}),
            _record({"id": 1, "at": None}, "update", old={"at": None}),
            _record({"id": 1, "at": None, "n": 5}, "update", old={"n": 10}),
            _record({"id": 1, "at": None}, "delete"),
            id="bigint",
            at="datetime",
            n="mediumint",
        )
    ],
    "Maxwell, `test_charsets`, `test_latin1`, `test_ucs2`": [_same({"a": "á河∆"}, a="text")],
    "Maxwell, `test_bignum`": [
        _columns({"n": Decimal(2**64 - 1)}, {"n": 2**64 - 1}, n="bigint unsigned")
    ],
    "Maxwell, `test_bit`": [
        _columns({"b": b"\x05" + b"\0" * 7}, {"b": 5}, b="bit(64)"),
        _columns({"b": b"\xff" * 8}, {"b": 2**64 - 1}, b="bit(64)"),
    ],
    "Maxwell, `test_blob`": [
        _columns({"b": b"\1\2\0\0"}, {"b": "AQI="}, b="binary(4)"),
        _columns({"b": b"\1\2"}, {"b": "AQI="}, b="blob"),
    ],
    "Maxwell, `test_case_insensitive`, `test_column_case`": [
        read([{"ID": 1, "aB": "x"}], _record({"ID": 1, "aB": "x"}), ID="int", aB="text"),
    ],
    "Maxwell, `test_enum`, `test_set`": [
        _same({"e": "b"}, e="enum"),
        _columns({"s": "a,b"}, {"s": ["a", "b"]}, s="set"),
        _columns({"s": ""}, {"s": []}, s="set"),
        _same({"s": None}, s="set"),
    ],
    "Maxwell, `test_gis`": [_same({"g": "POINT (7 1)"}, g="string")],
    "Maxwell, `test_invalid_time`, `test_zero_created_at`": [
        refused(_event({"at": "0000-00-00 00:00:00"}), at="datetime"),
        refused(_event({"on": "0000-00-00"}), on="date"),
    ],
    "Maxwell, `test_javascript_filters`": [_same({"a": "UP", "b": None}, a="text", b="text")],
    "Maxwell, `test_javascript_filters_rich_values`": [
        refused(_event({"id": 1, "a": [1, "b"]}), id="int", a="text")
    ],
    "Maxwell, `test_json`": [
        _columns({"j": '{"a":[1,{"b":"c"}],"d":1.5}'}, {"j": _JSON}, j="json")
    ],
    "Maxwell, `test_minimal`": [
        read(
            [{"id": 1, "a": "x"}, {"b": "y"}],
            _record({"id": 1, "a": "x"}),
            _record({"id": 1, "b": "y"}, "update"),
            id="int",
            a="text",
            b="text",
        )
    ],
    "Maxwell, `test_row_query_log_is_on`": [
        read([{"id": 1}], _record({"id": 1}, query="INSERT INTO items /* x */"), id="int")
    ],
    "Maxwell, `test_time`": [refused(_event({"t": "12:00:00.123"}), t="time")],
    "Maxwell, `sql/serialization/*`": [_schema_changes()],
    "Maxwell, `json/user-insert.json`": [
        _same({"n": None, "d": 0.5, "v": 17e11}, n="text", d="double", v="double")
    ],
    "Maxwell, `json/user-update.json`": [
        refused(_event({"id": 1}, "update", old={"gone": "x"}), id="int")
    ],
    "Maxwell, `json/*encrypted*.json`": [
        refused(_ENCRYPTED, id="int"),
        refused({**_KEYED, "type": "insert", "ts": 1, **_ENCRYPTED}, id="int"),
    ],
    "Maxwell, `RowMapTest.java`": [
        refused(_event({"id": 1, "name": "a"}, commit=None, **_SEVERAL, **_PLACED),
                id="int", name="text"),
    ],
    "Maxwell, `RowMapTest.java`, with `xoffset`": [
        read([{"id": 1}], _record({"id": 1, "name": "a"}, xoffset=3, **_SEVERAL, **_PLACED),
             id="int", name="text"),
    ],
    "Maxwell, `RowIdentityTest.java`, `MaxwellIntegrationTest.java`": [
        _keyed({**_KEYED, "pk.itemid": 1, "pk.tags": ["a"]}, {"ItemID": 1, "tags": ["a"]},
               ItemID="int", tags="set"),
        _keyed(["shop", "items", [{"itemid": 1}]], {"ItemID": 1}, ItemID="int"),
    ],
    "Maxwell, `RowIdentityTest.java`, what its own dead letters hold": [
        refused({**_KEYED, "type": "insert", "reason": "too large", "data": {"id": 1}}, id="int")
    ],
}  # fmt: skip
