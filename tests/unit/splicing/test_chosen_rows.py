"""Reading chosen rows of a column: which pages are read, and that damaged pages are found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.pages.page_runs import read_spans
from lakesplice.splicing.pages.rows import read_rows
from tests.support.in_memory import look
from tests.support.parquet_parts import parquet

ROWS = 1000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64())})
PAGE_ROWS, PAGE_BYTES = 100, 800


@pytest.mark.parametrize("span_pages", [1, 2, 3, 100])
@pytest.mark.parametrize("pages", [[4], [0, 1, 5, 6, 9], [0, 2, 4, 6], [1, 2, 3, 7, 8]])
def test_a_span_has_the_bytes_of_its_pages_and_of_no_others(
    pages: list[int], span_pages: int
) -> None:
    data = parquet(TABLE, compression="none", use_dictionary=False)
    source = look(data)
    index = source.offset_index(0, 0)
    assert index is not None
    spans = [*read_spans(source, 0, 0, index, np.array(pages), span_pages * PAGE_BYTES)]
    assert np.concatenate([span.numbers for span in spans]).tolist() == pages
    assert all(len(span.numbers) <= span_pages for span in spans)
    for span in spans:
        places = zip(index.offsets[span.numbers], index.ends[span.numbers], strict=True)
        wanted = b"".join(data[start:end] for start, end in places)
        assert b"".join(buffer.to_pybytes() for buffer in span.buffers) == wanted
        assert span.decoded_bytes == len(span.numbers) * PAGE_BYTES


@pytest.mark.parametrize("page_index", [True, False])
def test_a_damaged_page_is_found_by_its_checksum(page_index: bool) -> None:
    data = parquet(TABLE, compression="none", use_dictionary=False, write_page_index=page_index)
    *_, last = look(data).pages(0, 0)
    damaged = bytearray(data)
    damaged[last.end - 3] ^= 1
    rows = np.array([1, ROWS - 1])
    assert read_rows(look(data), "id", rows).to_pylist() == [1, ROWS - 1]
    with pytest.raises(CorruptFileError):
        read_rows(look(bytes(damaged)), "id", rows)
