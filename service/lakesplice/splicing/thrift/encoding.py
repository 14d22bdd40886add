"""Writes structures in Thrift's compact protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.thrift.compact import (
    LIST_SIZE_FOLLOWS,
    RUN_MIN,
    List,
    Map,
    Struct,
    Value,
    WireType,
)
from lakesplice.splicing.thrift.varints import encode_varints, zigzag

_BITS = {WireType.I16: 16, WireType.I32: 32, WireType.I64: 64}
_LENGTHS = tuple(bytes((length,)) for length in range(128))  # as varints


def encode_struct(struct: Struct) -> bytes:
    """Return a structure's bytes; they equal those it was read from if its writer used the short
    forms.
    """
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def put_varint(out: bytearray, value: int) -> None:
    """Append an unsigned integer, seven bits per byte."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last_id = 0
    for field_id, (wire, value) in struct.fields.items():
        kind = (WireType.TRUE if value else WireType.FALSE) if wire is WireType.TRUE else wire
        step = field_id - last_id
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_integer(out, field_id, 16)
        if wire is not WireType.TRUE:
            _put_value(out, wire, value)
        last_id = field_id
    out.append(0)


def _put_value(out: bytearray, wire: WireType, value: Value) -> None:
    if isinstance(value, bytes):
        if wire is WireType.BINARY:
            put_varint(out, len(value))
        out += value
    elif isinstance(value, Struct):
        _put_struct(out, value)
    elif isinstance(value, List):
        _put_list(out, value)
    elif isinstance(value, Map):
        _put_map(out, value)
    elif wire is WireType.TRUE:
        out.append(WireType.TRUE if value else WireType.FALSE)
    elif wire is WireType.BYTE:
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
    out.append(min(size, LIST_SIZE_FOLLOWS) << 4 | found.wire)
    if size >= LIST_SIZE_FOLLOWS:
        put_varint(out, size)
    if size >= RUN_MIN and found.wire is WireType.TRUE:
        out += bytes([WireType.TRUE if value else WireType.FALSE for value in found.values])
    elif size >= RUN_MIN and found.wire in (WireType.I32, WireType.I64):
        values = np.array(found.values, np.int32 if found.wire is WireType.I32 else np.int64)
        out += encode_varints(zigzag(values.astype(np.int64)))
    elif size >= RUN_MIN and found.wire is WireType.BINARY and _all_short(found.values):
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
