"""Checks a Parquet file's metadata: offsets, sizes, encodings, counts and bounds.

Readers prune by these, so one false number gives a wrong result somewhere. It uses none of the
product's code. Missing metadata isn't an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import copysign
from pathlib import Path

import pyarrow as pa
import xxhash

from tests.support.parquet_anatomy import (
    BYTE_ARRAY,
    DATA,
    DATA_V2,
    DICTIONARY,
    WITH_DICTIONARY,
    Anatomy,
    Column,
    Content,
    Fields,
    Page,
    contents,
)

_ASCENDING, _DESCENDING = 1, 2
_LOOKED_UP = 40  # values of a chunk that its bloom filter is asked for


@dataclass(frozen=True)
class Untruth:
    """A rule that a file breaks, and where; `seen` is what was found instead.

    `of_values` tells those that copied pages may have brought along.
    """

    row_group: int
    column: str
    rule: str
    of_values: bool = True
    seen: str = field(default="", compare=False)


def untruths(path: Path) -> set[Untruth]:
    """All that the file says and isn't so."""
    return untruths_of(path.read_bytes())


def untruths_of(data: bytes) -> set[Untruth]:
    """`untruths` of a file in memory."""
    file = Anatomy(data)
    found = set(_of_file(file))
    for number, group in enumerate(file.groups):
        found |= {
            Untruth(number, "", rule, of_values=False, seen=seen)
            for rule, seen in _of_group(file, number, group)
        }
        values = file.values(number)
        for at, column in enumerate(file.columns):
            chunk = _Chunk(file, number, at, values[column.top] if column.flat else None)
            for rule, seen in chunk.structure():
                found.add(Untruth(number, column.name, rule, of_values=False, seen=seen))
            for rule, seen in chunk.said():
                found.add(Untruth(number, column.name, rule, seen=seen))
    return found


Broken = Iterator[tuple[str, str]]


def _unless(holds: object, rule: str, *seen: object) -> Broken:
    if not holds:
        yield rule, " ".join(map(str, seen))


def _of_file(file: Anatomy) -> Iterator[Untruth]:
    def told() -> Broken:
        footer = file.footer
        rows = sum(group[3] for group in file.groups)
        yield from _unless(footer[3] == rows, "the file's rows", footer[3], rows)
        orders = footer.get(7)
        yield from _unless(orders is None or len(orders) == len(file.columns), "column orders")
        spans = sorted(_spans(file))
        yield from _unless(spans[0][0] >= 4 and spans[-1][1] <= file.start, "inside the file")
        apart = all(before[1] <= after[0] for before, after in pairwise(spans))
        yield from _unless(apart, "nothing overlaps", spans)

    if file.groups:
        for rule, seen in told():
            yield Untruth(-1, "", rule, of_values=False, seen=seen)


def _spans(file: Anatomy) -> Iterator[tuple[int, int]]:
    """All that lies between magic and footer."""
    for number, group in enumerate(file.groups):
        for at, chunk in enumerate(group[1]):
            yield from ((page.offset, page.end) for page in file.pages(number, at))
            metadata = chunk[3]
            for offset, length in ((4, 5), (6, 7)):
                if chunk.get(offset):
                    yield chunk[offset], chunk[offset] + chunk[length]
            if metadata.get(14) and metadata.get(15):
                yield metadata[14], metadata[14] + metadata[15]


def _of_group(file: Anatomy, number: int, group: Fields) -> Broken:
    chunks = [chunk[3] for chunk in group[1]]
    size, packed = sum(chunk[6] for chunk in chunks), sum(chunk[7] for chunk in chunks)
    yield from _unless(group[2] == size, "total_byte_size", group[2], size)
    yield from _unless(group.get(6, packed) == packed, "total_compressed_size", group.get(6))
    yield from _unless(group.get(7, number) == number, "ordinal", group.get(7))
    first = file.pages(number, 0)[0].offset if group[3] else group.get(5)
    yield from _unless(group.get(5, first) == first, "file_offset", group.get(5), first)
    for order in group.get(4, ())[:1]:
        column = file.columns[order[1]]
        if column.flat:
            values = file.values(number)[column.top]
            wanted = values.drop_null().to_pylist()
            yield from _unless(
                wanted == sorted(wanted, reverse=order[2]), "sorting_columns", column.name
            )


class _Chunk:
    """A chunk, what it says, and its values if it is flat."""

    def __init__(self, file: Anatomy, group: int, at: int, values: pa.Array | None) -> None:
        self._file, self._column, self._values = file, file.columns[at], values
        self._chunk, self._rows = file.chunk(group, at), file.groups[group][3]
        self._metadata: Fields = self._chunk[3]
        self._pages = file.pages(group, at)
        self._data = [page for page in self._pages if page.is_data]

    def structure(self) -> Broken:
        """Where its pages lie, and how large they are."""
        metadata, pages, data = self._metadata, self._pages, self._data
        yield from _unless(metadata[7] == sum(p.end - p.offset for p in pages), "compressed size")
        size = sum(page.uncompressed for page in pages)
        yield from _unless(metadata[6] == size, "uncompressed size", metadata[6], size)
        yield from _unless(metadata[5] == sum(p.values for p in data), "num_values", metadata[5])
        yield from _unless(not data or metadata[9] == data[0].offset, "data_page_offset")
        head = pages[0].offset if pages and pages[0].kind == DICTIONARY else None
        yield from _unless(metadata.get(11) == head, "dictionary_page_offset", metadata.get(11))
        yield from _unless(10 not in metadata, "index_page_offset")
        yield from _unless(self._chunk.get(2, 0) == 0, "file_offset of a chunk")
        yield from _unless(
            all(page.kind != DICTIONARY for page in pages[1:]), "one dictionary, first"
        )
        flags = [page.encoding in WITH_DICTIONARY for page in data]
        yield from _unless(flags == sorted(flags, reverse=True), "a dictionary after none", flags)
        yield from _unless(not any(flags) or head is not None, "a dictionary that isn't there")
        yield from self._places()

    def _encodings(self) -> Broken:
        used = {page.encoding for page in self._pages}
        said = self._metadata[2]
        yield from _unless(used <= set(said), "encodings", used, said)
        if 13 in self._metadata:
            said = [(count[1], count[2]) for count in self._metadata[13] for _ in range(count[3])]
            found = [(page.kind, page.encoding) for page in self._pages]
            if all(kind != DATA_V2 for kind, _ in said):
                # Some writers call second-version pages plain data pages.
                found = [(DATA if kind == DATA_V2 else kind, used) for kind, used in found]
            yield from _unless(
                Counter(said) == Counter(found), "encoding_stats", Counter(said), Counter(found)
            )

    def _places(self) -> Broken:
        if 4 not in self._chunk:
            yield from _unless(6 not in self._chunk, "a column index without an offset index")
            return
        index, end = self._file.structure(self._chunk[4])
        yield from _unless(end - self._chunk[4] == self._chunk[5], "offset index length")
        places = [(place[1], place[2]) for place in index[1]]
        meant = [(page.offset, page.end - page.offset) for page in self._data]
        yield from _unless(places == meant, "offset index")
        first_rows = [place[3] for place in index[1]]
        rows = [_rows(page, self._column) for page in self._data]
        known = [count for count in rows if count is not None]
        if len(known) == len(rows):
            starts = [0, *accumulate(known)][: len(rows)]
            yield from _unless(first_rows == starts, "first_row_index", first_rows, starts)

    def said(self) -> Broken:
        """What it says of its encodings and values."""
        yield from self._encodings()
        column, values = self._column, self._values
        if values is None:
            return
        rows = [page.values for page in self._data]
        pages = contents(column, values, rows)
        whole = Content.of(column, values)
        yield from _of_statistics(column, self._metadata.get(12, {}), whole, "chunk")
        yield from self._sizes(whole, pages)
        for page, content in zip(self._data, pages, strict=True):
            statistics = page.details.get(8 if page.kind == DATA_V2 else 5, {})
            yield from _of_statistics(column, statistics, content, "page header")
            if page.kind == DATA_V2:
                yield from _unless(page.details[2] == content.nulls, "page header: num_nulls")
        if 6 in self._chunk:
            index, end = self._file.structure(self._chunk[6])
            yield from _unless(end - self._chunk[6] == self._chunk[7], "column index length")
            yield from _of_column_index(column, index, pages)
        if self._metadata.get(14):
            yield from self._bloom(values)

    def _sizes(self, whole: Content, pages: Sequence[Content]) -> Broken:
        sizes = self._metadata.get(16, {})
        if self._column.physical == BYTE_ARRAY and not self._column.decimal:
            yield from _unless(
                sizes.get(1, whole.unencoded) == whole.unencoded, "size statistics: bytes"
            )
            index = self._file.structure(self._chunk[4])[0] if 4 in self._chunk else {}
            meant = [page.unencoded for page in pages]
            yield from _unless(index.get(2, meant) == meant, "offset index: bytes")
        levels = [whole.nulls, whole.count - whole.nulls]
        if self._column.nullable and sizes.get(3):
            yield from _unless(sizes[3] == levels, "size statistics: levels", sizes[3], levels)

    def _bloom(self, values: pa.Array) -> Broken:
        at = self._metadata[14]
        header, start = self._file.structure(at)
        length = start - at + header[1]
        yield from _unless(self._metadata.get(15, length) == length, "bloom filter length")
        bits = self._file.data[start : start + header[1]]
        some = values.drop_null().unique()
        step = max(1, len(some) // _LOOKED_UP)
        lacking = [
            value
            for value in (some[row].as_py() for row in range(0, len(some), step))
            if not _may_hold(bits, self._column.plain(value))
        ]
        yield from _unless(not lacking, "bloom filter", lacking[:3])


def _rows(page: Page, column: Column) -> int | None:
    if column.flat:
        return page.values
    return int(page.details[3]) if page.kind == DATA_V2 else None


def _of_statistics(column: Column, said: Fields, content: Content, where: str) -> Broken:
    yield from _unless(
        said.get(3, content.nulls) == content.nulls, f"{where}: null_count", said.get(3)
    )
    yield from _unless(4 not in said, f"{where}: distinct_count, which nobody recounts")
    yield from _unless(said.get(9, content.nans) == content.nans, f"{where}: nan_count")
    if not column.ordered:
        return
    low, high = said.get(6), said.get(5)
    yield from _of_bounds(column, low, high, content, where)
    if low is not None and content.low is not None and said.get(8):
        exact = column.bound(low) == content.low
        yield from _unless(exact, f"{where}: min is exact", low, content.low)
    if high is not None and content.high is not None and said.get(7):
        exact = column.bound(high) == content.high
        yield from _unless(exact, f"{where}: max is exact", high, content.high)
    if column.number is not None and column.number.kind == "i":
        # The first version's bounds, in the one order that all their writers meant.
        yield from _of_bounds(column, said.get(2), said.get(1), content, f"{where}, old")


def _of_bounds(
    column: Column, low: bytes | None, high: bytes | None, content: Content, where: str
) -> Broken:
    for name, bound, side in (("min", low, -1), ("max", high, 1)):
        if bound is None:
            continue
        if not column.width_fits(bound):
            yield f"{where}: width of {name}", str(bound)
            continue
        value = column.bound(bound)
        if column.floating:
            yield from _unless(value == value, f"{where}: {name} is NaN")
            signed = value != 0 or copysign(1, value) == side
            yield from _unless(signed, f"{where}: sign of a zero as {name}")
        real = content.low if side < 0 else content.high
        if real is not None:
            held = value <= real if side < 0 else value >= real
            yield from _unless(held, f"{where}: {name}", value, real)


def _of_column_index(column: Column, index: Fields, pages: Sequence[Content]) -> Broken:
    null_pages, lows, highs = index[1], index[2], index[3]
    nulls, nans = index.get(5), index.get(8)
    lists = [null_pages, lows, highs, *(some for some in (nulls, nans) if some is not None)]
    if any(len(one) != len(pages) for one in lists):
        yield "column index: pages", str([len(one) for one in lists])
        return
    for at, page in enumerate(pages):
        empty = page.nulls == page.count
        yield from _unless(null_pages[at] == empty, "column index: null_pages", at)
        if nulls is not None and nulls[at] >= 0:
            yield from _unless(nulls[at] == page.nulls, "column index: null_counts", at, nulls[at])
        if nans is not None:
            yield from _unless(nans[at] == page.nans, "column index: nan_counts", at)
        if empty:
            yield from _unless(not lows[at] and not highs[at], "column index: bounds of no value")
        elif column.ordered:
            yield from _of_bounds(column, lows[at], highs[at], page, "column index")
            yield from _unless(page.low is not None, "column index: a page of NaN alone")
    if column.nullable and 7 in index:
        meant = [count for page in pages for count in (page.nulls, page.count - page.nulls)]
        yield from _unless(index[7] == meant, "column index: levels")
    filled = [at for at, page in enumerate(pages) if page.nulls < page.count]
    if column.ordered:
        yield from _of_order(column, index[4], [lows[at] for at in filled], "min")
        yield from _of_order(column, index[4], [highs[at] for at in filled], "max")


def _of_order(column: Column, order: int, bounds: Sequence[bytes], name: str) -> Broken:
    if order not in (_ASCENDING, _DESCENDING) or not all(map(column.width_fits, bounds)):
        return
    found = [column.bound(bound) for bound in bounds]
    yield from _unless(
        found == sorted(found, reverse=order == _DESCENDING), f"column index: order of {name}"
    )


_SALT = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip


def _may_hold(bits: bytes, value: bytes) -> bool:
    """Whether a split-block bloom filter holds a value, perhaps."""
    found = xxhash.xxh64_intdigest(value)
    block = 32 * (((found >> 32) * (len(bits) // 32)) >> 32)
    for at, salt in enumerate(_SALT):
        word = int.from_bytes(bits[block + 4 * at : block + 4 * at + 4], "little")
        if not word >> (((found & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27) & 1:
            return False
    return True
