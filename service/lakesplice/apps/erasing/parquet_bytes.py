"""Reads the uncompressed bytes of a Parquet file's pages, also of dictionaries, which may have
values that no row has.

It knows nothing of Lakesplice. From a page's header, a struct in Thrift's compact protocol, it
reads only what it needs to find the page's end. Source: the Parquet format, "Data Pages"; Thrift's
specification of the compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

# Writers' LZ4 has no frames, whatever its name.
_CODECS = {"UNCOMPRESSED": None, "LZ4": "lz4_raw", "LZ4_RAW": "lz4_raw"}
# Numbers of a page header's fields.
_UNPACKED, _PACKED, _V2 = 2, 3, 8
_DEFINITION_BYTES, _REPETITION_BYTES, _IS_PACKED = 5, 6, 7
_STRUCT, _LIST, _SET, _MAP = 12, 9, 10, 11


def page_bytes(data: bytes, file: pq.ParquetFile) -> Iterator[bytes]:
    """Yield the uncompressed bytes of each page of a file, whose whole content is `data`."""
    for group in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(group)
        for number in range(row_group.num_columns):
            yield from _chunk_pages(data, row_group.column(number))


def _chunk_pages(data: bytes, chunk: pq.ColumnChunkMetaData) -> Iterator[bytes]:
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    at = min(starts)
    end = at + chunk.total_compressed_size
    while at < end:
        header, at = _struct(data, at)
        size = int(str(header[_PACKED]))
        yield _unpacked(data[at : at + size], header, chunk.compression)
        at += size


def _unpacked(page: bytes, header: dict[int, object], compression: str) -> bytes:
    name = _CODECS.get(compression, compression.lower())
    levels, is_packed = 0, True
    if isinstance(second := header.get(_V2), dict):  # its levels are never compressed
        levels = int(second.get(_REPETITION_BYTES, 0)) + int(second.get(_DEFINITION_BYTES, 0))
        is_packed = bool(second.get(_IS_PACKED, True))
    size = int(str(header[_UNPACKED])) - levels
    if name is None or not is_packed or not size:
        return page
    unpacked: bytes = pa.Codec(name).decompress(page[levels:], size, asbytes=True)
    return page[:levels] + unpacked


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _struct(data: bytes, at: int) -> tuple[dict[int, object], int]:
    """Read a struct: its fields by number, and the offset of its end."""
    fields: dict[int, object] = {}
    number = 0
    while data[at]:
        kind, step = data[at] & 0x0F, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[object, int]:
    if kind in (1, 2):  # the kind is the value of a boolean
        return kind == 1, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _zigzag(data, at)
    if kind == 7:
        return data[at : at + 8], at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind == _STRUCT:
        return _struct(data, at)
    if kind in (_LIST, _SET):
        return _list(data, at)
    raise ValueError(f"kind {kind} of Thrift's compact protocol in a page header")


def _list(data: bytes, at: int) -> tuple[object, int]:
    size, kind = data[at] >> 4, data[at] & 0x0F
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind)
        values.append(value)
    return values, at
