"""Values of any Arrow type, many or few, with limits of the type among them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Random = np.random.Generator

# Types by a name, as a test asks for them.
COMMON: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(5,2)": pa.decimal128(5, 2),
    "decimal(18,3)": pa.decimal128(18, 3),
    "decimal(38,10)": pa.decimal128(38, 10),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
RARE: Mapping[str, pa.DataType] = {
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "half": pa.float16(),
    "large string": pa.large_string(),
    "large binary": pa.large_binary(),
    "fixed binary": pa.binary(5),
    "local timestamp ms": pa.timestamp("ms"),
    "timestamp ns": pa.timestamp("ns", "UTC"),
    "time ms": pa.time32("ms"),
    "time us": pa.time64("us"),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "list": pa.list_(pa.int32()),
    "struct": pa.struct([("a", pa.int64()), ("b", pa.string())]),
    "null": pa.null(),
}
_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS = 86_400


def values_of(kind: pa.DataType, random: Random, size: int, distinct: int) -> pa.Array:
    """Return `size` values, none null, of which at most `distinct` differ."""
    if pa.types.is_null(kind):
        return pa.nulls(size)
    pool = _pool(kind, random, max(1, min(distinct, size)))
    return pool.take(pa.array(random.integers(0, len(pool), size)))


def with_nulls(values: pa.Array, null: Any) -> pa.Array:
    """Return the values with null where `null` is true."""
    at = np.arange(len(values))
    return values.take(pa.array(at, mask=np.asarray(null)))


def _pool(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(random.integers(0, 2, size).astype(bool))
    if pa.types.is_integer(kind):
        return _integers(kind, random, size)
    if pa.types.is_floating(kind):
        return _floats(kind, random, size)
    if pa.types.is_decimal(kind):
        return _decimals(kind, random, size)
    if pa.types.is_dictionary(kind):
        return _pool(kind.value_type, random, size).dictionary_encode().cast(kind)
    if pa.types.is_list(kind):
        return pa.array(
            [[0, None] if n == 3 else [*range(n)] for n in random.integers(0, 5, size)], kind
        )
    if pa.types.is_struct(kind):
        return pa.array([{"a": int(n), "b": f"b{n % 9}"} for n in range(size)], kind)
    if pa.types.is_temporal(kind):
        return _times(kind, random, size)
    return _texts(kind, random, size)


def _integers(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    kind_of_numpy = kind.to_pandas_dtype()
    edges = np.iinfo(kind_of_numpy)
    # Close together as keys are, or anywhere; the edges last, so that a small pool lacks them.
    near = random.integers(0, min(4 * size, edges.max), size).astype(kind_of_numpy)
    far = random.integers(edges.min, edges.max, size, kind_of_numpy, endpoint=True)
    pool = near if random.random() < 0.5 else far
    if size > 3:
        pool[-2:] = edges.min, edges.max
    return pa.array(pool, kind)


def _floats(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    pool = (random.standard_normal(size) * 100).astype(kind.to_pandas_dtype())
    if size > 8:
        pool[-5:] = 0.0, -0.0, np.nan, np.inf, -np.inf
    return pa.array(pool, kind)


def _decimals(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    largest = 10**kind.precision - 1
    digits = [int(d) for d in random.integers(0, min(largest, 2**62), size)]
    if size > 3:
        digits[-2:] = [-largest, largest]
    return pa.array([_exact(one, kind) for one in digits], kind)


def _exact(digits: int, kind: pa.DataType) -> Decimal:
    sign = "-" if digits < 0 else ""
    text = str(abs(digits)).rjust(kind.scale + 1, "0")
    return Decimal(f"{sign}{text[: -kind.scale]}.{text[-kind.scale :]}")


def _texts(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    numbers = random.integers(0, 10**9, size)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([int(n).to_bytes(kind.byte_width, "big") for n in numbers], kind)
    long = "x" * 90 if random.random() < 0.3 else ""
    texts = [f"{long}{'äß' if n % 7 == 0 else ''}{n:x}" for n in numbers]
    if size > 3:
        texts[-1] = ""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([text.encode() + b"\xff\x00" for text in texts], kind)
    return pa.array(texts, kind)


def _times(kind: pa.DataType, random: Random, size: int) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(random.integers(-150_000, 150_000, size).astype(np.int32)).cast(kind)
    unit = _SECOND[kind.unit]
    if pa.types.is_time(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(random.integers(0, _DAY_SECONDS * unit, size), width).cast(kind)
    # Nanoseconds reach from 1677 to 2262 only.
    span = 9 * 10**9 if kind.unit == "ns" else 60 * 10**9
    return pa.array(random.integers(-span, span, size) * unit + random.integers(0, unit)).cast(kind)
