"""Columns of an upsert: values of every type, and keys of any columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lakesplice
from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View

ZONED = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
MOMENT = ZONED.replace(tzinfo=None)
TYPES: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, True),
    (pa.int8(), -1, -1),
    (pa.uint32(), 1 << 31, 1 << 31),
    (pa.float16(), 1.5, 1.5),
    (pa.float64(), 0.1, 0.1),
    (pa.decimal128(38, 3), Decimal("-1.125"), Decimal("-1.125")),
    (pa.large_string(), "ü", "ü"),
    (pa.dictionary(pa.int8(), pa.string()), "d", "d"),
    (pa.binary(2), b"ab", b"ab"),
    (pa.date32(), dt.date(2024, 5, 6), dt.date(2024, 5, 6)),
    (pa.timestamp("us", "Europe/Berlin"), ZONED, ZONED),
    (pa.timestamp("ms", "UTC"), ZONED.replace(microsecond=0), ZONED.replace(microsecond=0)),
    (pa.timestamp("ns"), MOMENT, ZONED),
]


@pytest.mark.parametrize(("kind", "value", "read"), TYPES, ids=lambda v: str(v)[:20])
def test_values_of_every_type_come_back(
    store: LocalStore, kind: pa.DataType, value: Any, read: Any
) -> None:
    data = pa.table({"k": pa.array(["x", "y"]), "v": pa.array([value, None], kind)})
    lakesplice.Table.create(store.root, data, key=["k"])
    table = lakesplice.Table.open(store.root)
    assert table.read().column("v").to_pylist() == [read, None]
    table.upsert(data.set_column(1, "v", pa.array([None, value], kind)))
    table.compact()
    assert table.read("read_optimised").column("v").to_pylist() == [None, read]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.time64("us"), pa.list_(pa.int8()), pa.null()])
def test_a_type_without_a_counterpart_is_refused(store: LocalStore, kind: pa.DataType) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", kind)])
    with pytest.raises(UsageError, match="no exact counterpart"):
        lakesplice.Table.create(store.root, schema, key=["k"])


def test_a_timestamp_with_a_zone_is_no_wall_clock(store: LocalStore) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.timestamp("us"))])
    table = lakesplice.Table.create(store.root, schema, key=["k"])
    with pytest.raises(UsageError, match="not of its type"):
        table.upsert(pa.table({"k": [1], "v": pa.array([ZONED], pa.timestamp("us", "UTC"))}))


@pytest.mark.parametrize("key", [[], ["nope"], ["k", "k"]])
def test_a_key_has_to_be_columns(store: LocalStore, key: list[str]) -> None:
    with pytest.raises(UsageError, match="needs a key"):
        lakesplice.Table.create(store.root, pa.schema([("k", pa.int64())]), key=key)


def test_composite_keys_and_strange_names(store: LocalStore) -> None:
    data = pa.table({"a b": ["x", "xy"], "_op": ["yz", "z"], "Wert €": [1, 2]})
    table = lakesplice.Table.create(store.root, data, key=["_op", "a b"])
    table.upsert(pa.table({"_op": ["z"], "a b": ["xy"], "Wert €": [3]}))
    rows = table.read(View.REAL_TIME, ["a b", "_op", "Wert €"]).to_pylist()
    assert [row["Wert €"] for row in rows] == [1, 3]
