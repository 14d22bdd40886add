from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.structures.page_index import ColumnIndex, OffsetIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import List, Struct, WireType
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.support.parquet_parts import PLACE, opened, parquet, some_table


def index_of(*pages: tuple[int, int, int]) -> OffsetIndex:
    offsets, sizes, rows = np.array(pages, np.int64).reshape(-1, 3).T
    return OffsetIndex(offsets.copy(), sizes.copy(), rows.copy())


THREE = index_of((100, 50, 0), (150, 20, 10), (170, 500, 25))


def test_an_offset_index_is_seven_varints_a_page() -> None:
    data = THREE.encode()
    assert data[:9] == b"\x19\x3c" + b"\x16\xc8\x01" + b"\x15\x64" + b"\x16\x00"
    assert data[-1] == 0
    found = OffsetIndex.decode(data, PLACE)
    assert found.offsets.tolist() == [100, 150, 170]
    assert found.sizes.tolist() == [50, 20, 500]
    assert found.first_rows.tolist() == [0, 10, 25]
    assert found.ends.tolist() == [150, 170, 670]
    assert found.rows(30).tolist() == [10, 15, 5]
    assert found.unencoded is None
    assert len(found) == 3


def test_locations_written_in_long_form_are_read_too() -> None:
    # Field ids in full instead of as steps: legal, and seen by the general codec only.
    page = b"\x06\x02\xc8\x01" + b"\x05\x04\x64" + b"\x06\x06\x00" + b"\x00"
    found = OffsetIndex.decode(b"\x19\x1c" + page + b"\x00", PLACE)
    assert (found.offsets.tolist(), found.sizes.tolist()) == ([100], [50])


def test_the_bytes_of_byte_arrays_are_kept() -> None:
    index = OffsetIndex(
        THREE.offsets, THREE.sizes, THREE.first_rows, np.array([7, 8, 1 << 33], np.int64)
    )
    found = OffsetIndex.decode(index.encode(), PLACE)
    assert found.unencoded is not None
    assert found.unencoded.tolist() == [7, 8, 1 << 33]
    assert found.shifted(9).unencoded is found.unencoded


def test_a_shifted_index_differs_in_its_offsets_alone() -> None:
    shifted = OffsetIndex.decode(THREE.shifted(1 << 35).encode(), PLACE)
    assert (shifted.offsets - THREE.offsets).tolist() == [1 << 35] * 3
    assert shifted.sizes.tolist() == THREE.sizes.tolist()
    assert shifted.first_rows.tolist() == THREE.first_rows.tolist()


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        ([], "no pages"),
        ([(100, 50, 1)], "start at 0"),
        ([(100, 50, 0), (150, 9, 0)], "start at 0"),
        ([(100, 50, 0), (150, 9, 20), (159, 9, 10)], "start at 0"),
        ([(100, 50, 0), (150, 9, 30)], "start at 0"),
        ([(100, 0, 0)], "empty"),
        ([(99, 9, 0)], "outside"),
        ([(-5, 9, 0)], "outside"),
        ([(1 << 62, 9, 0)], "outside"),
        ([((1 << 63) - 1, (1 << 31) - 1, 0)], "outside"),
        ([(100, 50, 0), (149, 9, 10)], "do not follow"),
        ([(100, 50, 0), (151, 9, 10)], "do not follow"),
        ([(100, 800, 0)], "do not follow"),
        ([(150, 50, 0), (100, 9, 10)], "do not follow"),
        ([(100, 901, 0)], "do not follow"),
    ],
)
def test_pages_must_rise_within_their_chunk(pages: list[tuple[int, int, int]], reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        index_of(*pages).check(100, 1000, 30, PLACE)
    THREE.check(100, 670, 30, PLACE)


def test_the_rows_of_pages_and_the_bounds_are_pyarrows() -> None:
    table = some_table()
    source = SourceFile(opened(parquet(table)), "a.parquet")
    for group, rows in enumerate((1000, 1000, 500)):
        for column in range(4):
            pages = source.offset_index(group, column)
            bounds = source.column_index(group, column)
            assert pages is not None
            assert bounds is not None
            assert pages.first_rows.tolist() == list(range(0, rows, 100))
            assert pages.rows(rows).tolist() == [100] * (rows // 100)
            assert len(bounds) == len(pages)
        ids = source.column_index(group, 0)
        assert ids is not None
        assert ids.boundary_order == 1
        firsts = [int.from_bytes(low, "little") for low in ids.min_values]
        assert firsts == list(range(1000 * group, 1000 * group + rows, 100))


def test_an_index_is_written_as_pyarrow_wrote_it() -> None:
    data = parquet(some_table())
    source = SourceFile(opened(data), "a.parquet")
    for column in range(4):
        chunk = source.chunk(0, column)
        pages, bounds = source.offset_index(0, column), source.column_index(0, column)
        assert pages is not None
        assert bounds is not None
        assert chunk.offset_index is not None
        assert chunk.column_index is not None
        assert data[chunk.offset_index.offset : chunk.offset_index.end] == pages.encode()
        assert data[chunk.column_index.offset : chunk.column_index.end] == bounds.encode()


def test_a_page_of_nulls_has_no_bounds() -> None:
    table = pa.table({"n": pa.array([None] * 100 + [1] * 100, pa.int32())})
    bounds = SourceFile(opened(parquet(table)), "a.parquet").column_index(0, 0)
    assert bounds is not None
    assert bounds.null_pages.tolist() == [True, False]
    assert bounds.min_values == (b"", b"\x01\x00\x00\x00")
    assert bounds.null_counts is not None
    assert bounds.null_counts.tolist() == [100, 0]


def test_nulls_that_were_not_counted_are_unknown() -> None:
    counts = np.array([0, -1], np.int64)
    index = ColumnIndex(np.array([False, False]), (b"a", b"b"), (b"a", b"b"), 1, counts)
    assert ColumnIndex.decode(index.encode(), PLACE).null_counts is None


def test_lists_of_different_lengths_are_damage() -> None:
    good = ColumnIndex(np.array([False, True]), (b"a", b""), (b"b", b""), 0)
    whole, _ = decode_struct(good.encode(), file_part=PLACE)
    short: Struct = whole.replaced({3: (WireType.LIST, List(WireType.BINARY, (b"b",)))})
    with pytest.raises(CorruptFileError, match="different lengths"):
        ColumnIndex.decode(encode_struct(short), PLACE)


def test_a_length_beyond_32_bits_is_damage() -> None:
    data = index_of((4, 2**33, 0)).encode()
    with pytest.raises(CorruptFileError):
        OffsetIndex.decode(data, PLACE)
