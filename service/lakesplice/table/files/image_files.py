"""Files of row images, as bytes: Parquet files that are written and read whole.

    decimals as whole numbers  ->  pyarrow  ->  a file  ->  the schema of decimals in its footer

Parquet stores a decimal of up to 18 digits as a whole number. pyarrow takes twice as long to write
it as a decimal, so it is given the numbers; only the schema tells the two apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.model.names import CHANGE_TYPE
from lakesplice.splicing.structures.footer import Footer, read_footer

_INT_DIGITS, _LONG_DIGITS = 9, 18
_OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "compression": "zstd",
    "store_schema": False,
    "store_decimal_as_integer": True,
    "use_dictionary": [CHANGE_TYPE],
    "write_page_checksum": True,
    "write_statistics": False,  # they are read whole
}


def encoded_images(images: pa.Table) -> pa.Buffer:
    """Return a Parquet file of the images, with the columns and types that they have."""
    fields = [pa.field(one.name, _stored(one.type), one.nullable) for one in images.schema]
    columns = [_as_stored(column) for column in images.columns]
    data = _written(pa.table(columns, schema=pa.schema(fields)))
    footer = read_footer(pa.BufferReader(data), "row images")
    named = replace(footer, schema=_footer(images.schema).schema)
    whole = pa.BufferOutputStream()
    whole.write(data.slice(0, footer.start))
    whole.write(named.encode())
    return whole.getvalue()


def _written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **_OPTIONS)
    return sink.getvalue()


@lru_cache(maxsize=64)
def _footer(schema: pa.Schema) -> Footer:
    """The footer of a file of these columns without rows."""
    return read_footer(pa.BufferReader(_written(schema.empty_table())), "row images")


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type of whole numbers as which Parquet stores a decimal; any other type as it is."""
    if not pa.types.is_decimal128(kind) or kind.precision > _LONG_DIGITS:
        return kind
    return pa.int32() if kind.precision <= _INT_DIGITS else pa.int64()


def _as_stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _stored(column.type)
    if kind == column.type:
        return column
    return pa.chunked_array([_low_words(chunk, kind) for chunk in column.chunks], kind)


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
