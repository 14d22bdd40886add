"""Reads and writes page headers, and finds them one after the other if there is no index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.chunks import Chunk
from lakesplice.splicing.structures.decoding import read_at
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.thrift.compact import EMPTY, Field, Struct
from lakesplice.splicing.thrift.decoding import Limits, decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from lakesplice.splicing.thrift.fields import Fields, boolean, i32, struct

# A header without statistics has about 25 bytes; if long statistics follow, more is read.
_WINDOW_BYTES = 16 * 1024
_HEADER_BYTES_MAX = 16 * 1024 * 1024
_LIMITS = Limits(values_max=10_000)
# The field of PageHeader that describes a page of each kind.
_DETAILS_FIELD = {PageKind.DATA: 5, PageKind.DICTIONARY: 7, PageKind.DATA_V2: 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHeader:
    """The header before a page's bytes; sizes exclude it, and `crc` covers the bytes after it.

    `num_values` counts levels, nulls included, or the entries of a dictionary. Fields that a kind
    of page doesn't have are None: level encodings belong to DATA; rows, nulls, the levels' bytes
    and `is_compressed` to DATA_V2; `is_sorted` to DICTIONARY.
    """

    kind: PageKind
    uncompressed_size: int
    compressed_size: int
    num_values: int
    encoding: int
    crc: int | None = None
    definition_encoding: int | None = None
    repetition_encoding: int | None = None
    rows: int | None = None
    nulls: int | None = None
    definition_bytes: int | None = None
    repetition_bytes: int | None = None
    is_compressed: bool | None = None
    is_sorted: bool | None = None
    statistics: Struct | None = None
    raw: Struct = EMPTY

    @property
    def is_data(self) -> bool:
        """Whether the page holds values of rows."""
        return self.kind in (PageKind.DATA, PageKind.DATA_V2)

    @classmethod
    def decode(
        cls, buffer: bytes | memoryview, offset: int, file_part: FilePart
    ) -> tuple[Self, int]:
        """Return the header at `offset` and the offset after it; raises `CorruptFileError`."""
        found, end = decode_struct(buffer, offset, file_part=file_part, limits=_LIMITS)
        fields = Fields(found, file_part)
        kind = fields.i32(1, "type")
        if not 0 <= kind <= PageKind.DATA_V2:
            raise file_part.corrupt("no such kind of page", type=kind)
        crc = fields.i32_or_none(4, "crc")
        header = cls(
            kind=PageKind(kind),
            uncompressed_size=fields.i32(2, "uncompressed_page_size", 0),
            compressed_size=fields.i32(3, "compressed_page_size", 0),
            crc=None if crc is None else crc & 0xFFFFFFFF,
            raw=found,
            **_details(PageKind(kind), fields, file_part),
        )
        levels = (header.definition_bytes or 0) + (header.repetition_bytes or 0)
        if levels > min(header.compressed_size, header.uncompressed_size):
            raise file_part.corrupt("a page's levels are longer than the page", levels=levels)
        return header, end

    def encode(self) -> bytes:
        """Return the header's bytes."""
        crc = self.crc if self.crc is None or self.crc < 1 << 31 else self.crc - (1 << 32)
        changes: dict[int, Field | None] = {
            1: i32(self.kind),
            2: i32(self.uncompressed_size),
            3: i32(self.compressed_size),
            4: i32(crc),
        }
        for kind, field_id in _DETAILS_FIELD.items():
            before = self.raw.get(field_id)
            details = self._details(before if isinstance(before, Struct) else EMPTY)
            changes[field_id] = struct(details) if kind == self.kind else None
        return encode_struct(self.raw.replaced(changes))

    def _details(self, raw: Struct) -> Struct:
        shared: dict[int, Field | None] = {1: i32(self.num_values)}
        if self.kind is PageKind.DICTIONARY:
            return raw.replaced(shared | {2: i32(self.encoding), 3: boolean(self.is_sorted)})
        if self.kind is PageKind.DATA:
            return raw.replaced(
                shared
                | {
                    2: i32(self.encoding),
                    3: i32(self.definition_encoding),
                    4: i32(self.repetition_encoding),
                    5: struct(self.statistics),
                }
            )
        return raw.replaced(
            shared
            | {
                2: i32(self.nulls),
                3: i32(self.rows),
                4: i32(self.encoding),
                5: i32(self.definition_bytes),
                6: i32(self.repetition_bytes),
                7: boolean(self.is_compressed),
                8: struct(self.statistics),
            }
        )


def _details(kind: PageKind, fields: Fields, file_part: FilePart) -> dict[str, Any]:
    if kind is PageKind.INDEX:
        return {"num_values": 0, "encoding": int(Encoding.PLAIN)}
    of = Fields(fields.struct(_DETAILS_FIELD[kind], f"the header of {kind.name}"), file_part)
    found: dict[str, Any] = {"num_values": of.i32(1, "num_values", 0)}
    if kind is PageKind.DICTIONARY:
        found |= {"encoding": of.i32(2, "encoding")}
        return found | {"is_sorted": of.boolean_or_none(3)}
    if kind is PageKind.DATA:
        return found | {
            "encoding": of.i32(2, "encoding"),
            "definition_encoding": of.i32(3, "definition_level_encoding"),
            "repetition_encoding": of.i32(4, "repetition_level_encoding"),
            "statistics": of.struct_or_none(5),
        }
    return found | {
        "nulls": of.i32(2, "num_nulls", 0),
        "rows": of.i32(3, "num_rows", 0),
        "encoding": of.i32(4, "encoding"),
        "definition_bytes": of.i32(5, "definition_levels_byte_length", 0),
        "repetition_bytes": of.i32(6, "repetition_levels_byte_length", 0),
        "is_compressed": of.boolean_or_none(7),
        "statistics": of.struct_or_none(8),
    }


@dataclass(frozen=True, slots=True)
class Page:
    """A page in a file: the header at `offset`, followed by the page's bytes."""

    offset: int
    header_size: int
    header: PageHeader

    @property
    def body_offset(self) -> int:
        """The offset of its bytes."""
        return self.offset + self.header_size

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.body_offset + self.header.compressed_size


class _Window:
    """A cache of bytes around the last header, so that small pages don't each need a read."""

    def __init__(self, source: pa.NativeFile, limit: int) -> None:
        self._source, self._limit = source, limit
        self._start, self._data = 0, b""

    def page(self, offset: int, file_part: FilePart) -> Page:
        at = offset - self._start
        if 0 <= at < len(self._data):
            try:
                return self._decode(at, file_part)
            except CorruptFileError:
                pass  # perhaps only the window's end cuts it off
        size = _WINDOW_BYTES
        while True:
            self._start = offset
            self._data = read_at(self._source, min(size, self._limit - offset), offset, file_part)
            try:
                return self._decode(0, file_part)
            except CorruptFileError:
                if size >= min(self._limit - offset, _HEADER_BYTES_MAX):
                    raise
            size *= 16

    def _decode(self, at: int, file_part: FilePart) -> Page:
        header, end = PageHeader.decode(self._data, at, file_part)
        page = Page(self._start + at, end - at, header)
        if page.end > self._limit:
            raise file_part.corrupt("a page ends after its chunk", end=page.end, limit=self._limit)
        return page


def read_page(source: pa.NativeFile, offset: int, limit: int, file_part: FilePart) -> Page:
    """Return the page whose header is at `offset`; `limit` is where its chunk ends.

    Blocks; reads only the header, first 16 KiB, then more if needed. Raises `CorruptFileError`.
    """
    return _Window(source, limit).page(offset, file_part.within(f"the page at {offset}"))


def walk(source: pa.NativeFile, chunk: Chunk, file_part: FilePart) -> Iterator[Page]:
    """Yield all pages of a chunk in their order, the dictionary first.

    Blocks; reads only headers. Raises `CorruptFileError` if a page ends after its chunk, if a
    dictionary is not the first page, or if the number of values differs from the chunk's.
    """
    window, offset, values = _Window(source, chunk.end), chunk.start, 0
    while offset < chunk.end:
        here = file_part.within(f"the page at {offset}")
        page = window.page(offset, here)
        if page.header.kind is PageKind.DICTIONARY and offset != chunk.start:
            raise here.corrupt("a dictionary page is not its chunk's first page")
        values += page.header.num_values if page.header.is_data else 0
        yield page
        offset = page.end
    if values != chunk.num_values:
        raise file_part.corrupt(
            "its pages have another number of values", values=chunk.num_values, found=values
        )
