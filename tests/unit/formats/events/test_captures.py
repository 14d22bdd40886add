"""Events that a real connector sent, of the workload that every capture comes from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, Decoded, declare
from lakesplice.model.change import Op
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from tests.support.debezium import captured, dead, decode_all

DECLARED = {
    "customers": {
        "id": "bigint", "email": "string", "name": "string", "balance": "decimal(12,2)",
        "rate": "decimal(30,18)", "big_id": "bigint", "small_u": "int", "tiny": "smallint",
        "flags": "binary", "onebit": "boolean", "status": "string", "tags": "string",
        "prefs": "string", "avatar": "blob", "bin16": "binary", "vb": "binary", "note": "text",
        "born": "date", "at_time": "time", "at_time6": "time", "dt": "datetime",
        "dt3": "datetime(3)", "dt6": "datetime(6)", "ts": "timestamp", "ts6": "timestamp",
        "yr": "year", "f": "float", "d": "double", "created_at": "timestamp",
        "phone": "string", "score": "int",
    },
    "orders": {
        "order_id": "bigint", "line_no": "int", "sku": "string", "qty": "int",
        "price": "decimal(10,4)",
    },
    "audit": {"id": "bigint", "what": "string", "at": "timestamp"},
    "nopk": {"a": "int", "b": "string"},
}  # fmt: skip
ANN = {
    "id": 1, "email": "ann@example.com", "name": "Ann Ünï 😀", "balance": Decimal("1234567890.12"),
    "rate": Decimal("123456789012.123456789012345678"), "big_id": -1, "small_u": 65535, "tiny": 1,
    "flags": b"\xa5", "onebit": True, "status": "active", "tags": "a,c",
    "prefs": '{"k":[1,2,{"z":null}],"u":"ü"}', "avatar": b"\x00\xff\x10\xde\xad\xbe\xef",
    "bin16": bytes.fromhex("00112233445566778899aabbccddeeff"), "vb": b"\xca\xfe",
    "note": "long text", "born": date(1969, 12, 31), "at_time": -45_296_000_000,
    "at_time6": 86_399_123_456, "dt": datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
    "dt3": datetime(2024, 2, 29, 23, 59, 59, 123_000, tzinfo=UTC),
    "dt6": datetime(2024, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC),
    "ts": datetime(2024, 3, 10, 2, 30, tzinfo=UTC),
    "ts6": datetime(2024, 3, 10, 2, 30, 0, 654_321, tzinfo=UTC),
    "yr": 2024, "f": 1.5, "d": 2.718281828459045,
    "created_at": datetime(2024, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC),
}  # fmt: skip
CAPTURES = pytest.mark.parametrize("capture", ["dbsch", "dbplain"])
Rows = list[tuple[Op, dict[str, Any] | None, dict[str, Any] | None, Position, Any]]


@pytest.fixture
def events(shared: Callable[..., Path]) -> Callable[[str, str], dict[int, Decoded]]:
    """Decoded partitions of a captured table."""

    def load(capture: str, table: str) -> dict[int, Decoded]:
        records = captured(shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl"))
        topic = f"{capture}.shop.{table}"
        declared = declare(DECLARED[table]) if capture == "dbplain" else None
        context = DecodeContext(TableName.from_topic(topic), declared)
        return {at: decode_all(found, context) for (t, at), found in records.items() if t == topic}

    return load


def _rows(partitions: dict[int, Decoded]) -> Rows:
    rows: Rows = []
    for decoded in partitions.values():
        for block in decoded.blocks:
            before, after = block.before.to_pylist(), block.after.to_pylist()
            for at in range(len(block)):
                position = Position(int(block.position_file[at]), int(block.position_offset[at]))
                rows.append(
                    (
                        Op(block.op[at]),
                        before[at] if block.before_present[at] else None,
                        after[at] if block.after_present[at] else None,
                        position,
                        block.gtid[at].as_py(),
                    )
                )
    return sorted(rows, key=lambda row: row[3])


def _find(rows: Rows, op: Op, **wanted: object) -> dict[str, Any]:
    for found, before, after, _, _ in rows:
        image = before if op is Op.DELETE else after
        if found is op and image and wanted.items() <= image.items():
            return image
    raise AssertionError(f"no {op.name} of {wanted}")


@pytest.mark.slow
@CAPTURES
def test_every_type_has_the_value_that_the_database_had(
    capture: str, events: Callable[[str, str], dict[int, Decoded]]
) -> None:
    rows = _rows(events(capture, "customers"))
    assert _find(rows, Op.READ, id=1) == ANN
    nulls = _find(rows, Op.READ, id=2)
    assert nulls == {
        **dict.fromkeys(ANN), "id": 2, "email": "nulls@example.com", "balance": Decimal("-0.01"),
        "status": "new", "created_at": datetime(2024, 1, 1, 0, 0, 0, 2_000, tzinfo=UTC),
    }  # fmt: skip
    bob = _find(rows, Op.CREATE, email="bob@example.com")
    assert bob["balance"] == Decimal("10.50")
    assert bob["big_id"] == -(2**63)
    assert bob["dt6"] == datetime(2025, 1, 1, 0, 0, 0, 1, tzinfo=UTC)


@pytest.mark.slow
def test_zero_dates_negative_times_and_empty_bytes_are_as_the_connector_sends_them(
    events: Callable[[str, str], dict[int, Decoded]],
) -> None:
    rows = _rows(events("dbsch", "customers"))
    zero = _find(rows, Op.CREATE, email="zero@example.com")
    assert (zero["born"], zero["dt"]) == (None, None)
    assert zero["ts"] == datetime(1970, 1, 1, tzinfo=UTC)
    times = _find(rows, Op.CREATE, email="t@example.com")
    assert times["at_time"] == (838 * 3600 + 59 * 60 + 59) * 1_000_000
    assert times["at_time6"] == -times["at_time"]
    assert (times["avatar"], times["vb"], times["bin16"]) == (b"", b"", b"\x01".ljust(16, b"\0"))


@pytest.mark.slow
@CAPTURES
def test_an_added_column_appears_in_the_schema_of_the_records_that_have_it(
    capture: str, events: Callable[[str, str], dict[int, Decoded]]
) -> None:
    blocks = [b for d in events(capture, "customers").values() for b in d.blocks]
    names = {tuple(field.name for field in block.schema.fields) for block in blocks}
    plain = tuple(ANN)
    at = plain.index("name") + 1
    assert plain in names
    assert (*plain[:at], "phone", *plain[at:], "score") in names


@pytest.mark.slow
def test_a_changed_scale_changes_the_source_type(
    events: Callable[[str, str], dict[int, Decoded]],
) -> None:
    blocks = [b for d in events("dbsch", "customers").values() for b in d.blocks]
    balances = {f.source_type for b in blocks for f in b.schema.fields if f.name == "balance"}
    decimal = "bytes:org.apache.kafka.connect.data.Decimal"
    assert balances == {f"{decimal}(12,2)", f"{decimal}(16,4)"}
    statuses = {f.source_type for b in blocks for f in b.schema.fields if f.name == "status"}
    assert statuses == {"string:io.debezium.data.Enum"}
    last = _find(_rows(events("dbsch", "customers")), Op.CREATE, email="edge@example.com")
    assert last["balance"] == Decimal("-99999999.9999")
    assert last["rate"] == Decimal("-0.000000000000000001")
    assert last["born"] == date(9999, 12, 31)
    assert last["dt6"] == datetime(1000, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert last["prefs"] == "null"
    assert (last["yr"], last["tiny"], last["big_id"]) == (1901, -128, 0)


@pytest.mark.slow
def test_an_undeclared_column_stops_the_partition_there(
    events: Callable[[str, str], dict[int, Decoded]],
) -> None:
    stops = [stop for d in events("dbplain", "customers").values() for stop in d.stops]
    assert {stop.code for stop in stops} == {ParkCode.TYPES_UNDECLARED}
    assert all("small_unsigned" in stop.detail for stop in stops)


@CAPTURES
def test_orders_are_the_workload_in_the_order_of_their_positions(
    capture: str, events: Callable[[str, str], dict[int, Decoded]]
) -> None:
    table: dict[tuple[int, int], tuple[Any, ...]] = {}
    for op, before, after, _, _ in _rows(events(capture, "orders")):
        image = before if op is Op.DELETE else after
        assert image is not None
        key = (image["order_id"], image["line_no"])
        if op is Op.DELETE:
            del table[key]
        else:
            table[key] = (image["sku"], image["qty"], image["price"])
    assert table == {
        (1, 20): ("sku-2", 1, Decimal("0.0001")),
        (2, 1): ("sku-replaced", 7, Decimal("7.7000")),
        (2, 2): ("sku-b", 7, Decimal("2.5000")),
        (2, 3): (None, None, None),
        (9, 9): ("after-signal", 1, Decimal("1.0000")),
    }


@CAPTURES
def test_a_key_update_is_a_delete_just_before_a_create(
    capture: str, events: Callable[[str, str], dict[int, Decoded]]
) -> None:
    rows = _rows(events(capture, "orders"))
    create = next(row for row in rows if row[2] and row[2]["line_no"] == 20)
    delete = next(row for row in rows if row[0] is Op.DELETE and row[1] and row[1]["line_no"] == 2)
    assert create[0] is Op.CREATE
    assert delete[3].parts[:4] == create[3].parts[:4]
    assert delete[3] < create[3]
    assert delete[4] == create[4]


@pytest.mark.slow
@CAPTURES
def test_keys_and_their_absence_are_reported(
    capture: str, events: Callable[[str, str], dict[int, Decoded]]
) -> None:
    def keys(table: str) -> set[tuple[str, ...]]:
        return {b.schema.key for d in events(capture, table).values() for b in d.blocks}

    assert keys("orders") == {("order_id", "line_no")}
    assert keys("audit") == {("id",)}
    assert keys("nopk") == {()}
    tombstones = sum(d.ignored["tombstone"] for d in events(capture, "orders").values())
    assert tombstones == 2
    assert all(not dead(d) for table in ("orders", "nopk") for d in events(capture, table).values())
