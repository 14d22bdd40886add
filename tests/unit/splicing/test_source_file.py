from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.structures.chunks import ByteRange, Chunk
from lakesplice.splicing.structures.enums import Codec, Encoding
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import opened, parquet, some_table

FILE = parquet(some_table(300), use_dictionary=False)
SOURCE = SourceFile(opened(FILE), "a.parquet")


def changed(created_by: str | None = "somebody version 1.0.0", **changes: Any) -> SourceFile:
    """FILE, its first chunk described in another way."""
    footer = SOURCE.footer
    group = footer.row_groups[0]
    chunk: Chunk = replace(group.chunks[0], **changes)
    groups = (replace(group, chunks=(chunk, *group.chunks[1:])),)
    end = replace(footer, row_groups=groups, created_by=created_by).encode()
    return SourceFile(opened(FILE[: footer.start] + end), "a.parquet")


DELTA = (Encoding.DELTA_BYTE_ARRAY,)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (changed(), None),
        (changed(created_by=None), None),
        (changed(offset_index=None), Reason.NO_PAGE_INDEX),
        (changed(column_index=None), None),
        (changed(codec=Codec.LZ4), Reason.LEGACY_LZ4),
        (changed(codec=Codec.LZ4_RAW), None),
        (changed(codec=Codec.LZO), Reason.LZO),
        (changed(codec=77), Reason.UNKNOWN_CODEC),
        (changed(encodings=(Encoding.ALP,)), Reason.UNKNOWN_ENCODING),
        (changed(encodings=(Encoding.PLAIN, 77)), Reason.UNKNOWN_ENCODING),
        (
            changed("parquet-mr version 1.8.1 (build x)", encodings=DELTA),
            Reason.OLD_DELTA_BYTE_ARRAY,
        ),
        (changed("parquet-mr", encodings=DELTA), Reason.OLD_DELTA_BYTE_ARRAY),
        (changed("parquet-mr version 1.8.1"), None),
        (changed("parquet-mr version 1.8.2", encodings=DELTA), None),
        (changed("parquet-mr version 1.15.0-SNAPSHOT", encodings=DELTA), None),
    ],
)
def test_the_footer_tells_what_can_not_be_spliced(
    source: SourceFile, reason: Reason | None
) -> None:
    assert source.refusal(0, 0) is reason
    assert source.refusal(0, 1) is None


def test_nested_columns_are_refused_one_by_one() -> None:
    table = pa.table({"flat": [1], "list": [[1]], "record": [{"x": 1}]})
    source = SourceFile(opened(parquet(table)), "n.parquet")
    assert [source.refusal(0, column) for column in range(3)] == [
        None,
        Reason.NESTED,
        Reason.NESTED,
    ]


def test_opening_reads_no_index() -> None:
    source = SourceFile(opened(FILE), "a.parquet")
    chunk = source.chunk(0, 0)
    assert chunk.offset_index is not None
    damaged = bytearray(FILE)
    damaged[chunk.offset_index.offset] = 0xFF
    still = SourceFile(opened(bytes(damaged)), "a.parquet")
    assert still.offset_index(0, 1) is not None
    with pytest.raises(CorruptFileError) as raised:
        still.offset_index(0, 0)
    assert raised.value.facts["place"] == "the offset index of row group 0, column 0 (id)"


def test_a_chunk_without_indexes_has_none() -> None:
    source = SourceFile(opened(parquet(some_table(10), write_page_index=False)), "a.parquet")
    assert source.offset_index(0, 0) is None
    assert source.column_index(0, 0) is None
    assert source.dictionary_page(0, 0) is not None
    assert SOURCE.dictionary_page(0, 0) is None


def test_bytes_are_read_exactly_or_the_file_is_damaged() -> None:
    assert SOURCE.read(0, 4).to_pybytes() == b"PAR1"
    with pytest.raises(CorruptFileError, match="ends before"):
        SOURCE.read(SOURCE.size - 3, 4)


def test_key_values_are_found_by_key() -> None:
    assert SOURCE.key_value(b"ARROW:schema") is not None
    assert SOURCE.key_value(b"nothing") is None


def test_an_index_beyond_reason_is_refused_before_it_is_read() -> None:
    footer, filler = SOURCE.footer, bytes(33 << 20)
    group = footer.row_groups[0]
    chunk = replace(group.chunks[0], offset_index=ByteRange(footer.start, len(filler)))
    groups = (replace(group, chunks=(chunk, *group.chunks[1:])),)
    data = FILE[: footer.start] + filler + replace(footer, row_groups=groups).encode()
    with pytest.raises(UnsupportedError, match="too large"):
        SourceFile(opened(data), "a.parquet").offset_index(0, 0)
