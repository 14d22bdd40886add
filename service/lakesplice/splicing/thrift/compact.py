"""Thrift's compact protocol, lossless: what isn't known is written back as it was read.

No length that is read is trusted: sizes are checked against the bytes that are left, nesting and
the number of values are bounded. Any bytes give a value, a `CorruptFileError`, or, where they hold
more values than the limits allow, an `UnsupportedError`.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias, TypeGuard

import numpy as np

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.varints import decode_varints, encode_varints, unzigzag, zigzag


class Wire(IntEnum):
    """The types of the protocol; a boolean is TRUE with its value beside it."""

    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


Value: TypeAlias = "bool | int | bytes | List | Map | Struct"
Field: TypeAlias = tuple[Wire, Value]


@dataclass(frozen=True, slots=True)
class List:
    """A list, or a set, of values of one type."""

    wire: Wire
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """Pairs in the order they were read."""

    key_wire: Wire
    value_wire: Wire
    pairs: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by their ids, in the order they were read; a double or a UUID is its bytes."""

    fields: Mapping[int, Field] = field(default_factory=dict)

    def get(self, field_id: int) -> Value | None:
        """Return a field's value whatever its type, or None."""
        found = self.fields.get(field_id)
        return None if found is None else found[1]

    def replaced(self, changes: Mapping[int, Field | None]) -> Struct:
        """Return the struct with some fields set, or left out where None.

        Fields keep their order; new ones are put in order of their ids.
        """
        fields = dict(self.fields)
        added = False
        for field_id, change in changes.items():
            if change is None:
                fields.pop(field_id, None)
            else:
                added = added or field_id not in fields
                fields[field_id] = change
        return Struct(dict(sorted(fields.items())) if added else fields)

    def only(self, field_ids: Collection[int]) -> Struct:
        """Return the struct without fields of other ids."""
        if all(field_id in field_ids for field_id in self.fields):
            return self
        return Struct({at: found for at, found in self.fields.items() if at in field_ids})


EMPTY = Struct()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one structure may hold at most.

    Parquet itself nests eight levels. Four million values are the footer of some 60,000 column
    chunks and a few seconds of work; no bytes of that number take more than a gigabyte.
    """

    depth_max: int = 32
    values_max: int = 4_000_000


LIMITS = Limits()
_BITS = {Wire.I16: 16, Wire.I32: 32, Wire.I64: 64}
_WIRES = tuple(Wire)
_LENGTHS = tuple(bytes((length,)) for length in range(128))  # as varints
_LIST_SIZE_FOLLOWS = 15
_RUN_MIN = 32  # from here on a list of numbers, flags or equally long bytes is read at once


def decode_struct(
    buffer: bytes | memoryview,
    offset: int = 0,
    *,
    file_part: FilePart,
    limits: Limits = LIMITS,
    last_id: int = 0,
) -> tuple[Struct, int]:
    """Return the structure that starts at `offset`, and the offset behind it.

    `last_id` is the field before `offset` where a caller has read the first ones itself. Raises
    `CorruptFileError` with the place, the byte and the reason, or `UnsupportedError`.
    """
    reader = _Reader(buffer, offset, file_part, limits)
    try:
        found = reader.struct(1, last_id)
    except IndexError:
        raise file_part.corrupt("it ends in the middle of a value", byte=len(buffer)) from None
    return found, reader.at


class _Reader:
    """Reads ahead from `at`; running off the buffer is an IndexError, which the caller names."""

    __slots__ = ("_data", "_file_part", "_left", "_limits", "_size", "at")

    def __init__(
        self, data: bytes | memoryview, offset: int, file_part: FilePart, limits: Limits
    ) -> None:
        self._data, self._size, self.at = data, len(data), offset
        self._file_part, self._limits, self._left = file_part, limits, limits.values_max

    def struct(self, depth: int, last_id: int) -> Struct:
        if depth > self._limits.depth_max:
            raise self._corrupt("structures nest too deep")
        fields: dict[int, Field] = {}
        while True:
            head = self._data[self.at]
            self.at += 1
            if not head:
                return Struct(fields) if fields else EMPTY
            kind = head & 15
            last_id = last_id + (head >> 4) if head >> 4 else self._integer(16)
            if last_id in fields:
                raise self._corrupt("a field is there twice", field=last_id)
            self._spend(1)
            if kind in (1, 2):
                fields[last_id] = Wire.TRUE, kind == 1
            else:
                fields[last_id] = self._wire(kind), self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Value:
        if kind in (5, 6):
            return self._integer(32 if kind == 5 else 64)
        if kind == 8:
            return self._take(self._varint())
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
        size = self._varint() if head >> 4 == _LIST_SIZE_FOLLOWS else head >> 4
        kind = head & 15
        if not size:
            return List(self._wire(kind, empty=True), ())
        wire = self._wire(kind)
        self._open(size, 1, depth)
        values = self._run(kind, size) if size >= _RUN_MIN else None
        if values is None:
            values = [self._value(kind, depth) for _ in range(size)]
        return List(wire, tuple(values))

    def _run(self, kind: int, size: int) -> Sequence[Value] | None:
        """Read many values at once; None where they, or their type, need one at a time."""
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
            return Map(Wire.STOP, Wire.STOP, ())
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

    def _wire(self, kind: int, *, empty: bool = False) -> Wire:
        if kind > Wire.UUID or (kind == Wire.STOP and not empty):
            raise self._corrupt("no such type", type=kind)
        return Wire.TRUE if kind == Wire.FALSE else _WIRES[kind]

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


def encode_struct(struct: Struct) -> bytes:
    """Return a structure's bytes: those it was read from, if its writer chose the short forms."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def put_varint(out: bytearray, value: int) -> None:
    """Append an unsigned integer, seven bits a byte."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last_id = 0
    for field_id, (wire, value) in struct.fields.items():
        kind = (Wire.TRUE if value else Wire.FALSE) if wire is Wire.TRUE else wire
        step = field_id - last_id
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_integer(out, field_id, 16)
        if wire is not Wire.TRUE:
            _put_value(out, wire, value)
        last_id = field_id
    out.append(0)


def _put_value(out: bytearray, wire: Wire, value: Value) -> None:
    if isinstance(value, bytes):
        if wire is Wire.BINARY:
            put_varint(out, len(value))
        out += value
    elif isinstance(value, Struct):
        _put_struct(out, value)
    elif isinstance(value, List):
        _put_list(out, value)
    elif isinstance(value, Map):
        _put_map(out, value)
    elif wire is Wire.TRUE:
        out.append(Wire.TRUE if value else Wire.FALSE)
    elif wire is Wire.BYTE:
        out.append(value & 255)
    else:
        _put_integer(out, value, _BITS[wire])


def _put_integer(out: bytearray, value: int, bits: int) -> None:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise CorruptFileError(
            "a number is too large for its field in Parquet; this is a bug in Lakesplice",
            number=value,
        )
    put_varint(out, value << 1 if value >= 0 else ~value << 1 | 1)


def _put_list(out: bytearray, found: List) -> None:
    size = len(found.values)
    out.append(min(size, _LIST_SIZE_FOLLOWS) << 4 | found.wire)
    if size >= _LIST_SIZE_FOLLOWS:
        put_varint(out, size)
    if size >= _RUN_MIN and found.wire is Wire.TRUE:
        out += bytes([Wire.TRUE if value else Wire.FALSE for value in found.values])
    elif size >= _RUN_MIN and found.wire in (Wire.I32, Wire.I64):
        values = np.array(found.values, np.int32 if found.wire is Wire.I32 else np.int64)
        out += encode_varints(zigzag(values.astype(np.int64)))
    elif size >= _RUN_MIN and found.wire is Wire.BINARY and _all_short(found.values):
        out += b"".join([_LENGTHS[len(value)] + value for value in found.values])
    else:
        for value in found.values:
            _put_value(out, found.wire, value)


def _all_short(values: Sequence[Value]) -> TypeGuard[Sequence[bytes]]:
    return all(isinstance(value, bytes) and len(value) < len(_LENGTHS) for value in values)


def _put_map(out: bytearray, found: Map) -> None:
    put_varint(out, len(found.pairs))
    if found.pairs:
        out.append(found.key_wire << 4 | found.value_wire)
    for key, value in found.pairs:
        _put_value(out, found.key_wire, key)
        _put_value(out, found.value_wire, value)
