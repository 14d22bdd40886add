"""Avro records as serialisers with a schema registry write them: for tests and benchmarks."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import cast

from lakesplice.formats.events.avro import Node, Record, Union

_ID_BYTES = {4: ">bI", 8: ">bQ"}


def frame(schema: int, value: bytes, id_bytes: int = 4) -> bytes:
    """Return a value after the header that names its schema by a number of four or eight bytes."""
    return struct.pack(_ID_BYTES[id_bytes], 0, schema) + value


def write_value(node: Node, value: object) -> bytes:
    """Write one value by its schema; in a union, None is written as null and other values as the
    other type.
    """
    if isinstance(node, Record):
        members = cast("Mapping[str, object]", value)
        return b"".join(write_value(member.node, members[member.name]) for member in node.fields)
    if isinstance(node, Union):
        kinds = [getattr(branch, "kind", "record") for branch in node.branches]
        chosen = next(at for at, kind in enumerate(kinds) if (kind == "null") == (value is None))
        return write_long(chosen) + write_value(node.branches[chosen], value)
    match node.kind:
        case "null":
            return b""
        case "boolean":
            return bytes([bool(value)])
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "int" | "long":
            return write_long(cast("int", value))
        case "enum":
            return write_long(node.symbols.index(str(value)))
        case "fixed":
            return cast("bytes", value)
    octets = value.encode() if isinstance(value, str) else cast("bytes", value)
    return write_long(len(octets)) + octets


def write_long(value: int) -> bytes:
    """Write a number of up to 64 bits: zigzag, then seven bits per byte."""
    rest = (value << 1) ^ (value >> 63)
    octets = bytearray()
    while rest > 0x7F:
        octets.append(rest & 0x7F | 0x80)
        rest >>= 7
    octets.append(rest)
    return bytes(octets)
