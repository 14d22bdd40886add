"""Decodes the headers of many pages at once.

Nearly all headers have one form: a data page of the format's first version without statistics.
Decoding these together costs a tenth of decoding them one by one. The general codec reads the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Bytes, Integers, Mask
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.page_headers import PageHeader

NO_CHECKSUM = -1
_MANY = 5  # fewer are faster one by one
_DATA = 0  # the kind of a data page of the first version
# The headers of fields: an i32 in the field behind the last one; the structure of a data page,
# behind the checksum or without it.
_NUMBER, _STRUCT, _STRUCT_NO_CHECKSUM = 0x15, 0x1C, 0x2C
_KIND = bytes((_NUMBER, _DATA))
# Levels in RLE, and the ends of both structures.
_END = bytes((_NUMBER, 6, _NUMBER, 6, 0, 0))


@dataclass(frozen=True, eq=False, slots=True)
class HeaderArrays:
    """The headers of pages as parallel arrays. A value of `crcs` may be NO_CHECKSUM; `values`
    counts levels; `bodies` are the offsets behind the headers.
    """

    kinds: Integers
    uncompressed: Integers
    compressed: Integers
    crcs: Integers
    values: Integers
    encodings: Integers
    bodies: Integers


def joined_headers(parts: Sequence[HeaderArrays]) -> HeaderArrays:
    """Return the headers of all parts, at least one, in their order."""
    if len(parts) == 1:
        return parts[0]
    names = (field.name for field in fields(HeaderArrays))
    return HeaderArrays(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )


def decode_headers(
    data: pa.Buffer, starts: Integers, ends: Integers, file_part: Callable[[int], FilePart]
) -> HeaderArrays:
    """Return the headers of pages at [start, end) of `data`; raises `CorruptFileError`.

    `file_part` names a page by its number. A body's size may exceed its page; this isn't checked.
    """
    if len(starts) >= _MANY:
        headers, usual = _usual(data, starts)
    else:
        headers = HeaderArrays(*(np.zeros(len(starts), np.int64) for _ in fields(HeaderArrays)))
        usual = np.zeros(len(starts), np.bool_)
    view = memoryview(data).cast("B")
    for at in np.flatnonzero(~usual).tolist():
        start = int(starts[at])
        header, body = PageHeader.decode(view[start : int(ends[at])], 0, file_part(at))
        headers.kinds[at] = header.kind
        headers.uncompressed[at] = header.uncompressed_size
        headers.compressed[at] = header.compressed_size
        headers.crcs[at] = NO_CHECKSUM if header.crc is None else header.crc
        headers.values[at] = header.num_values
        headers.encodings[at] = header.encoding
        headers.bodies[at] = start + body
    return headers


def may_have_checksum(data: pa.Buffer, starts: Integers) -> Mask:
    """Return which pages may have a checksum; in a header it follows three numbers."""
    whole = np.frombuffer(data, np.uint8)
    at, usual = starts, np.ones(len(starts), np.bool_)
    for _ in range(3):  # the kind and both sizes
        usual &= whole.take(at, mode="clip") == _NUMBER
        at = _numbers(whole, at + 1)[1]
    may: Mask = ~usual | (whole.take(at, mode="clip") == _NUMBER)
    return may


def _usual(data: pa.Buffer, starts: Integers) -> tuple[HeaderArrays, Mask]:
    """The headers of pages, and a mask of those in the usual form; only these headers are
    correct.
    """
    whole = np.frombuffer(data, np.uint8)
    at, usual = _expected(whole, starts, _KIND)
    uncompressed, at, usual = _number(whole, at, usual)
    compressed, at, usual = _number(whole, at, usual)
    checked = whole.take(at, mode="clip") == _NUMBER
    crcs, behind, fits = _number(whole, at, checked)
    crcs, at = np.where(checked, crcs & 0xFFFFFFFF, NO_CHECKSUM), np.where(checked, behind, at)
    struct = whole.take(at, mode="clip")
    usual &= struct == np.where(checked, _STRUCT, _STRUCT_NO_CHECKSUM)
    values, at, usual = _number(whole, at + 1, usual & (fits | ~checked))
    encodings, at, usual = _number(whole, at, usual)
    at, ends = _expected(whole, at, _END)
    kinds = np.full(len(starts), _DATA, np.int64)
    headers = HeaderArrays(
        kinds=kinds,
        uncompressed=uncompressed,
        compressed=compressed,
        crcs=crcs,
        values=values,
        encodings=encodings,
        bodies=at,
    )
    return headers, usual & ends & (np.minimum(np.minimum(uncompressed, compressed), values) >= 0)


def _expected(data: Bytes, at: Integers, expected: bytes) -> tuple[Integers, Mask]:
    same = np.ones(len(at), np.bool_)
    for offset, byte in enumerate(expected):
        same &= data.take(at + offset, mode="clip") == byte
    return at + len(expected), same


def _number(data: Bytes, at: Integers, usual: Mask) -> tuple[Integers, Integers, Mask]:
    """The i32 field at each offset, the offset behind it, and whether it is such a field."""
    is_number = data.take(at, mode="clip") == _NUMBER
    values, behind = _numbers(data, at + 1)
    return values, behind, usual & is_number & (values == values.astype(np.int32))


def _numbers(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The i32 at each offset, and the offset behind it. A number that runs off the end fails a
    later check.
    """
    value = np.zeros(len(at), np.int64)
    open_, shift = np.ones(len(at), np.bool_), 0
    while open_.any() and shift < 35:
        byte = data.take(at, mode="clip").astype(np.int64)
        value |= np.where(open_, (byte & 127) << shift, 0)
        at = at + open_
        open_ = open_ & (byte > 127)
        shift += 7
    return value >> 1 ^ -(value & 1), at
