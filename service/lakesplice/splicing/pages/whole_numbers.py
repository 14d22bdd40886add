"""Decimals as the whole numbers that Parquet stores for up to 18 digits.

pyarrow takes twice as long to read or write them as decimals; only the schema tells the two apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.splicing.structures.enums import PhysicalType
from lakesplice.splicing.structures.footer import MAGIC, Footer
from lakesplice.splicing.thrift.compact import Struct

_INT_DIGITS, _LONG_DIGITS = 9, 18
_NUMBERS = frozenset((PhysicalType.INT32, PhysicalType.INT64))
# Fields of SchemaElement.
_TYPE, _CONVERTED, _SCALE, _PRECISION, _LOGICAL = 1, 6, 7, 8, 10


def number_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the numbers that Parquet stores for a decimal; any other type as it is."""
    if not pa.types.is_decimal128(kind) or kind.precision > _LONG_DIGITS:
        return kind
    return pa.int32() if kind.precision <= _INT_DIGITS else pa.int64()


def numbers(values: pa.Array) -> pa.Array:
    """Return values as `number_type` of their type."""
    kind = number_type(values.type)
    return values if kind == values.type else _low_words(values, kind)


def in_numbers(table: pa.Table) -> pa.Table:
    """Return a table with its decimals as whole numbers."""
    for at, field in enumerate(table.schema):
        kind = number_type(field.type)
        if kind != field.type:
            chunks = [_low_words(chunk, kind) for chunk in table.column(at).chunks]
            table = table.set_column(at, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table


def opened_with_numbers(source: pa.NativeFile, footer: Footer) -> pq.ParquetFile:
    """Open a file of a flat schema whose decimals are read as the whole numbers that it stores."""
    schema = tuple(_without_decimals(element) for element in footer.schema)
    plain = replace(footer, schema=schema, key_values=None)
    metadata = pq.read_metadata(pa.BufferReader(MAGIC + plain.encode()))
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def _without_decimals(element: Struct) -> Struct:
    if element.get(_PRECISION) is None or element.get(_TYPE) not in _NUMBERS:
        return element
    return element.replaced(dict.fromkeys((_CONVERTED, _SCALE, _PRECISION, _LOGICAL)))


def _low_words(decimals: pa.Array, kind: pa.DataType) -> pa.Array:
    """The low bytes of 128-bit decimals that fit into a whole number, and their nulls."""
    every = decimals.type.bit_width // kind.bit_width
    words = np.frombuffer(decimals.buffers()[1], kind.to_pandas_dtype())
    words = words[decimals.offset * every :: every]
    numbers = pa.py_buffer(np.ascontiguousarray(words[: len(decimals)]))
    valid = None
    if decimals.null_count:
        marks = decimals.is_valid().to_numpy(zero_copy_only=False)
        valid = pa.py_buffer(np.packbits(marks, bitorder="little"))
    return pa.Array.from_buffers(kind, len(decimals), [valid, numbers])
