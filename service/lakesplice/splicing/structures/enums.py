"""Parquet's enumerations, with their names in parquet.thrift.

A file may hold newer numbers, so a typed field is a plain integer wherever the file can be read
without knowing the number.
"""

from __future__ import annotations

from enum import IntEnum


class PhysicalType(IntEnum):
    """How a value is stored."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Repetition(IntEnum):
    """How often a field may occur in its parent."""

    REQUIRED = 0
    OPTIONAL = 1
    REPEATED = 2


class Encoding(IntEnum):
    """How a page's values become bytes."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9
    ALP = 10


class Codec(IntEnum):
    """How a chunk's pages are compressed."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    LZO = 3
    BROTLI = 4
    LZ4 = 5
    ZSTD = 6
    LZ4_RAW = 7


class PageKind(IntEnum):
    """What a page holds."""

    DATA = 0
    INDEX = 1
    DICTIONARY = 2
    DATA_V2 = 3


class BoundaryOrder(IntEnum):
    """Whether the bounds of a column index ascend, descend, or neither."""

    UNORDERED = 0
    ASCENDING = 1
    DESCENDING = 2
