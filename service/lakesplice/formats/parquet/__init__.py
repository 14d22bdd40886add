"""Base files: Parquet with pages that line up across columns, for a later splice to copy."""

from lakesplice.formats.parquet.read import BaseReader
from lakesplice.formats.parquet.stats import delta_stats, stats_columns
from lakesplice.formats.parquet.write import ROWS_PER_PAGE, WrittenBase, write_base

__all__ = [
    "ROWS_PER_PAGE",
    "BaseReader",
    "WrittenBase",
    "delta_stats",
    "stats_columns",
    "write_base",
]
