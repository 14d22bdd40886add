"""The check of a file's metadata finds each kind of false statement; otherwise it would prove
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from struct import pack
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.chunks import ByteRange, Chunk, EncodingCount
from lakesplice.splicing.structures.footer import Statistics
from lakesplice.splicing.structures.page_index import ColumnIndex, OffsetIndex
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import opened, parquet
from tests.support.parquet_truth import untruths_of

PLACE = FilePart("lying.parquet", "")
ROWS = 300
TABLE = pa.table(
    {
        "number": pa.array([None if at % 3 == 0 else at for at in range(ROWS)], pa.int64()),
        "text": pa.array([f"text {at % 40}" for at in range(ROWS)]),
        "real": pa.array([float(at - 150) for at in range(ROWS)]),
        "small": pa.array([at % 256 for at in range(ROWS)], pa.uint8()),
    }
)
BLOOM = {"number": {"ndv": 300, "fpp": 0.001}}
FILE = parquet(TABLE, row_group_size=ROWS, bloom_filter_options=BLOOM, use_dictionary=["text"])
SOURCE = SourceFile(opened(FILE), "lying.parquet")
NUMBER, TEXT, REAL, SMALL = range(4)


def lying(column: int, change: Callable[[Chunk, bytearray], Chunk]) -> set[str]:
    """The rules that FILE breaks with one of its chunks described in another way."""
    data = bytearray(FILE[: SOURCE.footer.start])
    group = SOURCE.footer.row_groups[0]
    chunks = list(group.chunks)
    chunks[column] = change(chunks[column], data)
    footer = replace(SOURCE.footer, row_groups=(replace(group, chunks=tuple(chunks)),))
    return {untruth.rule for untruth in untruths_of(bytes(data) + footer.encode())}


def described(column: int, **changes: Any) -> set[str]:
    return lying(column, lambda chunk, _: replace(chunk, **changes))


def statistics(column: int, **changes: Any) -> set[str]:
    found = SOURCE.chunk(0, column).statistics
    assert found is not None
    before = Statistics.from_struct(found, PLACE)
    return described(column, statistics=replace(before, **changes).to_struct())


def column_index(column: int, change: Callable[[ColumnIndex], ColumnIndex]) -> set[str]:
    index = SOURCE.column_index(0, column)
    assert index is not None
    encoded = change(index).encode()

    def placed(chunk: Chunk, data: bytearray) -> Chunk:
        span = ByteRange(len(data), len(encoded))
        data += encoded
        return replace(chunk, column_index=span)

    return lying(column, placed)


def offset_index(column: int, change: Callable[[OffsetIndex], OffsetIndex]) -> set[str]:
    index = SOURCE.offset_index(0, column)
    assert index is not None
    encoded = change(index).encode()

    def placed(chunk: Chunk, data: bytearray) -> Chunk:
        span = ByteRange(len(data), len(encoded))
        data += encoded
        return replace(chunk, offset_index=span)

    return lying(column, placed)


def put(values: tuple[bytes, ...], at: int, value: bytes) -> tuple[bytes, ...]:
    return (*values[:at], value, *values[at + 1 :])


def test_a_file_by_pyarrow_says_nothing_untrue() -> None:
    assert not untruths_of(FILE)
    assert not column_index(NUMBER, lambda index: index)
    assert not offset_index(TEXT, lambda index: index)


@pytest.mark.parametrize(
    ("column", "said", "rule"),
    [
        (NUMBER, {"min_value": pack("<q", 2)}, "chunk: min"),
        (NUMBER, {"max_value": pack("<q", 297)}, "chunk: max"),
        (NUMBER, {"min_value": pack("<q", 0), "min_exact": True}, "chunk: min is exact"),
        (NUMBER, {"max_legacy": pack("<q", 5)}, "chunk, old: max"),
        (NUMBER, {"null_count": 99}, "chunk: null_count"),
        (NUMBER, {"distinct_count": 200}, "chunk: distinct_count, which nobody recounts"),
        (TEXT, {"max_value": b"text 39"}, "chunk: max"),
        (TEXT, {"max_value": b"u", "max_exact": True}, "chunk: max is exact"),
        (REAL, {"min_value": pack("<d", float("nan"))}, "chunk: min is NaN"),
        (REAL, {"max_value": pack("<d", -0.0)}, "chunk: sign of a zero as max"),
        (REAL, {"nan_count": 1}, "chunk: nan_count"),
        (SMALL, {"max_value": pack("<i", 200)}, "chunk: max"),
    ],
)
def test_untrue_statistics_are_seen(column: int, said: dict[str, Any], rule: str) -> None:
    assert rule in statistics(column, **said)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"encodings": (3, 8)}, "encodings"),
        ({"encoding_stats": (EncodingCount(0, 8, 3),)}, "encoding_stats"),
        ({"uncompressed_size": 1}, "uncompressed size"),
        ({"bloom_offset": SOURCE.chunk(0, NUMBER).bloom_offset}, "bloom filter"),
        ({"offset_index": None}, "a column index without an offset index"),
        ({"index_page_offset": 4}, "index_page_offset"),
        ({"file_offset": 4}, "file_offset of a chunk"),
    ],
)
def test_an_untrue_chunk_is_seen(said: dict[str, Any], rule: str) -> None:
    assert rule in described(TEXT, **said)


@pytest.mark.parametrize(
    ("column", "change", "rule"),
    [
        (NUMBER, {"null_counts": np.array([34, 33, 32])}, "column index: null_counts"),
        (NUMBER, {"null_pages": np.array([True, False, False])}, "column index: null_pages"),
        (NUMBER, {"boundary_order": 2}, "column index: order of min"),
        (NUMBER, {"definition_histograms": np.arange(6)}, "column index: levels"),
        (NUMBER, {"nan_counts": np.arange(3)}, "column index: nan_counts"),
    ],
)
def test_an_untrue_column_index_is_seen(column: int, change: dict[str, Any], rule: str) -> None:
    assert rule in column_index(column, lambda index: replace(index, **change))


@pytest.mark.parametrize(
    ("bound", "rule"),
    [(pack("<q", 102), "column index: min"), (b"\x07", "column index: width of min")],
)
def test_an_untrue_bound_of_a_page_is_seen(bound: bytes, rule: str) -> None:
    def changed(index: ColumnIndex) -> ColumnIndex:
        return replace(index, min_values=put(index.min_values, 1, bound))

    assert column_index(NUMBER, changed) == {rule}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (
            lambda index: replace(index, first_rows=index.first_rows + np.array([0, 1, 1])),
            "first_row_index",
        ),
        (lambda index: index.shifted(1), "offset index"),
        (lambda index: replace(index, unencoded=np.array([1, 2, 3])), "offset index: bytes"),
    ],
)
def test_an_untrue_offset_index_is_seen(
    change: Callable[[OffsetIndex], OffsetIndex], rule: str
) -> None:
    assert rule in offset_index(TEXT, change)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"total_byte_size": 1}, "total_byte_size"),
        ({"total_compressed_size": 1}, "total_compressed_size"),
        ({"ordinal": 1}, "ordinal"),
        ({"file_offset": 5}, "file_offset"),
    ],
)
def test_an_untrue_row_group_is_seen(said: dict[str, Any], rule: str) -> None:
    footer = SOURCE.footer
    group = replace(footer.row_groups[0], **said)
    data = FILE[: footer.start] + replace(footer, row_groups=(group,)).encode()
    assert {untruth.rule for untruth in untruths_of(data)} == {rule}
