"""Laws of Parquet's metadata: they round-trip, and any bytes give a value or a named error."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.structures.enums import PageKind
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import (
    ColumnIndex,
    OffsetIndex,
    decode_offset_indexes,
    encode_offset_indexes,
)
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import List, Map, Struct, WireType
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from lakesplice.splicing.thrift.varints import decode_varints, encode_varints, unzigzag, zigzag
from tests.fuzz.mutator import mutated
from tests.support.parquet_parts import PLACE, opened, parquet, some_table

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
SCALARS = {
    WireType.TRUE: st.booleans(),
    WireType.BYTE: st.integers(-128, 127),
    WireType.I16: st.integers(-(1 << 15), (1 << 15) - 1),
    WireType.I32: INT32,
    WireType.I64: INT64,
    WireType.DOUBLE: st.binary(min_size=8, max_size=8),
    WireType.BINARY: st.binary(max_size=20),
    WireType.UUID: st.binary(min_size=16, max_size=16),
}


def lists_of(wire: WireType, values: st.SearchStrategy) -> st.SearchStrategy:
    # Around 15 the size gets bytes of its own, from 32 on the values are read at once.
    return st.lists(values, min_size=1, max_size=40).map(lambda found: List(wire, tuple(found)))


def structs_over(fields: st.SearchStrategy) -> st.SearchStrategy:
    return st.dictionaries(st.integers(-300, 300), fields, max_size=5).map(Struct)


def deeper(structs: st.SearchStrategy) -> st.SearchStrategy:
    values = {**SCALARS, WireType.STRUCT: structs}
    lists = st.one_of(*(lists_of(wire, of) for wire, of in values.items()))
    maps = st.lists(st.tuples(st.binary(max_size=3), INT32), min_size=1, max_size=3).map(
        lambda pairs: Map(WireType.BINARY, WireType.I32, tuple(pairs))
    )
    fields = [st.tuples(st.just(wire), of) for wire, of in values.items()]
    fields += [
        lists.map(lambda value: (WireType.LIST, value)),
        lists.map(lambda value: (WireType.SET, value)),
        maps.map(lambda value: (WireType.MAP, value)),
    ]
    return structs_over(st.one_of(*fields))


STRUCTS = st.recursive(st.just(Struct()), deeper, max_leaves=6)


@given(STRUCTS)
def test_any_structure_comes_back_as_it_was_written(struct: Struct) -> None:
    data = encode_struct(struct)
    found, end = decode_struct(data, file_part=PLACE)
    assert (found, end) == (struct, len(data))
    assert list(found.fields) == list(struct.fields)
    assert encode_struct(found) == data


@given(st.binary(max_size=200))
def test_any_bytes_are_a_structure_or_an_error_by_name(data: bytes) -> None:
    value_or_named_error(lambda: decode_struct(data, file_part=PLACE))
    value_or_named_error(lambda: OffsetIndex.decode(data, PLACE))
    value_or_named_error(lambda: ColumnIndex.decode(data, PLACE))
    value_or_named_error(lambda: PageHeader.decode(data, 0, PLACE))


@given(st.lists(INT64, max_size=60), st.binary(max_size=12))
def test_varints_all_at_once_are_those_one_by_one(values: list[int], rest: bytes) -> None:
    signed = np.array(values, np.int64)
    struct = Struct({1: (WireType.LIST, List(WireType.I64, tuple(values)))})
    data = encode_varints(zigzag(signed))
    assert data == b"".join(
        encode_struct(Struct({1: (WireType.I64, value)}))[1:-1] for value in values
    )
    found = decode_varints(np.frombuffer(data + rest, np.uint8), len(values))
    assert found is not None
    assert unzigzag(found[0]).tolist() == values
    assert found[1] == len(data)
    assert decode_struct(encode_struct(struct), file_part=PLACE)[0] == struct


@given(st.binary(max_size=60), st.integers(1, 8))
def test_any_bytes_are_varints_or_none_as_one_by_one(data: bytes, count: int) -> None:
    found = decode_varints(np.frombuffer(data, np.uint8), count)
    body = b"".join(b"\x16" + part for part in _split(data, count))
    try:
        expected, _ = decode_struct(body + b"\x00", file_part=PLACE)
    except CorruptFileError:
        assert found is None
        return
    values = [value for _, value in expected.fields.values()]
    if len(values) < count:
        assert found is None
    else:
        assert found is not None
        assert unzigzag(found[0]).tolist() == values


def _split(data: bytes, count: int) -> list[bytes]:
    """The first `count` varints, or all there are, the last perhaps without an end."""
    parts, part = [], b""
    for byte in data:
        part += bytes((byte,))
        if byte < 128:
            parts.append(part)
            part = b""
        if len(parts) == count:
            return parts
    return [*parts, part] if part else parts


@st.composite
def offset_indexes(draw: st.DrawFn) -> OffsetIndex:
    steps = draw(st.lists(st.tuples(st.integers(1, 1 << 31), st.integers(1, 1 << 40)), max_size=30))
    sizes = np.array([min(size, (1 << 31) - 1) for size, _ in steps], np.int64)
    rows = np.cumsum([0] + [rows for _, rows in steps])[:-1].astype(np.int64)
    offsets = 4 + np.cumsum(sizes) - sizes
    some = draw(st.booleans())
    return OffsetIndex(offsets, sizes, rows, sizes + 1 if some else None)


@given(offset_indexes(), st.integers(-4, 1 << 50))
def test_an_offset_index_comes_back_shifted_or_not(index: OffsetIndex, delta: int) -> None:
    found = OffsetIndex.decode(index.shifted(delta).encode(), PLACE)
    assert found.offsets.tolist() == (index.offsets + delta).tolist()
    assert found.sizes.tolist() == index.sizes.tolist()
    assert found.first_rows.tolist() == index.first_rows.tolist()
    assert (found.unencoded is None) == (index.unencoded is None)
    generic, _ = decode_struct(index.encode(), file_part=PLACE)
    assert encode_struct(generic) == index.encode()


@given(st.data(), st.lists(offset_indexes(), max_size=6))
def test_many_offset_indexes_are_those_one_by_one(
    data: st.DataObject, indexes: list[OffsetIndex]
) -> None:
    written = encode_offset_indexes(indexes)
    if len(indexes) > 0 and data.draw(st.booleans(), "one is damaged"):
        at = data.draw(st.integers(0, len(written) - 1))
        place = data.draw(st.integers(0, len(written[at]) - 1))
        damage = data.draw(st.binary(max_size=3))
        written[at] = written[at][:place] + damage + written[at][place + 1 :]
    places = [PLACE] * len(written)
    try:
        one_by_one = [OffsetIndex.decode(index, PLACE) for index in written]
    except CorruptFileError as error:
        with pytest.raises(CorruptFileError, match=re.escape(str(error))):
            decode_offset_indexes(written, places)
        return
    for found, expected in zip(decode_offset_indexes(written, places), one_by_one, strict=True):
        for name in ("offsets", "sizes", "first_rows", "unencoded"):
            assert _listed(getattr(found, name)) == _listed(getattr(expected, name))


def _listed(values: np.ndarray | None) -> list[int] | None:
    return None if values is None else values.tolist()


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=9), st.integers(0, 9)), max_size=40))
def test_a_column_index_comes_back(pages: list[tuple[bool, bytes, int]]) -> None:
    bounds = tuple(bound for _, bound, _ in pages)
    index = ColumnIndex(
        null_pages=np.array([null for null, _, _ in pages], np.bool_),
        min_values=bounds,
        max_values=bounds[::-1],
        boundary_order=1,
        null_counts=np.array([count for _, _, count in pages], np.int64),
    )
    found = ColumnIndex.decode(index.encode(), PLACE)
    assert (found.min_values, found.max_values) == (index.min_values, index.max_values)
    assert found.null_pages.tolist() == index.null_pages.tolist()
    assert found.null_counts is not None
    assert found.null_counts.tolist() == [count for _, _, count in pages]
    assert found.encode() == index.encode()


SIZE = st.integers(0, (1 << 31) - 1)
HEADERS = st.one_of(
    st.builds(
        PageHeader,
        kind=st.just(PageKind.DATA),
        uncompressed_size=SIZE,
        compressed_size=SIZE,
        num_values=SIZE,
        encoding=st.integers(0, 10),
        crc=st.none() | st.integers(0, (1 << 32) - 1),
        definition_encoding=st.just(3),
        repetition_encoding=st.just(4),
        statistics=st.none() | STRUCTS,
    ),
    st.builds(
        PageHeader,
        kind=st.just(PageKind.DATA_V2),
        uncompressed_size=st.just(1000),
        compressed_size=st.just(900),
        num_values=SIZE,
        encoding=st.integers(0, 10),
        rows=SIZE,
        nulls=SIZE,
        definition_bytes=st.integers(0, 450),
        repetition_bytes=st.integers(0, 450),
        is_compressed=st.none() | st.booleans(),
    ),
    st.builds(
        PageHeader,
        kind=st.just(PageKind.DICTIONARY),
        uncompressed_size=SIZE,
        compressed_size=SIZE,
        num_values=SIZE,
        encoding=st.sampled_from([0, 2]),
        crc=st.none() | st.integers(0, (1 << 32) - 1),
        is_sorted=st.none() | st.booleans(),
    ),
)


@given(HEADERS)
def test_a_page_header_comes_back(header: PageHeader) -> None:
    data = header.encode()
    found, end = PageHeader.decode(b"before" + data + b"behind", 6, PLACE)
    assert end == 6 + len(data)
    assert found.encode() == data
    for name in PageHeader.__slots__:
        if name != "raw":
            assert getattr(found, name) == getattr(header, name)


WHOLE = {
    "v1": parquet(some_table(300), max_rows_per_page=50, row_group_size=200),
    "v2": parquet(some_table(120), data_page_version="2.0", max_rows_per_page=40),
    "nested": parquet(pa.table({"l": [[1, 2], None, []] * 20, "s": [{"a": 1}] * 60})),
}


def look_into(data: bytes) -> None:
    """Read all that can be read without decoding a page."""
    source = SourceFile(opened(data), "x.parquet")
    for group in range(len(source.footer.row_groups)):
        for column in range(len(source.footer.leaves)):
            source.refusal(group, column)
            for read in (
                lambda g=group, c=column: source.column_index(g, c),
                lambda g=group, c=column: source.dictionary_page(g, c),
                lambda g=group, c=column: list(source.pages(g, c)),
            ):
                value_or_named_error(read)
    source.footer.encode()


def value_or_named_error(read: Callable[[], object]) -> None:
    try:
        read()
    except (CorruptFileError, UnsupportedError) as error:
        unnamed = {"path", "place"} - error.facts.keys()
    else:
        unnamed = set()
    assert not unnamed


@pytest.mark.parametrize("kind", WHOLE)
@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_file_with_any_bytes_changed_is_read_or_refused(
    kind: str, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(WHOLE[kind])
    for back, byte in changes:  # from the end, where the metadata is
        data[-1 - back % len(data)] = byte
    value_or_named_error(lambda: look_into(bytes(data)))


@pytest.mark.parametrize("kind", WHOLE)
@given(st.data())
def test_a_file_cut_anywhere_is_refused(kind: str, data: st.DataObject) -> None:
    whole = WHOLE[kind]
    size = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError) as raised:
        SourceFile(opened(whole[:size]), "cut.parquet")
    assert raised.value.facts["path"] == "cut.parquet"


@pytest.mark.parametrize("kind", WHOLE)
def test_an_unchanged_footer_is_written_back_byte_for_byte(kind: str) -> None:
    source = SourceFile(opened(WHOLE[kind]), "x.parquet")
    stream = io.BytesIO(WHOLE[kind])
    stream.seek(source.footer.start)
    assert source.footer.encode() == stream.read()


@pytest.mark.parametrize("kind", WHOLE)
@given(st.integers(0, 1 << 32), st.integers(1, 3))
def test_a_file_with_any_value_of_its_footer_changed_is_read_or_refused(
    kind: str, seed: int, changes: int
) -> None:
    whole, chance = WHOLE[kind], Random(seed)
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    footer = whole[start:-8]
    for _ in range(changes):
        footer = mutated(footer, chance) or footer
    data = whole[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    value_or_named_error(lambda: look_into(data))
