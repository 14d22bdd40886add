"""Captures of a real connector, replayed record by record, end as the workload that made them says.

What MySQL held is written out by hand, from the statements of `workload.py` and the rows of
`schema.sql`; only moments that the server's clock chose are taken from the capture.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.model.manifest import ParkCode
from lakesplice.model.names import IS_DELETED
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support.readers import READERS
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import make_topics, read_capture, resend

TABLES = ("orders", "audit", "customers", "nopk", "debezium_signal")
DECLARED = {
    "orders": {
        "order_id": "bigint",
        "line_no": "int",
        "sku": "string",
        "qty": "int",
        "price": "decimal(10,4)",
    },
    "audit": {"id": "bigint", "what": "string", "at": "timestamp"},
    "nopk": {"a": "int", "b": "string"},
    "customers": {
        "id": "bigint",
        "email": "string",
        "name": "string",
        "phone": "string",
        "balance": "decimal(12,2)",
        "rate": "decimal(30,18)",
        "big_id": "bigint",
        "small_u": "int",
        "small_unsigned": "bigint",
        "tiny": "smallint",
        "flags": "binary",
        "onebit": "boolean",
        "status": "string",
        "tags": "string",
        "prefs": "string",
        "avatar": "binary",
        "bin16": "binary",
        "vb": "binary",
        "note": "string",
        "born": "date",
        "at_time": "time",
        "at_time6": "time",
        "dt": "datetime",
        "dt3": "datetime(3)",
        "dt6": "datetime(6)",
        "ts": "timestamp",
        "ts6": "timestamp",
        "yr": "year",
        "f": "float",
        "d": "double",
        "created_at": "timestamp",
        "score": "int",
    },
}


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc, arg-type] # a moment's parts


ORDERS: list[dict[str, Any]] = [
    {"order_id": 1, "line_no": 20, "sku": "sku-2", "qty": 1, "price": Decimal("0.0001")},
    {"order_id": 2, "line_no": 1, "sku": "sku-replaced", "qty": 7, "price": Decimal("7.7000")},
    {"order_id": 2, "line_no": 2, "sku": "sku-b", "qty": 7, "price": Decimal("2.5000")},
    {"order_id": 2, "line_no": 3, "sku": None, "qty": None, "price": None},
    {"order_id": 9, "line_no": 9, "sku": "after-signal", "qty": 1, "price": Decimal("1.0000")},
]
AUDIT: list[dict[str, Any]] = [
    {"id": 1, "what": "new table in stream", "at": utc(2026, 11, 21, 7, 56, 17, 98974)},
    {"id": 2, "what": "END", "at": utc(2026, 11, 21, 7, 56, 29, 129655)},
]
# `phone` and `score` came with defaults: MySQL filled them in every row, but only a row's next
# change tells of it, so rows not changed since (2 and 1000) hold null until then.
# `big_id` is 2^64-1 in MySQL: the connector, by its default, sent -1 as a signed number.
CUSTOMERS: list[dict[str, Any]] = [
    {
        "id": 1,
        "email": "ann@example.com",
        "name": "Ann Ünï 😀",
        "phone": "n/a",
        "balance": Decimal("1234567883.12"),
        "rate": Decimal("123456789012.123456789012345678"),
        "big_id": -1,
        "small_u": 65535,
        "tiny": 1,
        "flags": b"\xa5",
        "onebit": True,
        "status": "active",
        "tags": "a,c",
        "prefs": '{"k":[1,2,{"z":null}],"u":"ü"}',
        "avatar": bytes.fromhex("00ff10deadbeef"),
        "bin16": bytes.fromhex("00112233445566778899aabbccddeeff"),
        "vb": bytes.fromhex("cafe"),
        "note": "long text",
        "born": dt.date(1969, 12, 31),
        "at_time": -(12 * 3600 + 34 * 60 + 56) * 1_000_000,
        "at_time6": 86_399_123_456,
        "dt": utc(2024, 2, 29, 23, 59, 59),
        "dt3": utc(2024, 2, 29, 23, 59, 59, 123000),
        "dt6": utc(2024, 2, 29, 23, 59, 59, 123456),
        "ts": utc(2024, 3, 10, 2, 30),
        "ts6": utc(2024, 3, 10, 2, 30, 0, 654321),
        "yr": 2024,
        "f": 1.5,
        "d": 2.718281828459045,
        "created_at": utc(2024, 1, 1, 0, 0, 0, 1000),
        "score": 8,
    },
    {
        "id": 2,
        "email": "nulls@example.com",
        "balance": Decimal("-6.01"),
        "status": "new",
        "created_at": utc(2024, 1, 1, 0, 0, 0, 2000),
    },
    {
        "id": 1000,
        "email": "bob2@example.com",
        "balance": Decimal("99.99"),
        "status": "new",
        "created_at": utc(2026, 11, 21, 7, 56, 16, 538000),
    },
    {
        "id": 1001,
        "email": "carol@example.com",
        "phone": "+1-555",
        "balance": Decimal("1.00"),
        "status": "new",
        "created_at": utc(2026, 11, 21, 7, 56, 16, 679000),
        "score": 7,
    },
]
TRUTH = {
    "orders": (ORDERS, ["order_id", "line_no"]),
    "audit": (AUDIT, ["id"]),
    "customers": (CUSTOMERS, ["id"]),
}


# Where the workload is cut in three: before two of its transactions, so that later changes meet
# their rows in base files; and before the first ALTER that parks its table, up to which all
# partitions have to come. Its last change before it stands at 15805.
CUTS = (11_000, 16_000)


@dataclass(frozen=True)
class Replayed:
    """A lake that took in a capture."""

    name: str
    prefix: str
    lake: Lake

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.name}.shop.{table}"


def in_parts(records: list[Record]) -> list[list[Record]]:
    """Cut the records at CUTS; a tombstone goes with its delete."""
    parts: list[list[Record]] = [[] for _ in range(len(CUTS) + 1)]
    reached: dict[tuple[str, int], int] = {}
    for record in sorted(records, key=lambda record: record[:3]):
        place = record.topic, record.partition
        if record.value is not None:
            value = json.loads(record.value)
            reached[place] = value.get("payload", value)["source"]["pos"]
        parts[sum(reached[place] > cut for cut in CUTS)].append(record)
    return parts


def all_spliced(lake: Lake, topics: Sequence[str]) -> bool:
    return not any(lake.table(topic).snapshot.manifest.deltas for topic in topics)


@pytest.fixture(scope="module", params=["dbsch", "dbplain"])
def replayed(
    request: pytest.FixtureRequest,
    kafka_broker: str,
    shared: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Replayed:
    """The capture in topics of its own, taken in by a running service and spliced in."""
    name = str(request.param)
    prefix = f"captures-{secrets.token_hex(4)}"
    path = shared("examples", "captures") / f"debezium-mariadb-{name}.jsonl"
    records = read_capture(path, prefix)
    declared = [{"match": f"shop.{table}", "columns": types} for table, types in DECLARED.items()]
    lake = Lake(
        tmp_path_factory.mktemp(name),
        kafka_broker,
        rf"{prefix}\.{name}\.shop\..*",
        **({"tables": declared} if name == "dbplain" else {}),
        compaction={"deltas_max": 1, "poll_seconds": 0.1},
    )
    replayed = Replayed(name, prefix, lake)
    whole = [replayed.topic(table) for table in ("orders", "audit")]
    customers = replayed.topic("customers")
    make_topics(kafka_broker, {record.topic: 3 for record in records})
    ends: dict[tuple[str, int], int] = {}
    with lake.running() as service:
        for number, part in enumerate(in_parts(records)):
            resend(kafka_broker, part)
            last = number == len(CUTS)
            # Tables that are parked by now, and what parks them, are not waited for.
            topics = [*whole, *([] if last else [customers])]
            ends |= ends_of(record for record in part if record.topic in topics)
            take_in(service, lake, ends)
        topics = [*whole, customers]
        service.until(lambda: lake.parked(customers) is not None, "customers are parked")
        service.until(lambda: all_spliced(lake, topics), "every change is in its base file")
        service.terminate()
        service.ends_well(60)
    return replayed


@pytest.mark.parametrize("view", ["real_time", "read_optimised"])
@pytest.mark.parametrize("table", TRUTH)
def test_a_table_ends_as_its_workload_says(replayed: Replayed, table: str, view: str) -> None:
    rows, key = TRUTH[table]
    actual = replayed.lake.table(replayed.topic(table)).read(view)
    assert compare(pa.Table.from_pylist(rows, actual.schema), actual, key) is None


def test_tables_that_nothing_is_wrong_with_go_on(replayed: Replayed) -> None:
    running = [t for t in TABLES if replayed.lake.parked(replayed.topic(t)) is None]
    undeclared = [] if replayed.name == "dbplain" else ["debezium_signal"]
    assert running == ["orders", "audit", *undeclared]


def test_the_first_change_that_adds_no_column_parks_its_table(replayed: Replayed) -> None:
    reason = replayed.lake.parked(replayed.topic("customers"))
    assert reason is not None
    assert reason.code is ParkCode.SCHEMA_CHANGE
    # Without schemas a decimal's new scale can't be seen; the renamed column after it can.
    gone = "balance" if replayed.name == "dbsch" else "small_u"
    assert f"column={gone!r}" in reason.detail


def test_a_table_without_a_key_is_parked_empty(replayed: Replayed) -> None:
    topic = replayed.topic("nopk")
    reason = replayed.lake.parked(topic)
    assert reason is not None
    assert reason.code is ParkCode.NO_KEY
    assert replayed.lake.table(topic).read().num_rows == 0


def test_a_table_whose_types_nobody_declared_is_parked(replayed: Replayed) -> None:
    reason = replayed.lake.parked(replayed.topic("debezium_signal"))
    if replayed.name == "dbsch":
        assert reason is None
        return
    assert reason is not None
    assert reason.code is ParkCode.TYPES_UNDECLARED


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("table", TRUTH)
def test_every_version_reads_the_same_elsewhere(
    replayed: Replayed, table: str, engine: str
) -> None:
    ours = replayed.lake.table(replayed.topic(table))
    path = replayed.lake.path(replayed.topic(table))
    versions = [entry.version for entry in ours.history()]
    assert versions == list(range(ours.version, -1, -1))
    for version in versions:
        expected = ours.read(
            "read_optimised", version=version, include_deleted=True, include_system=True
        )
        assert IS_DELETED in expected.column_names
        difference = compare(expected, READERS[engine](path, version), TRUTH[table][1])
        assert difference is None, f"version={version}"
