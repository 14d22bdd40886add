"""A Parquet file's footer: read, checked, changed and written back.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import struct as packing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.structures.chunks import (
    ByteRange,
    Chunk,
    EncodingCount,
    RowGroup,
    SortingColumn,
)
from lakesplice.splicing.structures.decoding import read_at
from lakesplice.splicing.structures.old_writers import with_true_sizes
from lakesplice.splicing.structures.schema import Leaf, columns_of, leaves_of
from lakesplice.splicing.structures.statistics import Statistics
from lakesplice.splicing.thrift.compact import EMPTY, Field, Struct, WireType
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from lakesplice.splicing.thrift.fields import Fields, binary, i32, i64, structs

__all__ = [
    "MAGIC",
    "ByteRange",
    "Chunk",
    "EncodingCount",
    "Footer",
    "KeyValue",
    "Leaf",
    "RowGroup",
    "SortingColumn",
    "Statistics",
    "read_footer",
]

MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
# Footers of a hundred chunks fit, so one read fetches them.
_TAIL_BYTES = 64 * 1024
# A larger length could be a fault and would exhaust the memory.
_FOOTER_BYTES_MAX = 128 * 1024 * 1024
_NOWHERE = FilePart("", "footer")
# A compaction opens a file three times, so the footers that were read last are kept, if small.
_KEPT: dict[tuple[bytes, int], Footer] = {}
_KEPT_MAX = 32
_KEPT_BYTES_MAX = _TAIL_BYTES
_KNOWN = range(1, 8)  # fields of FileMetaData; later ones concern encryption

KeyValue = tuple[bytes, bytes | None]


@dataclass(frozen=True, kw_only=True)
class Footer:
    """The FileMetaData; `schema` has its elements, depth first, beginning with the root.

    `start` is the footer's offset; the footer is the last part of the file. Change a footer with
    `dataclasses.replace`.
    """

    version: int
    schema: tuple[Struct, ...]
    num_rows: int
    row_groups: tuple[RowGroup, ...]
    key_values: tuple[KeyValue, ...] | None = None
    created_by: str | None = None
    column_orders: tuple[Struct, ...] | None = None
    start: int = 0
    raw: Struct = EMPTY

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The columns, in the order of each row group's chunks."""
        return leaves_of(self.schema, _NOWHERE)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the top-level columns, which may repeat."""
        return columns_of(self.schema)

    @classmethod
    def from_struct(cls, found: Struct, file_part: FilePart, start: int = 0) -> Self:
        """Read the typed fields; raises what `read_footer` does."""
        _refuse_hidden(found, file_part)
        fields = Fields(found, file_part)
        groups = enumerate(fields.structs(4, "row_groups"))
        created_by = fields.binary_or_none(6)
        footer = cls(
            version=fields.i32(1, "version"),
            schema=fields.structs(2, "schema"),
            num_rows=fields.i64(3, "num_rows", 0),
            row_groups=tuple(
                RowGroup.from_struct(group, file_part.within(f"row group {at}"))
                for at, group in groups
            ),
            key_values=_key_values(found, file_part),
            created_by=None if created_by is None else created_by.decode(errors="surrogateescape"),
            column_orders=fields.structs_or_none(7, "column_orders"),
            start=start,
            raw=found,
        )
        footer.__dict__["leaves"] = leaves_of(footer.schema, file_part)
        return footer

    def known(self) -> Self:
        """Return the footer without unknown fields; its row groups are unchanged."""
        return replace(self, raw=self.raw.only(_KNOWN))

    def to_struct(self) -> Struct:
        """Return the FileMetaData, ready to be encoded."""
        created_by = self.created_by
        changes: dict[int, Field | None] = {
            1: i32(self.version),
            2: structs(self.schema),
            3: i64(self.num_rows),
            4: structs(group.to_struct() for group in self.row_groups),
            6: binary(None if created_by is None else created_by.encode(errors="surrogateescape")),
            7: structs(self.column_orders),
        }
        if self.key_values is None:
            changes[5] = None
        elif self.key_values != _key_values(self.raw, _NOWHERE):
            changes[5] = structs(_key_value(key, value) for key, value in self.key_values)
        return self.raw.replaced(changes)

    def encode(self) -> bytes:
        """Return a file's last bytes: the footer, its length, the magic."""
        body = encode_struct(self.to_struct())
        return body + packing.pack("<I", len(body)) + MAGIC


def read_footer(source: pa.NativeFile, name: str) -> Footer:
    """Read and check the footer of the file `name`.

    Offsets and sizes are checked against the file's size, chunks against the schema and each other.
    Known mistakes of old writers are corrected.

    Blocks; reads the file's end only. Raises `CorruptFileError` with file, place and reason,
    `StorageError`, or `UnsupportedError` for a file with encrypted parts, with pages in other
    files, or with a footer beyond what is read at once.
    """
    file_part = FilePart(name, "footer")
    size = source.size()
    tail = read_at(source, min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES), file_part)
    if len(tail) < 12:
        raise file_part.corrupt("it is shorter than any Parquet file", size=size)
    if tail[-4:] == _ENCRYPTED_MAGIC:
        raise _encrypted(file_part)
    if tail[-4:] != MAGIC or read_at(source, 4, 0, file_part) != MAGIC:
        raise file_part.corrupt("its first or last bytes are not PAR1")
    length = packing.unpack("<I", tail[-8:-4])[0]
    start = size - 8 - length
    if start < len(MAGIC):
        raise file_part.corrupt("the footer is longer than the file", length=length, size=size)
    if length > _FOOTER_BYTES_MAX:
        raise file_part.too_large("the footer has more bytes than are read at once", length=length)
    if length + 8 > len(tail):
        tail = read_at(source, length + 8, start, file_part)
    body = tail[-8 - length : -8]
    footer = _KEPT.get((body, start))
    if footer is None:
        footer = _decoded(body, start, file_part)
        if length <= _KEPT_BYTES_MAX:
            if len(_KEPT) >= _KEPT_MAX:
                _KEPT.clear()
            _KEPT[body, start] = footer
    return footer


def _decoded(body: bytes, start: int, file_part: FilePart) -> Footer:
    found, end = decode_struct(body, file_part=file_part)
    footer = Footer.from_struct(found, file_part, start)
    if end != len(body):
        raise file_part.corrupt("there are bytes after the footer", length=len(body), end=end)
    footer = _mended(footer)
    _check(footer, file_part)
    return footer


def _mended(footer: Footer) -> Footer:
    groups = with_true_sizes(footer.row_groups, footer.created_by, footer.start)
    # parquet-rs 0.3 always wrote 0.
    rows = footer.num_rows or sum(group.num_rows for group in groups)
    return replace(footer, row_groups=groups, num_rows=rows)


def _check(footer: Footer, file_part: FilePart) -> None:
    for at, group in enumerate(footer.row_groups):
        here = file_part.within(f"row group {at}")
        if len(group.chunks) != len(footer.leaves):
            raise here.corrupt(
                "it has another number of chunks than the schema has columns",
                chunks=len(group.chunks),
                columns=len(footer.leaves),
            )
        for leaf, chunk in zip(footer.leaves, group.chunks, strict=True):
            _check_chunk(chunk, leaf, group, footer.start, here)
    rows = sum(group.num_rows for group in footer.row_groups)
    if footer.num_rows != rows:
        raise file_part.corrupt(
            "its row groups have another number of rows", rows=footer.num_rows, found=rows
        )
    _check_apart(footer, file_part)


def _check_chunk(
    chunk: Chunk, leaf: Leaf, group: RowGroup, limit: int, file_part: FilePart
) -> None:
    def refuse(reason: str, **facts: object) -> None:
        raise file_part.within(f"column {leaf.column} ({leaf.name})").corrupt(reason, **facts)

    if chunk.physical != leaf.physical:
        refuse("its type is not the schema's", type=chunk.physical, schema=leaf.physical)
    if not leaf.max_repetition and chunk.num_values != group.num_rows:
        refuse("it has another number of values than rows", values=chunk.num_values)
    spans = {
        "pages": ByteRange(chunk.start, chunk.compressed_size) if chunk.compressed_size else None,
        "offset index": chunk.offset_index,
        "column index": chunk.column_index,
        "bloom filter": ByteRange(chunk.bloom_offset, chunk.bloom_length or 0)
        if chunk.bloom_offset
        else None,
    }
    for what, span in spans.items():
        if span is not None and not len(MAGIC) <= span.offset <= span.end <= limit:
            refuse(f"its {what} lie outside the file", offset=span.offset, length=span.length)


def _check_apart(footer: Footer, file_part: FilePart) -> None:
    spans = sorted(
        (chunk.start, chunk.end)
        for group in footer.row_groups
        for chunk in group.chunks
        if chunk.compressed_size
    )
    for before, after in pairwise(spans):
        if after[0] < before[1]:
            raise file_part.corrupt("two chunks overlap", offset=after[0], end=before[1])


def _refuse_hidden(found: Struct, file_part: FilePart) -> None:
    if found.get(8) is not None:
        raise _encrypted(file_part)
    for group in Fields(found, file_part).structs(4, "row_groups"):
        for chunk in Fields(group, file_part).structs(1, "columns"):
            if chunk.get(8) is not None or chunk.get(9) is not None:
                raise _encrypted(file_part)
            if chunk.get(1) is not None:
                raise UnsupportedError(
                    "a Parquet file's pages are in another file; rewrite that one",
                    path=file_part.path,
                    place=file_part.part,
                    reason=str(Reason.EXTERNAL_FILE),
                )


def _encrypted(file_part: FilePart) -> UnsupportedError:
    return UnsupportedError(
        "a Parquet file is encrypted; decrypt it first",
        path=file_part.path,
        place=file_part.part,
        reason=str(Reason.ENCRYPTED),
    )


def _key_values(found: Struct, file_part: FilePart) -> tuple[KeyValue, ...] | None:
    pairs = Fields(found, file_part).structs_or_none(5, "key_value_metadata")
    if pairs is None:
        return None
    each = (Fields(pair, file_part) for pair in pairs)
    return tuple((of.binary(1, "key"), of.binary_or_none(2)) for of in each)


def _key_value(key: bytes, value: bytes | None) -> Struct:
    fields: dict[int, Field] = {1: (WireType.BINARY, key)}
    if value is not None:
        fields[2] = (WireType.BINARY, value)
    return Struct(fields)
