from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.page_headers import PageHeader, read_page, walk
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import EMPTY, Struct, WireType
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.support.parquet_parts import PLACE, opened, parquet, some_table

# A data page v1: type, sizes 100 and 90, crc -1, then 10 values PLAIN with levels in RLE.
V1 = b"\x15\x00\x15\xc8\x01\x15\xb4\x01\x15\x01\x1c\x15\x14\x15\x00\x15\x06\x15\x06\x00\x00"


def test_a_data_page_v1_by_hand() -> None:
    header, end = PageHeader.decode(V1, 0, PLACE)
    assert end == len(V1)
    assert (header.kind, header.is_data) == (PageKind.DATA, True)
    assert (header.uncompressed_size, header.compressed_size) == (100, 90)
    assert (header.num_values, header.encoding) == (10, Encoding.PLAIN)
    assert header.crc == 0xFFFFFFFF  # stored as a signed integer
    assert (header.definition_encoding, header.repetition_encoding) == (3, 3)
    assert header.statistics is None
    assert header.encode() == V1
    assert replace(header, raw=EMPTY).encode() == V1


def test_a_header_keeps_what_it_does_not_know() -> None:
    whole, _ = decode_struct(V1, file_part=PLACE)
    data = encode_struct(whole.replaced({77: (WireType.BINARY, b"new")}))
    header, _ = PageHeader.decode(data, 0, PLACE)
    assert replace(header, crc=None).encode() == data.replace(b"\x15\x01\x1c", b"\x2c")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({1: (WireType.I32, 9)}, "no such kind"),
        ({1: (WireType.I32, 2)}, "header of DICTIONARY is missing"),
        ({2: (WireType.I32, -1)}, "uncompressed_page_size is too small"),
        ({3: None}, "compressed_page_size is missing"),
        ({3: (WireType.BINARY, b"")}, "compressed_page_size is missing"),
        ({5: (WireType.STRUCT, Struct({1: (WireType.I32, -4)}))}, "num_values is too small"),
    ],
)
def test_damage_is_named(changes: dict[int, Any], reason: str) -> None:
    whole, _ = decode_struct(V1, file_part=PLACE)
    with pytest.raises(CorruptFileError, match=reason):
        PageHeader.decode(encode_struct(whole.replaced(changes)), 0, PLACE)


def test_levels_longer_than_their_page_are_damage() -> None:
    header = PageHeader(
        kind=PageKind.DATA_V2,
        uncompressed_size=10,
        compressed_size=10,
        num_values=1,
        encoding=0,
        rows=1,
        nulls=0,
        definition_bytes=6,
        repetition_bytes=5,
    )
    with pytest.raises(CorruptFileError, match="levels are longer"):
        PageHeader.decode(header.encode(), 0, PLACE)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_walk_finds_the_pages_of_the_index_behind_the_dictionary(version: str) -> None:
    data = parquet(some_table(), data_page_version=version)
    source = SourceFile(opened(data), "a.parquet")
    for column in range(4):
        index = source.offset_index(0, column)
        assert index is not None
        dictionary, *pages = walk(source.source, source.chunk(0, column), PLACE)
        assert dictionary == source.dictionary_page(0, column)
        assert dictionary.header.kind is PageKind.DICTIONARY
        assert [page.offset for page in pages] == index.offsets.tolist()
        assert [page.end - page.offset for page in pages] == index.sizes.tolist()
        assert {page.header.num_values for page in pages} == {100}
        for page in (dictionary, *pages):
            assert zlib.crc32(data[page.body_offset : page.end]) == page.header.crc
            assert data[page.offset : page.body_offset] == page.header.encode()


def test_levels_of_a_data_page_v2_are_counted() -> None:
    table = pa.table({"n": pa.array([None, 1, 2] * 10, pa.int32())})
    source = SourceFile(opened(parquet(table, data_page_version="2.0")), "a.parquet")
    _, page = source.pages(0, 0)
    assert page.header.kind is PageKind.DATA_V2
    assert (page.header.rows, page.header.nulls, page.header.num_values) == (30, 10, 30)
    assert (page.header.definition_bytes or 0) > 0
    assert page.header.repetition_bytes == 0


def test_a_header_longer_than_a_window_is_read_with_more() -> None:
    header = PageHeader(
        kind=PageKind.DATA,
        uncompressed_size=3,
        compressed_size=3,
        num_values=1,
        encoding=0,
        definition_encoding=3,
        repetition_encoding=3,
        statistics=Struct({5: (WireType.BINARY, b"x" * 300_000)}),
    )
    data = b"PAR1" + header.encode() + b"abc"
    page = read_page(opened(data), 4, len(data), PLACE)
    assert page.end == len(data)
    with pytest.raises(CorruptFileError, match="longer than the bytes"):
        read_page(opened(data), 4, 200_000, PLACE)
    with pytest.raises(CorruptFileError, match="after its chunk"):
        read_page(opened(data), 4, len(data) - 1, PLACE)


def test_a_walk_stops_at_a_page_that_is_not_there() -> None:
    data = bytearray(parquet(some_table(200), compression="none"))
    source = SourceFile(opened(bytes(data)), "a.parquet")
    index = source.offset_index(0, 0)
    assert index is not None
    at = int(index.offsets[1])
    data[at : at + 2] = b"\xff\xff"
    broken = SourceFile(opened(bytes(data)), "a.parquet")
    with pytest.raises(CorruptFileError) as raised:
        list(broken.pages(0, 0))
    assert f"the page at {at} of row group 0, column 0 (id)" == raised.value.facts["place"]


def test_a_second_dictionary_is_damage() -> None:
    source = SourceFile(opened(parquet(some_table(200))), "a.parquet")
    chunk = source.chunk(0, 0)
    first = next(source.pages(0, 0))
    twice = source.read(first.offset, first.end - first.offset).to_pybytes() * 2
    moved = replace(
        chunk, dictionary_page_offset=None, data_page_offset=0, compressed_size=len(twice)
    )
    with pytest.raises(CorruptFileError, match="not its chunk's first"):
        list(walk(opened(twice), moved, PLACE))


def test_pages_of_another_number_of_values_are_damage() -> None:
    source = SourceFile(opened(parquet(some_table(200))), "a.parquet")
    with pytest.raises(CorruptFileError, match="number of values"):
        list(walk(source.source, replace(source.chunk(0, 0), num_values=199), PLACE))
