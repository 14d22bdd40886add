"""The row digest against an independent scalar implementation, and the vectors of the format."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import xxhash

from lakesplice.errors import UsageError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.row_digest import row_digest

MASK = (1 << 64) - 1
VECTORS = [-5018013779733235254, -6831041501847053870, 0]

VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "byte": [-128, 0, 127, None],
    "short": [-32768, 1, None],
    "integer": [-(2**31), 0, 2**31 - 1, None],
    "long": [-(2**63), -1, 0, 2**63 - 1, None],
    "float": [0.0, -0.0, 1.5, math.inf, math.nan, None],
    "double": [0.0, -0.0, 0.1, -math.inf, math.nan, None],
    "decimal(9,2)": [Decimal("-0.01"), Decimal("0.00"), Decimal("9999999.99"), None],
    "decimal(18,0)": [Decimal(10**18 - 1), Decimal(-(10**18) + 1), None],
    "decimal(38,10)": [
        Decimal("9" * 28 + "." + "9" * 10),
        Decimal("-1.0000000000"),
        Decimal(0),
        None,
    ],
    "string": ["", "a", "naïve ☃", "x" * 1000, None],
    "binary": [b"", b"\x00", b"\xff" * 300, None],
    "date": [date(1969, 12, 31), date(9999, 12, 31), None],
    "timestamp": [
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        None,
    ],
}


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def words(value: Any, kind: ColumnType) -> list[int]:
    match kind.kind:
        case Primitive.STRING:
            return [xxhash.xxh3_64_intdigest(value.encode())]
        case Primitive.BINARY:
            return [xxhash.xxh3_64_intdigest(value)]
        case Primitive.FLOAT:
            return [0x7FC00000 if math.isnan(value) else int.from_bytes(struct.pack(">f", value))]
        case Primitive.DOUBLE:
            return [
                0x7FF8000000000000
                if math.isnan(value)
                else int.from_bytes(struct.pack(">d", value))
            ]
        case Primitive.DECIMAL:
            unscaled = int(f"{value:.{kind.scale}f}".replace(".", ""))
            both = [unscaled & MASK, unscaled >> 64 & MASK]
            return both if kind.precision > 18 else both[:1]
        case Primitive.DATE:
            return [(value - date(1970, 1, 1)).days & MASK]
        case Primitive.TIMESTAMP:
            since = value - datetime(1970, 1, 1, tzinfo=UTC)
            return [
                (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds)
                & MASK
            ]
        case _:
            return [int(value) & MASK]


def scalar_digest(row: dict[str, Any], schema: TableSchema) -> int:
    total = 0
    for column in schema.columns:
        value = row.get(column.name)
        if value is None:
            continue
        first, *rest = words(value, column.type)
        part = mix(xxhash.xxh3_64_intdigest(column.identity.encode()) ^ first)
        for word in rest:
            part = mix(part ^ word)
        total += part
    digest = mix(total & MASK)
    return digest - (1 << 64) if digest >> 63 else digest


def schema_of(**types: str) -> TableSchema:
    columns = tuple(
        Column(at, name, name, ColumnType.parse(kind), "T")
        for at, (name, kind) in enumerate(types.items())
    )
    return TableSchema(columns, (columns[0].name,), (0, len(columns)))


def table_of(schema: TableSchema, rows: list[dict[str, Any]]) -> pa.Table:
    fields = [pa.field(column.name, column.type.arrow) for column in schema.columns]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_is_digested_as_the_format_says(kind: str) -> None:
    schema = schema_of(v=kind)
    rows = [{"v": value} for value in VALUES[kind]]
    expected = [scalar_digest(row, schema) for row in rows]
    assert row_digest(table_of(schema, rows), schema).tolist() == expected
    assert len(set(expected)) == len(expected)


def test_the_vectors_of_the_format() -> None:
    schema = schema_of(
        id="integer", name="string", price="decimal(12,2)", big="decimal(30,0)", at="timestamp"
    )
    rows: list[dict[str, Any]] = [
        {
            "id": 1,
            "name": "bolt",
            "price": Decimal("2.50"),
            "big": Decimal(-1),
            "at": datetime(2026, 1, 1, tzinfo=UTC),
        },
        {"id": -7, "name": "", "price": None, "big": Decimal(10**29), "at": None},
        {"id": None, "name": None, "price": None, "big": None, "at": None},
    ]
    assert row_digest(table_of(schema, rows), schema).tolist() == VECTORS
    assert [scalar_digest(row, schema) for row in rows] == VECTORS


def test_slices_chunks_and_column_order_make_no_difference() -> None:
    schema = schema_of(**{kind.replace("(", "_"): kind for kind in VALUES})
    count = 41
    rows = [
        {
            name: values[at % len(values)]
            for name, values in zip(schema.names, VALUES.values(), strict=True)
        }
        for at in range(count)
    ]
    whole = table_of(schema, rows)
    expected = [scalar_digest(row, schema) for row in rows]
    assert row_digest(whole, schema).tolist() == expected
    assert row_digest(whole.slice(3, 19), schema).tolist() == expected[3:22]
    pieces = pa.concat_tables([whole.slice(0, 5), whole.slice(5, 0), whole.slice(5)])
    assert row_digest(pieces, schema).tolist() == expected
    assert row_digest(whole.select(whole.column_names[::-1]), schema).tolist() == expected
    assert row_digest(whole.slice(0, 0), schema).tolist() == []


def test_a_column_added_later_with_nulls_leaves_the_digest() -> None:
    old, new = schema_of(id="long", a="string"), schema_of(id="long", a="string", b="date")
    row = {"id": 5, "a": "x"}
    digest = row_digest(table_of(old, [row]), old)
    assert row_digest(table_of(new, [{**row, "b": None}]), new) == digest
    assert row_digest(table_of(old, [row]), new) == digest
    assert row_digest(table_of(new, [{**row, "b": date(2026, 1, 1)}]), new) != digest


def test_the_same_value_in_another_column_is_another_row() -> None:
    schema = schema_of(id="long", a="long", b="long")
    one, other = ({"id": 1, "a": 2, "b": 3}, {"id": 1, "a": 3, "b": 2})
    first, second = row_digest(table_of(schema, [one, other]), schema).tolist()
    assert first != second


def test_every_nan_is_the_same_value() -> None:
    schema = schema_of(v="double")
    bits = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001]
    values = pa.array(bits, pa.uint64()).view(pa.float64())
    assert len(set(row_digest(pa.table({"v": values}), schema).tolist())) == 1


def test_a_column_of_another_type_is_refused() -> None:
    schema = schema_of(v="long")
    with pytest.raises(UsageError, match="column='v'"):
        row_digest(pa.table({"v": pa.array([1], pa.int32())}), schema)
