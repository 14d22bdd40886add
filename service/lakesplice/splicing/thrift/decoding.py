"""Reads structures in Thrift's compact protocol.

Lengths are not trusted: sizes are checked against the remaining bytes, and nesting and the number
of values are bounded. Any bytes give a value, a `CorruptFileError` or, if they hold more values
than the limits allow, an `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.compact import (
    EMPTY,
    LIST_SIZE_FOLLOWS,
    RUN_MIN,
    Field,
    List,
    Map,
    Struct,
    Value,
    WireType,
)
from lakesplice.splicing.thrift.varints import decode_varints, unzigzag


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest structure that is read.

    Parquet itself nests eight levels. Four million values are the footer of about 60,000 column
    chunks and take a few seconds; no bytes with so many values take more than a gigabyte of memory.
    """

    depth_max: int = 32
    values_max: int = 4_000_000


LIMITS = Limits()
# By the low half of a head byte; both booleans are TRUE, and 0, 14 and 15 are no types.
_WIRES: tuple[WireType | None, ...] = (
    *(None, WireType.TRUE, WireType.TRUE),
    *(WireType(kind) for kind in range(3, 14)),
    *(None, None),
)


def decode_struct(
    buffer: bytes | memoryview,
    offset: int = 0,
    *,
    file_part: FilePart,
    limits: Limits = LIMITS,
    last_id: int = 0,
) -> tuple[Struct, int]:
    """Return the structure that starts at `offset`, and the offset after it.

    `last_id` is the id of the field before `offset`, if the caller has read the first fields
    itself. Raises `CorruptFileError` with the place, the byte and the reason, or
    `UnsupportedError`.
    """
    reader = _Reader(buffer, offset, file_part, limits)
    try:
        found = reader.struct(1, last_id)
    except IndexError:
        raise file_part.corrupt("it ends in the middle of a value", byte=len(buffer)) from None
    return found, reader.at


class _Reader:
    """Reads from `at` on; reading beyond the buffer raises IndexError, which the caller
    translates.
    """

    __slots__ = ("_data", "_file_part", "_left", "_limits", "_size", "at")

    def __init__(
        self, data: bytes | memoryview, offset: int, file_part: FilePart, limits: Limits
    ) -> None:
        self._data, self._size, self.at = data, len(data), offset
        self._file_part, self._limits, self._left = file_part, limits, limits.values_max

    def struct(self, depth: int, last_id: int) -> Struct:
        if depth > self._limits.depth_max:
            raise self._corrupt("structures nest too deep")
        data = self._data
        fields: dict[int, Field] = {}
        while True:
            head = data[self.at]
            self.at += 1
            if not head:
                return Struct(fields) if fields else EMPTY
            kind, step = head & 15, head >> 4
            last_id = last_id + step if step else self._integer(16)
            if last_id in fields:
                raise self._corrupt("a field is there twice", field=last_id)
            self._spend(1)
            wire = _WIRES[kind] or self._wire(kind)
            if kind <= 2:
                fields[last_id] = wire, kind == 1
            # Most fields are integers of one byte; read here, they take a third less.
            elif kind in (5, 6) and (byte := data[self.at]) < 128:
                self.at += 1
                fields[last_id] = wire, byte >> 1 ^ -(byte & 1)
            else:
                fields[last_id] = wire, self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Value:
        if kind == 8:
            return self._take(self._varint())
        if kind in (5, 6):
            return self._integer(32 if kind == 5 else 64)
        if kind == 12:
            return self.struct(depth + 1, 0)
        if kind in (9, 10):
            return self._list(depth + 1)
        return self._rare(kind, depth)

    def _rare(self, kind: int, depth: int) -> Value:
        if kind in (1, 2):  # an element: 2 is false by the specification, 0 by older writers
            return self._take(1) == b"\x01"
        if kind == 3:
            return int.from_bytes(self._take(1), signed=True)
        if kind == 4:
            return self._integer(16)
        if kind == 11:
            return self._map(depth + 1)
        return self._take(8 if kind == 7 else 16)

    def _list(self, depth: int) -> List:
        head = self._data[self.at]
        self.at += 1
        size = self._varint() if head >> 4 == LIST_SIZE_FOLLOWS else head >> 4
        kind = head & 15
        if not size:
            return List(self._wire(kind, empty=True), ())
        wire = self._wire(kind)
        self._open(size, 1, depth)
        values = self._run(kind, size) if size >= RUN_MIN else None
        if values is None:
            values = [self._value(kind, depth) for _ in range(size)]
        return List(wire, tuple(values))

    def _run(self, kind: int, size: int) -> Sequence[Value] | None:
        """Read many values at once; None if they, or their type, must be read one by one."""
        if kind in (1, 2):
            return [byte == 1 for byte in self._take(size)]
        if kind in (5, 6):
            found = decode_varints(np.frombuffer(self._data, np.uint8, offset=self.at), size)
            if found is None or (kind == 5 and int(found[0].max()) >> 32):
                return None
            self.at += found[1]
            numbers: list[Value] = unzigzag(found[0]).tolist()
            return numbers
        length = self._data[self.at] if kind == 8 else 128
        if length > 127 or size * (length + 1) > self._size - self.at:
            return None
        step, start = length + 1, self.at + 1
        end = self.at + size * step
        if bytes(self._data[self.at : end : step]) != bytes((length,)) * size:
            return None
        values = bytes(self._data[start:end])
        self.at = end
        return [values[at : at + length] for at in range(0, len(values) + 1, step)]

    def _map(self, depth: int) -> Map:
        size = self._varint()
        if not size:
            return Map(WireType.STOP, WireType.STOP, ())
        kinds = self._take(1)[0]
        key, value = kinds >> 4, kinds & 15
        wires = self._wire(key), self._wire(value)
        self._open(size, 2, depth)
        pairs = [(self._value(key, depth), self._value(value, depth)) for _ in range(size)]
        return Map(*wires, tuple(pairs))

    def _open(self, size: int, bytes_each: int, depth: int) -> None:
        if depth > self._limits.depth_max:
            raise self._corrupt("lists nest too deep")
        if size * bytes_each > self._size - self.at:
            raise self._corrupt("a list is longer than the bytes that are left", size=size)
        self._spend(size * bytes_each)

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            limit = self._limits.values_max
            raise self._file_part.too_large(
                "it holds more values than are read at once", limit=limit
            )

    def _wire(self, kind: int, *, empty: bool = False) -> WireType:
        wire = WireType.STOP if empty and not kind else _WIRES[kind]
        if wire is None:
            raise self._corrupt("no such type", type=kind)
        return wire

    def _integer(self, bits: int) -> int:
        value = self._varint()
        value = value >> 1 ^ -(value & 1)
        if bits < 64 and not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self._corrupt(f"an integer does not fit into {bits} bits", value=value)
        return value

    def _varint(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        if byte < 128:
            return byte
        value, shift = byte & 127, 7
        while True:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise self._corrupt("an integer has more than ten bytes")
        if value >> 64:
            raise self._corrupt("an integer does not fit into 64 bits")
        return value

    def _take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > self._size:
            raise self._file_part.corrupt(
                "a value is longer than the bytes that are left", byte=start, size=size
            )
        return bytes(self._data[start : self.at])

    def _corrupt(self, reason: str, **facts: object) -> CorruptFileError:
        return self._file_part.corrupt(reason, byte=self.at, **facts)
