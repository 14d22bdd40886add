"""Checksums of our files: XXH3 with 128 bits, written as 32 hexadecimal digits.

It detects damage by a disk, a cable or a truncated copy; it doesn't defend against a person.
Source: docs/format.md, "Checksums".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa
import xxhash

from lakesplice.errors import CorruptFileError
from lakesplice.model.manifest import FileRef

_REMEDY = "restore the file; if it belongs to the row index, run `lakesplice index rebuild` instead"

Bytes: TypeAlias = bytes | memoryview | pa.Buffer


class Checksum:
    """A checksum over pieces given in order; where they are cut does not matter."""

    def __init__(self) -> None:
        self._state = xxhash.xxh3_128()
        self.bytes = 0

    def update(self, piece: Bytes) -> None:
        """Take in the next piece."""
        self._state.update(piece)
        self.bytes += len(piece)

    def digest(self) -> str:
        """Return the checksum of what was taken in so far."""
        return self._state.hexdigest()


def checksum(data: Bytes | Iterable[Bytes]) -> str:
    """Return the checksum of one value, or of the concatenation of several."""
    if isinstance(data, bytes | memoryview | pa.Buffer):
        return xxhash.xxh3_128_hexdigest(data)
    running = Checksum()
    for piece in data:
        running.update(piece)
    return running.digest()


def verify(data: bytes | memoryview | pa.Buffer, ref: FileRef) -> None:
    """Return if `data` is what `ref` recorded; else `CorruptFileError` naming the file."""
    if len(data) != ref.bytes:
        raise CorruptFileError(
            f"a file's size isn't the recorded one; {_REMEDY}",
            path=ref.path,
            bytes=len(data),
            recorded_bytes=ref.bytes,
        )
    _compare(checksum(data), ref)


def _compare(found: str, ref: FileRef) -> None:
    if found != ref.checksum:
        raise CorruptFileError(
            f"a file's bytes are not those that were written; {_REMEDY}",
            path=ref.path,
            checksum=found,
            recorded_checksum=ref.checksum,
        )
