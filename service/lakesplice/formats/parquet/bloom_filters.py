"""Bloom filters of key columns: a reader that looks for one key skips row groups without it.

The splice copies a column's filter with its pages if none of its values change, as for keys, and
leaves it out otherwise; files that are written as a whole get new ones. So a filter never lacks a
value of its row group. Source: Parquet, "Bloom Filter"; docs/decisions/0060.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.schema import TableSchema
from lakesplice.model.types import WHOLE_NUMBERS, Primitive

# Of a hundred keys that a row group lacks, readers look for one in vain. 1.3 bytes a value.
_FALSE_POSITIVES = 0.01
# Not booleans, which can't have any, and not floating point: readers take 0.0 for -0.0, whose bits
# differ.
_KINDS = frozenset(
    (
        *WHOLE_NUMBERS,
        Primitive.DECIMAL,
        Primitive.DATE,
        Primitive.TIMESTAMP,
        Primitive.STRING,
        Primitive.BINARY,
    )
)


def filtered_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns that get a bloom filter in each row group; none unless they are asked for.

    Partition columns have one value in a file, which the log has.
    """
    if not schema.bloom_filters:
        return ()
    kinds = {column.name: column.type.kind for column in schema.columns}
    columns = (name for name in schema.key if name not in schema.partitioned_by)
    return tuple(name for name in columns if kinds[name] in _KINDS)


def bloom_filter_options(schema: TableSchema, first: pa.Table) -> dict[str, Any] | None:
    """Return the writer's option for bloom filters; `first` has the rows of the first row group, by
    whose different values the filters are sized.
    """
    columns = filtered_columns(schema)
    if not columns:
        return None
    return {
        name: {
            "ndv": max(1, pc.count_distinct(first.column(name)).as_py()),
            "fpp": _FALSE_POSITIVES,
        }
        for name in columns
    }
