"""The output of a splice: written in order, and partly copied from other files.

A sink that knows where the source lies on disk or in an object store copies without reading the
bytes (`storage/` has one for local disks and one for S3). `StreamSink` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from lakesplice.errors import CorruptFileError

_BLOCK_BYTES = 8 * 1024 * 1024


class Sink(Protocol):
    """A new file, written from its start to its end by one thread. All calls block."""

    def write(self, data: Any) -> None:
        """Append bytes: anything with the buffer protocol."""
        ...

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        """Append `length` bytes of `source` from `offset`; may move the position of `source`.

        Raises `CorruptFileError` if the source ends earlier.
        """
        ...

    def copies_inside(self, source: pa.NativeFile) -> bool:
        """Whether the store copies from the file by itself, so that the bytes don't pass through
        this process.
        """
        ...

    def tell(self) -> int:
        """Return how many bytes were appended."""
        ...


class Readable(Protocol):
    """A file to copy from; `source` is the underlying file, for sinks that copy by themselves."""

    source: pa.NativeFile

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return exactly these bytes. Blocks."""
        ...


class Scratch(Readable, Protocol):
    """A temporary store of bytes; it is deleted when nothing refers to it. All calls block."""

    def put(self, data: Any) -> int:
        """Append bytes, anything with the buffer protocol, and return where they start."""
        ...


OpenSink = Callable[[pa.NativeFile], Sink]


class StreamSink:
    """`Sink` on anything pyarrow can write to, copying through a buffer."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._start: int = stream.tell()

    def write(self, data: Any) -> None:
        """See `Sink.write`."""
        self._stream.write(data)

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        """See `Sink.copy`."""
        end = offset + length
        while offset < end:
            try:
                block = source.read_at(min(_BLOCK_BYTES, end - offset), offset)
            except OSError as error:
                if error.errno is not None:
                    raise
                block = b""  # pyarrow's sign for the end of the file
            if not block:
                raise CorruptFileError("a file ends before its pages do; restore it", offset=offset)
            self._stream.write(block)
            offset += len(block)

    def copies_inside(self, source: pa.NativeFile) -> bool:  # noqa: ARG002
        """See `Sink.copies_inside`."""
        return False

    def tell(self) -> int:
        """See `Sink.tell`."""
        return int(self._stream.tell()) - self._start
