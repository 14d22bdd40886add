"""Page headers that are decoded together equal those decoded one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.many_headers import (
    NO_CHECKSUM,
    HeaderArrays,
    decode_headers,
    joined_headers,
)
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.thrift.compact import Struct, WireType
from tests.support.parquet_parts import PLACE

SIZES = st.one_of(st.integers(0, 200), st.integers(0, 2**31 - 1))
CRCS = st.one_of(st.none(), st.integers(0, 2**32 - 1))
STATISTICS = st.sampled_from([None, Struct({1: (WireType.BINARY, b"max")})])


@st.composite
def headers(draw: st.DrawFn) -> PageHeader:
    kind = draw(st.sampled_from([PageKind.DATA, PageKind.DATA, PageKind.DICTIONARY]))
    common: dict[str, Any] = {
        "kind": kind,
        "uncompressed_size": draw(SIZES),
        "compressed_size": draw(SIZES),
        "crc": draw(CRCS),
        "num_values": draw(SIZES),
        "encoding": draw(st.sampled_from([Encoding.PLAIN, Encoding.RLE_DICTIONARY])),
    }
    if kind is PageKind.DICTIONARY:
        return PageHeader(**common)
    return PageHeader(
        **common,
        definition_encoding=draw(st.sampled_from([Encoding.RLE, Encoding.BIT_PACKED])),
        repetition_encoding=Encoding.RLE,
        statistics=draw(STATISTICS),
    )


def together(pages: list[bytes]) -> HeaderArrays:
    sizes = np.array([len(page) for page in pages], np.int64)
    ends = np.cumsum(sizes)
    return decode_headers(pa.py_buffer(b"".join(pages)), ends - sizes, ends, lambda _: PLACE)


def one_by_one(pages: list[bytes]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    start = 0
    for page in pages:
        header, body = PageHeader.decode(page, 0, PLACE)
        crc = NO_CHECKSUM if header.crc is None else header.crc
        sizes = header.uncompressed_size, header.compressed_size
        values = header.num_values, header.encoding
        found.append((int(header.kind), *sizes, crc, *values, start + body))
        start += len(page)
    return found


def rows(of: HeaderArrays) -> list[tuple[int, ...]]:
    columns = (
        of.kinds,
        of.uncompressed,
        of.compressed,
        of.crcs,
        of.values,
        of.encodings,
        of.bodies,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.slow
@given(st.lists(st.tuples(headers(), st.binary(max_size=9)), max_size=12))
def test_together_as_one_by_one(given_pages: list[tuple[PageHeader, bytes]]) -> None:
    pages = [header.encode() + body for header, body in given_pages]
    assert rows(together(pages)) == one_by_one(pages)


@pytest.mark.slow
@given(
    st.lists(headers(), min_size=5, max_size=8),
    st.integers(0, 10**6),
    st.integers(1, 255),
)
def test_a_damaged_header_is_read_or_refused_the_same(
    given_pages: list[PageHeader], where: int, how: int
) -> None:
    pages = [header.encode() + b"0123456789" for header in given_pages]
    page = bytearray(pages[where % len(pages)])
    page[where % len(page)] ^= how
    pages[where % len(pages)] = bytes(page)
    try:
        expected = one_by_one(pages)
    except CorruptFileError:
        with pytest.raises(CorruptFileError):
            together(pages)
        return
    assert rows(together(pages)) == expected


def test_parts_are_joined_in_their_order() -> None:
    pages = [
        PageHeader(
            kind=PageKind.DATA, uncompressed_size=at, compressed_size=at, num_values=at, encoding=0,
            definition_encoding=3, repetition_encoding=3,
        ).encode()
        for at in range(9)
    ]  # fmt: skip
    parts = [together(pages[:2]), together(pages[2:8]), together(pages[8:])]
    assert joined_headers(parts).values.tolist() == list(range(9))
