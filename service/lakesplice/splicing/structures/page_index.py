"""The page index: where a chunk's pages lie, and what bounds their values.

An offset index is read and written as arrays. Its body is a run of varints, seven for each page:
the header of field 1, the offset, the header of field 2, the size, the header of field 3, the first
row, the end of the structure. The general codec reads an index that is encoded otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from lakesplice.model.arrays import Integers, Mask
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.compact import EMPTY, Field, Struct, WireType
from lakesplice.splicing.thrift.decoding import decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct, put_varint
from lakesplice.splicing.thrift.fields import Fields, binaries, booleans, i32, i64s
from lakesplice.splicing.thrift.varints import (
    decode_varints,
    encode_varints,
    encode_with_ends,
    unzigzag,
    zigzag,
)

__all__ = ["ColumnIndex", "OffsetIndex", "decode_offset_indexes", "encode_offset_indexes"]

_LIST_OF_STRUCTS = 0x19  # field 1, a list
_OFFSET, _SIZE, _ROW, _STOP = 0x16, 0x15, 0x16, 0x00  # the headers in each page's location
_PER_PAGE = 7


@dataclass(frozen=True, eq=False, slots=True)
class OffsetIndex:
    """The data pages of a chunk in order, as arrays of equal length.

    `sizes` include the page headers; `first_rows` count from the row group's first row. `unencoded`
    has the size of each page's byte arrays, if the writer recorded it.
    """

    offsets: Integers
    sizes: Integers
    first_rows: Integers
    unencoded: Integers | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def ends(self) -> Integers:
        """The offsets behind the pages."""
        return self.offsets + self.sizes

    def rows(self, num_rows: int) -> Integers:
        """Return the number of rows of each page of a row group of `num_rows`."""
        return np.diff(self.first_rows, append=num_rows)

    def shifted(self, delta: int) -> OffsetIndex:
        """Return the index of the same pages `delta` bytes further on."""
        return OffsetIndex(self.offsets + delta, self.sizes, self.first_rows, self.unencoded)

    def check(self, start: int, end: int, num_rows: int, file_part: FilePart) -> None:
        """Raise `CorruptFileError` unless the pages fill [start, end) without gaps at or after the
        first page, and their first rows ascend from 0 to below `num_rows`.
        """
        self.check_order(start, end, num_rows, file_part)
        rows = self.first_rows
        if (rows[1:] <= rows[:-1]).any() or (rows[-1:] >= max(num_rows, 1)).any():
            raise file_part.corrupt("its rows do not start at 0 and rise to the last row")
        # Otherwise an entry with a wrong offset could silently point to another page.
        if len(self) and not self.touching(end):
            raise file_part.corrupt(
                "its pages do not follow each other to their chunk's end", end=end
            )

    def check_order(self, start: int, end: int, num_rows: int, file_part: FilePart) -> None:
        """Raise `CorruptFileError` unless the pages are in [start, end) one after the other and
        their first rows don't descend. This suffices for a chunk that is only copied.
        """
        if not len(self):
            if num_rows:
                raise file_part.corrupt("it has no pages, but there are rows", rows=num_rows)
            return
        rows, offsets, ends = self.first_rows, self.offsets, self.ends
        if rows[0] != 0 or (rows[1:] < rows[:-1]).any() or rows[-1] > num_rows:
            raise file_part.corrupt("its rows do not start at 0 and rise to the last row")
        if (self.sizes <= 0).any() or (offsets < start).any() or (offsets > end).any():
            raise file_part.corrupt(
                "a page is empty or lies outside its chunk", start=start, end=end
            )
        if (offsets[1:] < ends[:-1]).any() or ends[-1] > end:
            raise file_part.corrupt(
                "its pages do not follow each other to their chunk's end", end=end
            )

    def touching(self, end: int) -> bool:
        """Return whether there are no gaps between the pages, nor between the last one and
        `end`.
        """
        ends = self.ends
        return not (self.offsets[1:] != ends[:-1]).any() and int(ends[-1]) == end

    @staticmethod
    def decode(buffer: bytes, file_part: FilePart) -> OffsetIndex:
        """Read an OffsetIndex; raises `CorruptFileError`. It is not checked against its chunk."""
        return decode_offset_indexes([buffer], [file_part])[0]

    def encode(self) -> bytes:
        """Return the OffsetIndex's bytes."""
        return encode_offset_indexes([self])[0]


def encode_offset_indexes(indexes: Sequence[OffsetIndex]) -> list[bytes]:
    """Return the bytes of each index. Encoding many at once costs a tenth of encoding them one by
    one.
    """
    body = np.empty((sum(map(len, indexes)), _PER_PAGE), np.uint64)
    body[:, 0], body[:, 2], body[:, 4], body[:, 6] = _OFFSET, _SIZE, _ROW, _STOP
    for column, name in ((1, "offsets"), (3, "sizes"), (5, "first_rows")):
        parts = [getattr(index, name) for index in indexes]
        body[:, column] = zigzag(np.concatenate(parts)) if parts else 0
    encoded, ends = encode_with_ends(body.ravel())
    found, first, start = [], 0, 0
    for index in indexes:
        out = bytearray((_LIST_OF_STRUCTS,))
        _put_list_header(out, len(index), WireType.STRUCT)
        first += len(index)
        end = int(ends[first * _PER_PAGE - 1]) if len(index) else start
        out += encoded[start:end]
        start = end
        if index.unencoded is not None:
            out.append(_LIST_OF_STRUCTS)
            _put_list_header(out, len(index.unencoded), WireType.I64)
            out += encode_varints(zigzag(index.unencoded))
        out.append(_STOP)
        found.append(bytes(out))
    return found


def _put_list_header(out: bytearray, size: int, wire: WireType) -> None:
    out.append(min(size, 15) << 4 | wire)
    if size >= 15:
        put_varint(out, size)


@dataclass(frozen=True, eq=False, slots=True)
class _Locations:
    """The page locations of an offset index, and the position in its bytes after them."""

    offsets: Integers
    sizes: Integers
    first_rows: Integers
    end: int


def decode_offset_indexes(
    buffers: Sequence[bytes], file_parts: Sequence[FilePart]
) -> list[OffsetIndex]:
    """Decode many at once, for a fraction of the cost; see `OffsetIndex.decode`."""
    runs = _decode_runs(buffers)
    return [_decoded(*one) for one in zip(buffers, file_parts, runs, strict=True)]


def _decoded(buffer: bytes, file_part: FilePart, run: _Locations | None) -> OffsetIndex:
    rest = None if run is None else _fields_after(buffer, run.end, file_part)
    if run is None or rest is None or 1 in rest.fields:
        whole, _ = decode_struct(buffer, file_part=file_part)
        return OffsetIndex(*_locations(whole, file_part), _unencoded(whole, file_part))
    return OffsetIndex(run.offsets, run.sizes, run.first_rows, _unencoded(rest, file_part))


def _fields_after(buffer: bytes, at: int, file_part: FilePart) -> Struct:
    """Decode the fields after the page locations."""
    if buffer[at:] == bytes((_STOP,)):
        return EMPTY
    rest, _ = decode_struct(buffer, at, file_part=file_part, last_id=1)
    return rest


def _unencoded(index: Struct, file_part: FilePart) -> Integers | None:
    return _optional(index, 2, "unencoded_byte_array_data_bytes", file_part)


def _decode_runs(buffers: Sequence[bytes]) -> Sequence[_Locations | None]:
    """Decode the page locations in each buffer; None for one that isn't encoded in the usual
    form.
    """
    heads = [_head(buffer) for buffer in buffers]
    usual = [at for at, (size, _) in enumerate(heads) if size]
    found: list[_Locations | None] = [None] * len(buffers)
    if usual:
        runs = _joined_runs([buffers[at] for at in usual], [heads[at] for at in usual])
        if runs is None and len(usual) > 1:  # one of them has another form
            runs = [run for at in usual for run in _decode_runs([buffers[at]])]
        for at, run in zip(usual, runs or [None], strict=True):
            found[at] = run
    return found


def _head(buffer: bytes) -> tuple[int, int]:
    """The number of locations and the position of the first; none if the form is another one."""
    if buffer[:1] != bytes((_LIST_OF_STRUCTS,)) or len(buffer) < 2 or buffer[-1] > 127:
        return 0, 0
    size, at = buffer[1] >> 4, 2
    if buffer[1] & 15 != WireType.STRUCT:
        return 0, 0
    if size == 15:
        size, at = _long_size(buffer, at)
    return (size, at) if size * _PER_PAGE <= len(buffer) - at else (0, 0)


def _joined_runs(
    buffers: Sequence[bytes], heads: Sequence[tuple[int, int]]
) -> Sequence[_Locations | None] | None:
    """The page locations in all buffers; None if one of them has another form.

    All bytes are read as one run of varints, since each buffer's last byte ends a varint.
    """
    bodies = [buffer[start:] for buffer, (_, start) in zip(buffers, heads, strict=True)]
    data = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.flatnonzero(data < 128)
    decoded = decode_varints(data, len(ends))
    sizes = np.array([size for size, _ in heads], np.int64)
    bytes_before = np.cumsum([0, *map(len, bodies)])
    before = np.searchsorted(ends, bytes_before)
    last = before[:-1] + sizes * _PER_PAGE
    if decoded is None or (last > before[1:]).any():
        return None
    values = [decoded[0][a:b] for a, b in zip(before.tolist(), last.tolist(), strict=False)]
    pages = np.concatenate(values).reshape(-1, _PER_PAGE)
    if (pages[:, (0, 2, 4, 6)] != (_OFFSET, _SIZE, _ROW, _STOP)).any():
        return None
    offsets, lengths, rows = (unzigzag(pages[:, column].copy()) for column in (1, 3, 5))
    if (lengths != lengths.astype(np.int32)).any():
        return None
    stops = np.cumsum(sizes)
    # Where in each buffer the locations end.
    behind = ends[last - 1] + 1 - bytes_before[:-1] + [start for _, start in heads]
    each = zip((stops - sizes).tolist(), stops.tolist(), behind.tolist(), strict=True)
    return [_Locations(offsets[a:b], lengths[a:b], rows[a:b], end) for a, b, end in each]


def _long_size(buffer: bytes, at: int) -> tuple[int, int]:
    """The varint at a position, and the position after it. If it can't be a size, a number that is
    too large is returned.
    """
    size = shift = 0
    for byte in buffer[at : at + 5]:
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return size, at
    return len(buffer), at


def _locations(index: Struct, file_part: FilePart) -> tuple[Integers, Integers, Integers]:
    each = [Fields(of, file_part) for of in Fields(index, file_part).structs(1, "page_locations")]
    return (
        np.array([of.i64(1, "offset") for of in each], np.int64),
        np.array([of.i32(2, "compressed_page_size") for of in each], np.int64),
        np.array([of.i64(3, "first_row_index") for of in each], np.int64),
    )


def _optional(index: Struct, field_id: int, name: str, file_part: FilePart) -> Integers | None:
    values = Fields(index, file_part).i64s_or_none(field_id, name)
    return None if values is None else np.array(values, np.int64)


def _counts_or_none(values: Integers | None) -> Integers | None:
    # Old versions of parquet-cpp wrote -1 if they hadn't counted.
    return None if values is None or (values < 0).any() else values


@dataclass(frozen=True, eq=False, slots=True)
class ColumnIndex:
    """Bounds of the values of each page, in the pages' order; a page of nulls has empty bounds.

    Bounds may be truncated: a lower bound downwards, an upper bound upwards. The histograms of all
    pages follow one another.
    """

    null_pages: Mask
    min_values: tuple[bytes, ...]
    max_values: tuple[bytes, ...]
    boundary_order: int
    null_counts: Integers | None = None
    repetition_histograms: Integers | None = None
    definition_histograms: Integers | None = None
    nan_counts: Integers | None = None
    raw: Struct = EMPTY

    def __len__(self) -> int:
        return len(self.null_pages)

    @classmethod
    def decode(cls, buffer: bytes, file_part: FilePart) -> Self:
        """Read a ColumnIndex; raises `CorruptFileError`, also where its lists differ in length."""
        found, _ = decode_struct(buffer, file_part=file_part)
        fields = Fields(found, file_part)
        index = cls(
            null_pages=np.array(fields.booleans(1, "null_pages"), np.bool_),
            min_values=fields.binaries(2, "min_values"),
            max_values=fields.binaries(3, "max_values"),
            boundary_order=fields.i32(4, "boundary_order"),
            null_counts=_counts_or_none(_optional(found, 5, "null_counts", file_part)),
            repetition_histograms=_optional(found, 6, "repetition_level_histograms", file_part),
            definition_histograms=_optional(found, 7, "definition_level_histograms", file_part),
            nan_counts=_optional(found, 8, "nan_counts", file_part),
            raw=found,
        )
        lists = (index.min_values, index.max_values, index.null_counts, index.nan_counts)
        if any(values is not None and len(values) != len(index) for values in lists):
            raise file_part.corrupt("its lists have different lengths", pages=len(index))
        return index

    def encode(self) -> bytes:
        """Return the ColumnIndex's bytes."""
        changes: dict[int, Field | None] = {
            1: booleans(self.null_pages.tolist()),
            2: binaries(self.min_values),
            3: binaries(self.max_values),
            4: i32(self.boundary_order),
            5: _list(self.null_counts),
            6: _list(self.repetition_histograms),
            7: _list(self.definition_histograms),
            8: _list(self.nan_counts),
        }
        return encode_struct(self.raw.replaced(changes))


def _list(values: Integers | None) -> Field | None:
    return None if values is None else i64s(values.tolist())
