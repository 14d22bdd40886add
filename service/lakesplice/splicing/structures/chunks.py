"""Column chunks and row groups as the footer describes them.

Both have typed fields and keep the structure from which they were read. To change one, use
`dataclasses.replace`: `to_struct` writes the typed fields over the old structure. So fields that
aren't typed here are kept, and an unchanged value gives its old structure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.compact import EMPTY, Field, Struct, WireType
from lakesplice.splicing.thrift.fields import (
    Fields,
    binaries,
    i16,
    i32,
    i32s,
    i64,
    struct,
    structs,
)

# The same bytes were already read without an error.
_ANYWHERE = FilePart("", "")
_I32, _BOOL = WireType.I32, WireType.TRUE
# The fields that parquet.thrift has at present. Newer fields and extensions may hold offsets, which
# change with every splice, or describe values.
_OF_CHUNK, _OF_METADATA, _OF_ROW_GROUP = range(1, 10), range(1, 18), range(1, 8)
# Without the statistics of sizes and of geography.
_OF_ANY_VALUES = range(1, 16)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A range of a file's bytes: [offset, end)."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class EncodingCount:
    """How many pages of one kind and encoding a chunk has."""

    kind: int
    encoding: int
    count: int


@dataclass(frozen=True, slots=True)
class SortingColumn:
    """A column by which a row group is sorted, as its leaf's number."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One column of one row group; sizes include page headers, offsets count from the file's start.

    `num_values` counts levels, nulls included. None means that the field is absent.
    """

    physical: int
    path: tuple[str, ...]
    codec: int
    encodings: tuple[int, ...]
    num_values: int
    uncompressed_size: int
    compressed_size: int
    data_page_offset: int
    dictionary_page_offset: int | None = None
    index_page_offset: int | None = None
    statistics: Struct | None = None
    encoding_stats: tuple[EncodingCount, ...] | None = None
    size_statistics: Struct | None = None
    bloom_offset: int | None = None
    bloom_length: int | None = None
    offset_index: ByteRange | None = None
    column_index: ByteRange | None = None
    file_offset: int = 0
    raw: Struct = EMPTY

    @property
    def start(self) -> int:
        """Where the first page starts, dictionary included.

        Some writers set the dictionary's offset to 0, or to that of the first data page, if there
        is no dictionary. As readers do, we ignore an offset that isn't below the data pages'. A
        chunk that has only a dictionary has no other offset.
        """
        offset, data = self.dictionary_page_offset, self.data_page_offset
        return offset if offset and (offset < data or not data) else data

    @property
    def end(self) -> int:
        """The offset behind its last page."""
        return self.start + self.compressed_size

    @classmethod
    def from_struct(cls, found: Struct, file_part: FilePart) -> Self:
        """Read the typed fields; raises `CorruptFileError`."""
        fields = Fields(found, file_part)
        metadata = fields.struct(3, "meta_data")
        of = Fields(metadata, file_part)
        return cls(
            physical=of.i32(1, "type"),
            path=of.texts(3, "path_in_schema"),
            codec=of.i32(4, "codec"),
            encodings=of.i32s(2, "encodings"),
            num_values=of.i64(5, "num_values", 0),
            uncompressed_size=of.i64(6, "total_uncompressed_size", 0),
            compressed_size=of.i64(7, "total_compressed_size", 0),
            data_page_offset=of.i64(9, "data_page_offset", 0),
            dictionary_page_offset=of.i64_or_none(11, "dictionary_page_offset", 0),
            index_page_offset=of.i64_or_none(10, "index_page_offset"),
            statistics=of.struct_or_none(12),
            encoding_stats=_encoding_stats(metadata, file_part),
            size_statistics=of.struct_or_none(16),
            bloom_offset=of.i64_or_none(14, "bloom_filter_offset", 0),
            bloom_length=of.i32_or_none(15, "bloom_filter_length", 0),
            offset_index=_span(
                fields.i64_or_none(4, "offset_index_offset", 0),
                fields.i32_or_none(5, "offset_index_length", 0),
            ),
            column_index=_span(
                fields.i64_or_none(6, "column_index_offset", 0),
                fields.i32_or_none(7, "column_index_length", 0),
            ),
            file_offset=fields.i64_or_none(2, "file_offset") or 0,
            raw=found,
        )

    def to_struct(self) -> Struct:
        """Return the ColumnChunk, ready to be encoded."""
        return self.raw.replaced(
            {
                2: i64(self.file_offset),
                3: struct(self._metadata()),
            }
            | _span_fields(4, self.offset_index)
            | _span_fields(6, self.column_index)
        )

    def known(self) -> Self:
        """Return the description without unknown fields, for use in another file."""
        return self._with_only(_OF_METADATA)

    def valueless(self) -> Self:
        """Return the description without anything that describes values, for a chunk with new
        values.
        """
        chunk = self._with_only(_OF_ANY_VALUES)
        return replace(chunk, statistics=None, size_statistics=None)

    def bare(self, start: int, head: int) -> Self:
        """Return only what is needed to decode the pages, for a file in which they begin at
        `start`, with a dictionary page of `head` bytes first.
        """
        return replace(
            self,
            data_page_offset=start + head,
            dictionary_page_offset=start if head else None,
            index_page_offset=None,
            statistics=None,
            encoding_stats=None,
            size_statistics=None,
            bloom_offset=None,
            bloom_length=None,
            offset_index=None,
            column_index=None,
            file_offset=0,
            raw=EMPTY,
        )

    def _with_only(self, field_ids: range) -> Self:
        raw, metadata = self.raw.only(_OF_CHUNK), self.raw.get(3)
        if isinstance(metadata, Struct):
            raw = raw.replaced({3: struct(metadata.only(field_ids))})
        return replace(self, raw=raw)

    def _metadata(self) -> Struct:
        before = self.raw.get(3)
        raw = before if isinstance(before, Struct) else EMPTY
        changes: dict[int, Field | None] = {
            1: i32(self.physical),
            2: i32s(self.encodings),
            3: binaries(name.encode() for name in self.path),
            4: i32(self.codec),
            5: i64(self.num_values),
            6: i64(self.uncompressed_size),
            7: i64(self.compressed_size),
            9: i64(self.data_page_offset),
            10: i64(self.index_page_offset),
            11: i64(self.dictionary_page_offset),
            12: struct(self.statistics),
            14: i64(self.bloom_offset),
            15: i32(self.bloom_length),
            16: struct(self.size_statistics),
        }
        if self.encoding_stats is None:
            changes[13] = None
        elif not raw.fields or self.encoding_stats != _encoding_stats(raw, _ANYWHERE):
            changes[13] = structs(
                Struct({1: (_I32, s.kind), 2: (_I32, s.encoding), 3: (_I32, s.count)})
                for s in self.encoding_stats
            )
        return raw.replaced(changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """The chunks of a range of rows, one for each leaf, in their order."""

    chunks: tuple[Chunk, ...]
    num_rows: int
    total_byte_size: int
    sorting_columns: tuple[SortingColumn, ...] | None = None
    file_offset: int | None = None
    total_compressed_size: int | None = None
    ordinal: int | None = None
    raw: Struct = EMPTY

    @classmethod
    def from_struct(cls, found: Struct, file_part: FilePart) -> Self:
        """Read the typed fields, the chunks' included; raises `CorruptFileError`."""
        fields = Fields(found, file_part)
        return cls(
            chunks=tuple(
                Chunk.from_struct(chunk, file_part.within(f"column {at}"))
                for at, chunk in enumerate(fields.structs(1, "columns"))
            ),
            num_rows=fields.i64(3, "num_rows", 0),
            total_byte_size=fields.i64(2, "total_byte_size"),
            sorting_columns=_sorting_columns(found, file_part),
            file_offset=fields.i64_or_none(5, "file_offset"),
            total_compressed_size=fields.i64_or_none(6, "total_compressed_size"),
            ordinal=fields.i16_or_none(7),
            raw=found,
        )

    def known(self) -> Self:
        """Return the row group without unknown fields; its chunks are unchanged."""
        return replace(self, raw=self.raw.only(_OF_ROW_GROUP))

    def to_struct(self) -> Struct:
        """Return the RowGroup, ready to be encoded."""
        changes: dict[int, Field | None] = {
            1: structs(chunk.to_struct() for chunk in self.chunks),
            2: i64(self.total_byte_size),
            3: i64(self.num_rows),
            5: i64(self.file_offset),
            6: i64(self.total_compressed_size),
            7: i16(self.ordinal),
        }
        if self.sorting_columns is None:
            changes[4] = None
        elif self.sorting_columns != _sorting_columns(self.raw, _ANYWHERE):
            changes[4] = structs(
                Struct({1: (_I32, s.column), 2: (_BOOL, s.descending), 3: (_BOOL, s.nulls_first)})
                for s in self.sorting_columns
            )
        return self.raw.replaced(changes)


def _span_fields(first_id: int, span: ByteRange | None) -> dict[int, Field | None]:
    if span is None:
        return {first_id: None, first_id + 1: None}
    return {first_id: i64(span.offset), first_id + 1: i32(span.length)}


def _span(offset: int | None, length: int | None) -> ByteRange | None:
    return ByteRange(offset, length) if offset and length else None


def _encoding_stats(metadata: Struct, file_part: FilePart) -> tuple[EncodingCount, ...] | None:
    found = Fields(metadata, file_part).structs_or_none(13, "encoding_stats")
    if found is None:
        return None
    each = (Fields(stats, file_part) for stats in found)
    return tuple(
        EncodingCount(of.i32(1, "page_type"), of.i32(2, "encoding"), of.i32(3, "count", 0))
        for of in each
    )


def _sorting_columns(group: Struct, file_part: FilePart) -> tuple[SortingColumn, ...] | None:
    found = Fields(group, file_part).structs_or_none(4, "sorting_columns")
    if found is None:
        return None
    each = (Fields(sorting, file_part) for sorting in found)
    return tuple(
        SortingColumn(
            of.i32(1, "column_idx", 0),
            bool(of.boolean_or_none(2)),
            bool(of.boolean_or_none(3)),
        )
        for of in each
    )
