"""A page with a wrong checksum isn't copied, whatever its chunk contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.options import Options
from lakesplice.splicing.structures.chunks import ByteRange, Chunk
from lakesplice.splicing.structures.footer import Footer
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import OffsetIndex
from tests.support.in_memory import look, spliced
from tests.support.parquet_parts import PLACE, opened, parquet

ROWS = 1000
EDIT = ([3], pa.array([-1]))


def with_last_page_damaged(data: bytes, column: int) -> bytes:
    *_, page = look(data).pages(0, column)
    damaged = bytearray(data)
    damaged[page.end - 3] ^= 1
    return bytes(damaged)


@pytest.mark.parametrize("kind", ["flat", "nested"])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("page_index", [True, False])
def test_a_damaged_page_is_not_copied(
    kind: str, pages: str, dictionary: bool, page_index: bool
) -> None:
    values = [at % 300 for at in range(ROWS)]
    other = pa.array(values) if kind == "flat" else pa.array([[value] for value in values])
    data = parquet(
        pa.table({"id": range(ROWS), "other": other}),
        compression="none",
        data_page_version=pages,
        use_dictionary=dictionary,
        write_page_index=page_index,
    )
    assert pq.read_table(opened(spliced(data, id=EDIT))).num_rows == ROWS
    bad = with_last_page_damaged(data, 1)
    with pytest.raises(CorruptFileError, match="checksum") as raised:
        spliced(bad, id=EDIT)
    assert raised.value.facts["path"] == "a.parquet"
    assert "other" in str(raised.value.facts["place"])
    assert spliced(bad, options=Options(verify=False), id=EDIT)


@pytest.mark.parametrize("without", [[0], [1], [0, 1, 2, 3], [9]])
def test_pages_without_a_checksum_do_not_hide_the_others(without: Sequence[int]) -> None:
    table = pa.table({"other": range(ROWS), "id": range(ROWS)})
    data = with_some_checksums(parquet(table, compression="none"), 0, without)
    assert pq.read_table(opened(data)).equals(table)
    assert pq.read_table(opened(spliced(data, id=EDIT))).column("other").equals(table.column(0))
    bad = with_last_page_damaged(data, 0)
    if without == [9]:
        assert spliced(bad, id=EDIT)
        return
    with pytest.raises(CorruptFileError, match="checksum"):
        spliced(bad, id=EDIT)


def with_some_checksums(data: bytes, column: int, without: Sequence[int]) -> bytes:
    """The file with its only row group's first column's pages partly without checksums."""
    file = look(data)
    out, sizes = bytearray(), []
    pages = list(file.pages(0, column))
    head = len(pages) - 10  # the dictionary
    for number, page in enumerate(pages):
        header, start = PageHeader.decode(data, page.offset, PLACE)
        wanted = replace(header, crc=None) if number - head in without else header
        encoded = wanted.encode() + data[start : page.end]
        out += encoded
        sizes.append(len(encoded))
    chunk, size = file.chunk(0, column), np.array(sizes)
    offsets = chunk.start + np.cumsum(size) - size
    old = file.offset_index(0, column)
    assert old is not None
    index = OffsetIndex(offsets[head:], size[head:], old.first_rows).encode()
    less = chunk.compressed_size - len(out)
    body = bytearray(data[: file.footer.start])
    body[chunk.start : chunk.end] = out + bytes(less)

    def shorter(footer: Footer) -> Footer:
        found = replace(
            chunk,
            compressed_size=len(out),
            uncompressed_size=chunk.uncompressed_size - less,
            data_page_offset=int(offsets[head]),
            offset_index=ByteRange(len(body), len(index)),
        )
        group = footer.row_groups[0]
        chunks: list[Chunk] = [*group.chunks]
        chunks[column] = found
        return replace(footer, row_groups=(replace(group, chunks=tuple(chunks)),))

    return bytes(body) + index + shorter(file.footer).encode()
