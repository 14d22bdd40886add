"""How large base files should be: the more bytes a table has, the larger.

Small files let a selective query read little, and a compaction rewrite little. But each file costs
every reader a request and every commit some bytes of the manifest, so a large table needs large
ones: with these sizes a table has some hundreds to some ten thousands of files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings need the numbers alone
    from lakesplice.model.address import BaseFile

_MIB, _GIB, _TIB = 2**20, 2**30, 2**40
# Per size of a table, up to and including it: the size of its files. Larger tables: the last one.
FILE_SIZES = (
    (256 * _MIB, 8 * _MIB),
    (_GIB, 16 * _MIB),
    (8 * _GIB, 32 * _MIB),
    (64 * _GIB, 64 * _MIB),
    (512 * _GIB, 128 * _MIB),
    (4 * _TIB, 256 * _MIB),
    (16 * _TIB, 512 * _MIB),
)
FILE_BYTES_MAX = _GIB
# Below this share of the size of merged files a file is small.
SMALL_SHARE = 4
# All files of a table that isn't clustered are opened, so smaller ones have no use.
_MERGED_BYTES_MIN = 32 * _MIB


def file_bytes(table_bytes: int) -> int:
    """Return the size that suits the files of a table of this size."""
    return next((size for most, size in FILE_SIZES if table_bytes <= most), FILE_BYTES_MAX)


def merged_bytes(table_bytes: int) -> int:
    """Return the size that suits merged files, whose values have wide ranges."""
    return max(file_bytes(table_bytes), _MERGED_BYTES_MIN)


def bytes_of(files: Iterable[BaseFile]) -> int:
    """Return how many bytes files have together."""
    return sum(file.bytes for file in files)
