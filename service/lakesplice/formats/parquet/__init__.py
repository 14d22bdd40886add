"""Base files: Parquet with pages that line up across columns, for a later splice to copy.

Offers writing and reading of base files and the statistics of their rows. It must not know deltas,
nor how pages are copied: that is `lakesplice.splicing`.
"""

from lakesplice.formats.parquet.adopted import SYSTEM_VALUES
from lakesplice.formats.parquet.read import BaseReader
from lakesplice.formats.parquet.stats import delta_stats, stats_columns, stats_with_nulls
from lakesplice.formats.parquet.write import (
    ROW_GROUP_BYTES_MAX,
    ROWS_PER_PAGE,
    WrittenBase,
    write_base,
)

__all__ = [
    "ROWS_PER_PAGE",
    "ROW_GROUP_BYTES_MAX",
    "SYSTEM_VALUES",
    "BaseReader",
    "WrittenBase",
    "delta_stats",
    "stats_columns",
    "stats_with_nulls",
    "write_base",
]
