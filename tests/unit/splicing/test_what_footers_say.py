"""The metadata of a spliced file is true for its values."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.splicing.structures.chunks import ByteRange, Chunk, EncodingCount
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.footer import Footer
from lakesplice.splicing.thrift.compact import Struct, WireType
from tests.support.in_memory import look, spliced, with_chunk, with_footer
from tests.support.machine import shared_dir
from tests.support.parquet_parts import opened, parquet, some_table

NEWER = {40: (WireType.BINARY, b"where something lies, or what the least value is")}
GEOSPATIAL = 17


def metadata(chunk: Chunk) -> Struct:
    found = chunk.raw.get(3)
    assert isinstance(found, Struct)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["geospatial.parquet", "geography-points.parquet"])
def test_bounds_on_earth_are_dropped_with_the_values_they_bound(name: str) -> None:
    root = shared_dir("corpora", "parquet-testing-data", "geospatial")
    data = (root / name).read_bytes()
    file = look(data)
    column = next(leaf.column for leaf in file.footer.leaves if leaf.path == ("geometry",))
    assert metadata(file.chunk(0, column)).get(GEOSPATIAL) is not None
    point = struct.pack("<BIdd", 1, 1, 5000.0, 5000.0)
    after = look(spliced(data, geometry=([0], pa.array([point]))))
    assert metadata(after.chunk(0, column)).get(GEOSPATIAL) is None
    first = next(leaf for leaf in file.footer.leaves if leaf.column != column)
    kept = look(spliced(data, {first.name: ([], pa.array([], pa.int64()))}))
    assert metadata(kept.chunk(0, column)).get(GEOSPATIAL) is not None


def newer(footer: Footer) -> Footer:
    """With fields that nobody knows yet, at every level."""
    groups = tuple(
        replace(group, raw=group.raw.replaced(NEWER), chunks=tuple(map(_newer, group.chunks)))
        for group in footer.row_groups
    )
    return replace(footer, raw=footer.raw.replaced(NEWER), row_groups=groups)


def _newer(chunk: Chunk) -> Chunk:
    inner = metadata(chunk).replaced(NEWER)
    return replace(chunk, raw=chunk.raw.replaced({**NEWER, 3: (WireType.STRUCT, inner)}))


def test_fields_that_are_not_known_are_dropped_since_they_may_hold_offsets() -> None:
    data = with_footer(parquet(some_table(300)), newer)
    footer = look(spliced(data, id=([3], pa.array([-1])))).footer
    for raw in (footer.raw, footer.row_groups[0].raw):
        assert not raw.fields.keys() & NEWER.keys()
    for chunk in footer.row_groups[0].chunks:
        assert not (chunk.raw.fields.keys() | metadata(chunk).fields.keys()) & NEWER.keys()
        assert chunk.num_values == 300


def test_sizes_of_values_are_kept_where_the_values_are() -> None:
    data = parquet(some_table(300))
    before, after = look(data), look(spliced(data, id=([3], pa.array([-1]))))
    assert before.chunk(0, 1).size_statistics is not None
    assert after.chunk(0, 1).size_statistics == before.chunk(0, 1).size_statistics
    assert after.chunk(0, 0).size_statistics is None


BOUNDED = pa.table(
    {
        "number": pa.array(range(300), pa.int64()),
        "text": [f"{at:03}" for at in range(300)],
        "price": pa.array([Decimal(at) for at in range(300)], pa.decimal128(30, 2)),
        "half": pa.array(np.arange(300, dtype=np.float16)),
    }
)
NEW = {
    "number": pa.array([5]),
    "text": pa.array(["005"]),
    "price": pa.array([Decimal(5)], pa.decimal128(30, 2)),
    "half": pa.array([np.float16(5)]),
}


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (0, b"\1\2", None),
        (0, b"", None),
        (0, None, b""),
        (0, b"\1" * 9, b"\1" * 7),
        (0, None, (-1).to_bytes(8, "little", signed=True)),
        (1, None, b""),
        (1, b"9", None),
        (2, b"", None),
        (2, None, b"\0" * 12),
        (3, b"\0", None),
    ],
)
def test_bounds_that_can_not_be_are_dropped(
    column: int, low: bytes | None, high: bytes | None
) -> None:
    data = parquet(BOUNDED, use_dictionary=False)
    name = BOUNDED.column_names[column]
    good = look(spliced(data, {name: ([250], NEW[name])})).chunk(0, column)
    assert good.column_index is not None
    assert good.statistics is not None
    assert good.statistics.get(5) is not None
    file = look(data)
    index = file.column_index(0, column)
    assert index is not None
    if low is not None:
        index = replace(index, min_values=(index.min_values[0], low, *index.min_values[2:]))
    if high is not None:
        index = replace(index, max_values=(index.max_values[0], high, *index.max_values[2:]))
    encoded = index.encode()
    span = ByteRange(file.footer.start, len(encoded))
    footer = with_chunk(data, column, lambda chunk: replace(chunk, column_index=span))
    bad = data[: span.offset] + encoded + footer[span.offset :]
    found = look(spliced(bad, {name: ([250], NEW[name])})).chunk(0, column)
    assert found.column_index is None
    assert found.statistics is not None
    assert {5, 6}.isdisjoint(found.statistics.fields)
    assert found.statistics.get(3) == 0


def said_and_found(data: bytes, column: int) -> tuple[Counter[Any], Counter[Any]]:
    """A chunk's pages by kind and encoding: as the footer counts them, and as they are."""
    file = look(data)
    stats = file.chunk(0, column).encoding_stats
    assert stats is not None
    pages = [page.header for page in file.pages(0, column)]
    assert {page.encoding for page in pages} <= set(file.chunk(0, column).encodings)
    said = Counter({(PageKind(one.kind), Encoding(one.encoding)): one.count for one in stats})
    return said, Counter((page.kind, Encoding(page.encoding)) for page in pages)


@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("page_index", [True, False])
def test_pages_of_a_chunk_encoded_whole_are_counted_by_what_they_are(
    pages: str, page_index: bool
) -> None:
    table = pa.table({"x": [f"{at % 50}" for at in range(500)], "l": [[at] for at in range(500)]})
    data = parquet(table, data_page_version=pages, write_page_index=page_index)
    everywhere = list(range(500))
    new = {"x": pa.array([f"n{at % 5}" for at in everywhere]), "l": pa.array([[0]] * 500)}
    after = spliced(data, {name: (everywhere, values) for name, values in new.items()})
    for column in range(2):
        said, found = said_and_found(after, column)
        assert said == found


FEW = pa.table({"x": [f"{at % 50}" for at in range(500)]})
GROWN, KNOWN = pa.array(["new"]), pa.array(["7"])


@pytest.mark.parametrize("value", [GROWN, KNOWN])
@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_pages_of_an_edited_chunk_are_counted_by_what_they_are(
    version: str, pages: str, value: pa.Array
) -> None:
    after = spliced(parquet(FEW, version=version, data_page_version=pages), x=([5], value))
    said, found = said_and_found(after, 0)
    assert said == found
    assert len(found) == 2
    assert pq.read_table(opened(after)).column("x")[5].as_py() == value[0].as_py()


def recounted(*counts: tuple[PageKind, Encoding, int]) -> bytes:
    """A file all pages of which refer to a dictionary, counted in another way."""
    stats = tuple(EncodingCount(*count) for count in counts)
    return with_chunk(parquet(FEW), 0, lambda chunk: replace(chunk, encoding_stats=stats))


HEAD = (PageKind.DICTIONARY, Encoding.PLAIN, 1)


@pytest.mark.parametrize(
    "data",
    [
        recounted(HEAD, (PageKind.DATA, Encoding.PLAIN, 5)),
        recounted(HEAD, (PageKind.DATA, Encoding.RLE_DICTIONARY, 4)),
        recounted((PageKind.DATA, Encoding.RLE_DICTIONARY, 5)),
        recounted(
            (PageKind.DICTIONARY, Encoding.PLAIN_DICTIONARY, 1),
            (PageKind.DATA, Encoding.RLE_DICTIONARY, 5),
        ),
    ],
)
def test_counts_that_edited_pages_give_the_lie_are_dropped(data: bytes) -> None:
    after = spliced(data, x=([5], GROWN))
    assert look(after).chunk(0, 0).encoding_stats is None
    assert pq.read_table(opened(after)).column("x")[5].as_py() == "new"


def test_an_edit_of_plain_pages_that_are_said_to_have_a_dictionary_needs_none() -> None:
    mixed = parquet(
        pa.table({"x": [f"text {at}" for at in range(5000)]}),
        dictionary_pagesize_limit=1000,
        row_group_size=5000,
    )
    assert {page.header.encoding for page in look(mixed).pages(0, 0)} == {0, 8}
    stats = (EncodingCount(*HEAD), EncodingCount(PageKind.DATA, Encoding.RLE_DICTIONARY, 50))
    lying = with_chunk(mixed, 0, lambda chunk: replace(chunk, encoding_stats=stats))
    after = spliced(lying, x=([4990], GROWN))
    assert pq.read_table(opened(after)).column("x")[4990].as_py() == "new"
    assert look(after).chunk(0, 0).encoding_stats is None


def test_encodings_name_those_of_new_pages() -> None:
    data = with_chunk(parquet(FEW), 0, lambda chunk: replace(chunk, encodings=(Encoding.PLAIN,)))
    after = look(spliced(data, x=([5], GROWN)))
    assert set(after.chunk(0, 0).encodings) == {
        Encoding.PLAIN,
        Encoding.RLE,
        Encoding.RLE_DICTIONARY,
    }
