"""The vectors were computed by the `blake3` package, an implementation other than the product's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.rows.keyhash import ROWS_PER_BLOCK, canonical_keys, key_hash

MOMENT = dt.datetime(2023, 11, 14, 22, 13, 20, 123456, dt.UTC)

VECTORS = [
    (("long",), (1,), "000000080000000000000001", "1e3d950f5893980b462c70c9e18c6737"),
    (("integer",), (1,), "000000080000000000000001", "1e3d950f5893980b462c70c9e18c6737"),
    (("short",), (-1,), "00000008ffffffffffffffff", "3ad533f9c1e5cce9f7817d791e49cfc5"),
    (("long",), (-(2**63),), "000000088000000000000000", "f0b2696098152b00f26b338a29891f87"),
    (("boolean",), (True,), "000000080000000000000001", "1e3d950f5893980b462c70c9e18c6737"),
    (("string",), ("shop",), "0000000473686f70", "4eaa5eb689b753aaef44a0d50149b405"),
    (("string",), ("",), "00000000", "ec2bd03bf86b935fa34d71ad7ebb049f"),
    (("string",), ("größe",), "000000076772c3b6c39f65", "e803cbfa876e7997e4cc54575fbe9f87"),
    (("binary",), (b"\x00\n\xff",), "00000003000aff", "51be40b69798f91ca67b95fe0b2ffee3"),
    (
        ("decimal(12,2)",),
        (Decimal("12.34"),),
        "00000010000000000000000000000000000004d2",
        "9514338a751a6b8ff1c6ca842d9f7d15",
    ),
    (
        ("decimal(38,2)",),
        (Decimal("-0.01"),),
        "00000010ffffffffffffffffffffffffffffffff",
        "3647cf70c13217c2162967632fae96cd",
    ),
    (
        ("date",),
        (dt.date(2024, 2, 29),),
        "000000080000000000004d46",
        "345f31577a08d0b2cccabb066ca92836",
    ),
    (("timestamp",), (MOMENT,), "0000000800060a2418202240", "dd8504ce407a592bc5898a2b191b6904"),
    (("double",), (1.5,), "000000083ff8000000000000", "3f4480deee4e3045d2a4858b2b78add5"),
    (("float",), (1.5,), "000000083ff8000000000000", "3f4480deee4e3045d2a4858b2b78add5"),
    (
        ("string", "string"),
        ("ab", "c"),
        "0000000261620000000163",
        "f2ad60348634a7ba8494f1e2636abc10",
    ),
    (
        ("string", "string"),
        ("a", "bc"),
        "0000000161000000026263",
        "10c9feffe8d93925a615094bc0eb3da9",
    ),
    (
        ("long", "binary", "decimal(5,2)"),
        (7, b"x", Decimal("-0.01")),
        "000000080000000000000007000000017800000010ffffffffffffffffffffffffffffffff",
        "e245e99b1a72d3a0666686f335e86f4c",
    ),
]


def schema_of(*types: str) -> TableSchema:
    columns = tuple(
        Column(at, f"c{at}", f"c{at}", ColumnType.parse(name), "") for at, name in enumerate(types)
    )
    return TableSchema(columns, tuple(c.name for c in columns), (0, len(columns)))


def table_of(schema: TableSchema, *rows: tuple[Any, ...]) -> pa.Table:
    records = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(
        records, pa.schema([f.with_nullable(True) for f in schema.user_fields])
    )


def hashes(table: pa.Table, schema: TableSchema) -> list[str]:
    high, low = key_hash(table, schema)
    assert high.dtype == low.dtype == np.uint64
    return [f"{h:016x}{w:016x}" for h, w in zip(high.tolist(), low.tolist(), strict=True)]


@pytest.mark.parametrize(("types", "key", "encoded", "expected"), VECTORS)
def test_a_key_has_the_bytes_and_the_hash_written_in_the_format(
    types: tuple[str, ...], key: tuple[Any, ...], encoded: str, expected: str
) -> None:
    schema = schema_of(*types)
    table = table_of(schema, key)
    assert canonical_keys(table, schema).to_pylist() == [bytes.fromhex(encoded)]
    assert hashes(table, schema) == [expected]


def test_a_key_of_several_blake3_chunks_is_hashed_whole() -> None:
    schema = schema_of("string")
    assert hashes(table_of(schema, ("x" * 3000,)), schema) == ["926fec93e8969a60c36f5b8e882e5c25"]


def test_negative_zero_is_the_key_zero() -> None:
    schema = schema_of("double")
    negative, positive = hashes(table_of(schema, (-0.0,), (0.0,)), schema)
    assert negative == positive


@pytest.mark.slow
def test_slices_chunks_and_blocks_change_no_hash() -> None:
    schema = schema_of("long", "string", "decimal(9,3)", "boolean")
    rows = [(n, "k" * (n % 7), Decimal(n) / 8, n % 2 == 0) for n in range(100)]
    whole = table_of(schema, *rows)
    expected = hashes(whole, schema)
    assert hashes(whole.slice(13, 40), schema) == expected[13:53]
    assert hashes(pa.concat_tables([whole.slice(50), whole.slice(0, 50)]), schema) == (
        expected[50:] + expected[:50]
    )
    numbers = schema_of("integer")
    many = pa.table({"c0": pa.array(range(ROWS_PER_BLOCK + 2), pa.int32())})
    assert hashes(many, numbers)[-1] == hashes(many.slice(ROWS_PER_BLOCK + 1), numbers)[0]


def test_only_the_key_columns_count_in_key_order() -> None:
    columns = schema_of("long", "string", "string").columns
    table = pa.table({"c0": [1], "c1": ["ab"], "c2": ["c"]})
    assert hashes(table, TableSchema(columns, ("c1", "c2"), (3,))) == [
        "f2ad60348634a7ba8494f1e2636abc10"
    ]
    swapped = pa.table({"c0": [1], "c1": ["c"], "c2": ["ab"]})
    assert hashes(swapped, TableSchema(columns, ("c2", "c1"), (3,))) == [
        "f2ad60348634a7ba8494f1e2636abc10"
    ]


def test_an_empty_table_has_no_hashes() -> None:
    schema = schema_of("long")
    assert hashes(table_of(schema), schema) == []


def test_a_null_in_a_key_is_unsupported() -> None:
    schema = schema_of("long", "string")
    with pytest.raises(UnsupportedError, match="null"):
        key_hash(table_of(schema, (1, "a"), (2, None)), schema)


def test_a_table_without_a_key_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="no key"):
        key_hash(pa.table({"c0": [1]}), TableSchema(schema_of("long").columns, (), (1,)))
