"""Files of row images, as bytes: Parquet files that are written and read whole.

whole numbers for decimals  ->  pyarrow  ->  a file  ->  the schema of decimals in its footer
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.model.names import CHANGE_TYPE
from lakesplice.planning.rows.row_images import ROWS_TOGETHER
from lakesplice.splicing.structures.footer import Footer, read_footer

_OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "compression": "zstd",
    "compression_level": 2,  # a tenth less than level 1 for the same time: it finds equal images
    "store_schema": False,
    "store_decimal_as_integer": True,
    "use_dictionary": [CHANGE_TYPE],
    "write_page_checksum": True,
    "write_statistics": False,  # they are read whole
    "max_rows_per_page": 10 * ROWS_TOGETHER,  # pages rarely end between a row's images
}


def encoded_images(images: pa.Table, layout: pa.Schema) -> pa.Buffer:
    """Return a Parquet file in `layout` of images whose short decimals are whole numbers."""
    data = _written(images)
    footer = read_footer(pa.BufferReader(data), "row images")
    named = replace(footer, schema=_footer(layout).schema)
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
