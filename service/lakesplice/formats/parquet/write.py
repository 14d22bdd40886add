"""Writing base files.

Every page of every column holds the same rows: ROWS_PER_PAGE of them, except the last of a row
group. That is why `write_batch_size` equals it (a dictionary that grows too large is abandoned only
between two batches, and that ends a page) and why no byte limit may end a page; row groups are cut
by bytes instead, which also keeps a page far below Parquet's 2 GiB.

Within a chunk pages with a dictionary come before pages without one, as pyarrow writes them;
Spark's vectorized reader returns wrong rows for the other order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakesplice.formats.parquet.bloom_filters import bloom_filter_options
from lakesplice.formats.parquet.stats import delta_stats
from lakesplice.model.names import POSITION_FILE, POSITION_OFFSET, ROW_DIGEST, SOURCE_TS
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import Primitive

MARKER = "lakesplice"
MARKER_VERSION = "1"

# Spark reads columns in batches of 4096 rows, so its batches never straddle our pages; and a
# uniform update of one row in 10,000 still leaves two pages of three alone.
ROWS_PER_PAGE = 4096
ROW_GROUP_ROWS_MAX = 256 * ROWS_PER_PAGE
ROW_GROUP_BYTES_MAX = 256 * 1024 * 1024
_NO_BYTE_LIMIT = 1 << 30
_SAMPLED_ROWS = 1 << 14
_DISTINCT_NUMBERS_MAX, _DISTINCT_TEXTS_MAX = 0.5, 0.9
_DISTINCT_ALWAYS = 16  # a small table's dictionaries may stay


@dataclass(frozen=True, slots=True)
class WrittenBase:
    """What was written: rows, exact statistics (`add.stats` of the log), where its pages end.

    `counts` are the rewriter's own, for the metrics.
    """

    rows: int
    stats: str
    pages_end: int
    counts: Mapping[str, int] = field(default_factory=dict)


def write_base(
    tables: Iterable[pa.Table],
    schema: TableSchema,
    sink: pa.NativeFile,
    row_group_bytes: int = ROW_GROUP_BYTES_MAX,
) -> WrittenBase:
    """Write a base file of the given rows in their order; `sink` is left open.

    Each table has the columns of `schema.arrow` in any order. They are gathered into row groups of
    at most ROW_GROUP_ROWS_MAX rows and about `row_group_bytes` bytes in memory, which is what is
    held at a time.
    """
    footer: list[pq.FileMetaData] = []
    groups = _row_groups(tables, schema.arrow, row_group_bytes)
    first = next(groups, schema.arrow.empty_table())
    options = _options(schema, first)
    writer = pq.ParquetWriter(sink, schema.arrow, metadata_collector=footer, **options)
    try:
        for group in chain([first] if first.num_rows else [], groups):
            writer.write_table(group, row_group_size=max(1, group.num_rows))
        writer.add_key_value_metadata({MARKER: MARKER_VERSION})
        writer.close()
    except BaseException:
        # Closed after a failure, now or when it is collected, it would raise an error of its own
        # in place of the one that matters.
        writer.is_open = False
        raise
    return WrittenBase(footer[0].num_rows, delta_stats(footer[0], schema), pages_end(footer[0]))


def pages_end(footer: pq.FileMetaData) -> int:
    """Return where the last page of a file ends."""
    end = 0
    for group in range(footer.num_row_groups):
        for at in range(footer.num_columns):
            chunk = footer.row_group(group).column(at)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            end = max(end, start + chunk.total_compressed_size)
    return end


def _options(schema: TableSchema, sample: pa.Table) -> dict[str, Any]:
    packed = [POSITION_FILE, POSITION_OFFSET, SOURCE_TS]
    packed += [
        c.name for c in schema.columns if c.name in schema.key and c.type.kind in _PACKED_KEYS
    ]
    plain = {*packed, ROW_DIGEST}  # digests are random: neither a dictionary nor deltas help
    others = (name for name in schema.arrow.names if name not in plain)
    return {
        "version": "2.6",
        "compression": "zstd",
        "use_dictionary": [name for name in others if _repeats(sample.column(name))],
        "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        "store_decimal_as_integer": True,  # as Spark writes them: 4, 8 or, above 18 digits, n bytes
        "store_schema": False,
        "bloom_filter_options": bloom_filter_options(schema, sample),
        "write_page_index": True,
        "write_page_checksum": True,
        "max_rows_per_page": ROWS_PER_PAGE,
        "write_batch_size": ROWS_PER_PAGE,
        "data_page_size": _NO_BYTE_LIMIT,
    }


def _repeats(values: pa.ChunkedArray) -> bool:
    """Whether values come often enough for a dictionary, as some of them, evenly spread, show.

    One of tens of thousands of numbers makes a file larger, slower to read and to splice; that of
    texts saves more than it costs as long as it isn't given up for its size.
    """
    if pa.types.is_boolean(values.type):
        return False
    some = values.take(pa.array(np.arange(0, len(values), max(1, len(values) // _SAMPLED_ROWS))))
    text = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    share = _DISTINCT_TEXTS_MAX if text else _DISTINCT_NUMBERS_MAX
    distinct: int = pc.count_distinct(some).as_py()
    most: float = max(share * (len(some) - some.null_count), _DISTINCT_ALWAYS)
    return distinct <= most


# Keys ascend where a table was appended to, and their differences are then a bit or two each.
_PACKED_KEYS = frozenset((Primitive.INTEGER, Primitive.LONG))


def _row_groups(tables: Iterable[pa.Table], layout: pa.Schema, most: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        held.append(table.select(layout.names).cast(layout))
        rows += table.num_rows
        size += held[-1].nbytes
        while rows > (limit := _rows_limit(rows, size, most)):
            gathered = pa.concat_tables(held)
            yield gathered.slice(0, limit)
            held = [gathered.slice(limit)]
            rows, size = held[0].num_rows, held[0].nbytes
    if rows:
        yield pa.concat_tables(held)


def _rows_limit(rows: int, size: int, most: int) -> int:
    by_bytes = most * rows // max(size, 1) // ROWS_PER_PAGE * ROWS_PER_PAGE
    return min(ROW_GROUP_ROWS_MAX, max(by_bytes, ROWS_PER_PAGE))
