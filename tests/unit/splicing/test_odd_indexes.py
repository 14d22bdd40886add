"""Unusual page indexes of other writers are copied with their pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.operations import NewColumn, add_columns, drop_column
from lakesplice.splicing.structures.chunks import ByteRange
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.whole_rewrite import rewrite_whole
from tests.support.in_memory import edits_of, look, made, spliced
from tests.support.parquet_parts import opened, parquet

TABLE = pa.table(
    [pa.array(range(500)), pa.array(range(500))],
    schema=pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("other", pa.int64(), nullable=False)]
    ),
)
FILE = parquet(TABLE, use_dictionary=False, compression="none", write_page_checksum=False)
LAST = 1  # the column that ends where the pages do
EDIT = ([3], pa.array([-1]))


def with_index(change: Callable[[OffsetIndex], OffsetIndex], *, also: bytes = b"") -> bytes:
    """FILE with more behind its last chunk's pages, and another offset index of them."""
    file = look(FILE)
    chunk, old = file.chunk(0, LAST), file.offset_index(0, LAST)
    assert old is not None
    data = FILE[: chunk.end] + also
    index = change(old).encode()
    first = replace(file.chunk(0, 0), offset_index=None, column_index=None)
    last = replace(
        chunk,
        compressed_size=chunk.compressed_size + len(also),
        uncompressed_size=chunk.uncompressed_size + len(also),
        column_index=None,
        offset_index=ByteRange(len(data), len(index)),
    )
    group = replace(file.footer.row_groups[0], chunks=(first, last))
    return data + index + replace(file.footer, row_groups=(group,)).encode()


def shorter_third(index: OffsetIndex) -> OffsetIndex:
    sizes = index.sizes.copy()
    sizes[2] -= 2
    return replace(index, sizes=sizes)


EMPTY_PAGE = PageHeader(
    kind=PageKind.DATA,
    uncompressed_size=0,
    compressed_size=0,
    num_values=0,
    encoding=Encoding.PLAIN,
    definition_encoding=Encoding.RLE,
    repetition_encoding=Encoding.RLE,
).encode()


def with_page_without_rows(index: OffsetIndex) -> OffsetIndex:
    return OffsetIndex(
        np.append(index.offsets, index.ends[-1]),
        np.append(index.sizes, len(EMPTY_PAGE)),
        np.append(index.first_rows, 500),
    )


ODD = {
    "a gap": with_index(shorter_third),
    "a page without rows": with_index(with_page_without_rows, also=EMPTY_PAGE),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_index_is_copied_where_its_pages_are(odd: str) -> None:
    after = spliced(ODD[odd], id=EDIT)
    assert pq.read_table(opened(after)).column("other").equals(TABLE.column("other"))
    old, new = (look(data).page_locations(0, LAST) for data in (ODD[odd], after))
    assert old is not None
    assert new is not None
    assert (new.offsets - new.offsets[0]).tolist() == (old.offsets - old.offsets[0]).tolist()
    assert new.sizes.tolist() == old.sizes.tolist()
    assert new.first_rows.tolist() == old.first_rows.tolist()


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_index_is_not_gone_by_in_an_edit(odd: str) -> None:
    with pytest.raises(CorruptFileError, match="offset index"):
        spliced(ODD[odd], other=EDIT)


@pytest.mark.parametrize("odd", ODD)
def test_columns_are_added_beside_one_with_an_odd_index(odd: str) -> None:
    source = made(lambda sink: drop_column(opened(ODD[odd]), "a", "id", sink))
    new = NewColumn(pa.field("new", pa.int64()), pa.scalar(7))
    after = made(lambda sink: add_columns(opened(source), "a", [new], Edits(), sink))
    assert pq.read_table(opened(after)).column("new").to_pylist() == [7] * 500
    index = look(after).offset_index(0, 1)
    assert index is not None
    assert index.first_rows.tolist() == [0, 100, 200, 300, 400]


@pytest.mark.parametrize("odd", ODD)
def test_a_file_with_an_odd_index_can_be_rewritten(odd: str) -> None:
    sink = pa.BufferOutputStream()
    edits = edits_of({"other": EDIT})
    assert rewrite_whole(opened(ODD[odd]), "a", edits, sink) == 500
    assert pq.read_table(sink.getvalue()).column("other")[3].as_py() == -1


def test_an_index_that_points_elsewhere_is_not_copied() -> None:
    beyond = with_index(lambda index: index.shifted(10))
    with pytest.raises(CorruptFileError, match="do not follow"):
        spliced(beyond, id=EDIT)


def test_bytes_before_the_first_page_are_no_dictionary_unless_they_are_one() -> None:
    def without_first(index: OffsetIndex) -> OffsetIndex:
        return replace(
            index,
            offsets=index.offsets[1:],
            sizes=index.sizes[1:],
            first_rows=index.first_rows[1:] - index.first_rows[1],
        )

    after = spliced(with_index(without_first), id=EDIT)
    assert look(after).chunk(0, LAST).dictionary_page_offset is None
    assert pq.read_table(opened(after)).column("other").equals(TABLE.column("other"))
