"""The head of an Avro object container file (Avro 1.11, "Object Container Files").

    magic     4 bytes, `Obj` 01
    metadata  a map of strings to bytes: blocks of (count, entries), ended by a count of zero
    sync      16 bytes
    blocks    ...

Polars reads the blocks. It takes decimals and metadata otherwise than these files mean them, so it
is given another head.
"""

from __future__ import annotations

from lakesplice.errors import CorruptFileError

MAGIC = b"Obj\x01"
_VARINT_BYTES_MAX = 10


def read_head(data: bytes, path: str) -> tuple[dict[str, bytes], int]:
    """Return the metadata and the offset of the sync marker; `CorruptFileError` if there is no such
    head.
    """
    if data[:4] != MAGIC:
        raise CorruptFileError("not an Avro file; restore it", path=path)
    metadata: dict[str, bytes] = {}
    at = 4
    while True:
        count, at = _long(data, at, path)
        if count == 0:
            return metadata, at
        if count < 0:  # a negative count is followed by the size of its block in bytes
            _, at = _long(data, at, path)
        for _ in range(abs(count)):
            name, at = _bytes(data, at, path)
            metadata[name.decode("utf-8", "replace")], at = _bytes(data, at, path)


def write_head(metadata: dict[str, bytes]) -> bytes:
    """Return magic and metadata: everything before the sync marker."""
    entries = b"".join(
        _encode_long(len(part)) + part
        for name, value in metadata.items()
        for part in (name.encode(), value)
    )
    block = _encode_long(len(metadata)) + entries if metadata else b""
    return MAGIC + block + b"\0"


def _encode_long(value: int) -> bytes:
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _long(data: bytes, at: int, path: str) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + _VARINT_BYTES_MAX]:
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value >> 1 ^ -(value & 1), at
    raise CorruptFileError("an Avro head ends early; restore the file", path=path, offset=at)


def _bytes(data: bytes, at: int, path: str) -> tuple[bytes, int]:
    size, at = _long(data, at, path)
    if size < 0 or at + size > len(data):
        raise CorruptFileError("an Avro head ends early; restore the file", path=path, offset=at)
    return data[at : at + size], at + size
