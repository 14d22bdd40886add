"""The workload of all captures: the database's rows at its end, and captures read into a table.

The expected rows are written by hand, from the statements of `workload.py` and the rows of
`schema.sql`; only times of the server's clock are taken from the capture.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from lakesplice.formats.events import TypeHistory, declare
from lakesplice.model.offsets import Offset
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.ports import SchemaSource
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import Record

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


def utc(
    year: int,
    month: int,
    day: int,
    hour: int = 0,
    minute: int = 0,
    second: int = 0,
    micros: int = 0,
) -> dt.datetime:
    """A moment of the clock that the captures' rows are told in."""
    return dt.datetime(year, month, day, hour, minute, second, micros, tzinfo=dt.UTC)


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
# `phone` and `score` came with defaults: MySQL filled them in every row. Without schemas only a
# row's next change tells of it, so rows not changed since (2 and 1000) hold null until then.
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
# With schemas the defaults are told, and so is the new scale of `balance`, with which 2 changed.
_FILLED = {"phone": "n/a", "score": 7}
_FOLLOWED: dict[int, dict[str, Any]] = {
    2: {**_FILLED, "balance": Decimal("12345678901.2345")},
    1000: _FILLED,
}
TRUTH = {
    "orders": (ORDERS, ["order_id", "line_no"]),
    "audit": (AUDIT, ["id"]),
    "customers": (CUSTOMERS, ["id"]),
}


def truth(capture: str, table: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What a capture of whole events says of a table: its rows, and its key."""
    rows, key = TRUTH[table]
    if (capture, table) != ("dbsch", "customers"):
        return rows, key
    return [{**row, **_FOLLOWED.get(row["id"], {})} for row in rows], key


def taken_in(
    folder: Path,
    topic: str,
    partitions: Sequence[Sequence[Record]],
    declared: Mapping[str, str] | None = None,
    *,
    batch_records: int = 7,
    compacting: bool = False,
    schemas: SchemaSource | None = None,
    history: TypeHistory | None = None,
    policy: SchemaPolicy = DEFAULT_POLICY,
) -> SimulatedDriver:
    """Return the driver of a table that took in a topic's records, so many a batch and partition,
    until it had all or was parked; with `compacting` each batch is spliced in before the next.
    """
    source = SimulatedTopic(topic, len(partitions))
    for number, records in enumerate(partitions):
        source.append(number, [Event(topic, key, value, (), 0) for key, value in records])
    types = None if declared is None else declare(declared)
    driver = SimulatedDriver(
        LocalStore(folder),
        source,
        FixedClock(),
        SeededEntropy(1),
        declared=types,
        schemas=schemas,
        history=history,
        policy=policy,
    )
    while driver.table.parked is None:
        starts = driver.table.next_offsets(source.ends)
        ends = {at: Offset(min(end, starts[at] + batch_records)) for at, end in source.ends.items()}
        if ends == starts:
            break
        assert driver.batch(ends) is CommitOutcome.DONE
        if compacting:
            driver.compact()
    return driver
