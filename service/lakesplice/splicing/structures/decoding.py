"""Translates pyarrow's errors: a damaged file, a limit of pyarrow's, or a fault of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from lakesplice.errors import StorageError, UnsupportedError
from lakesplice.splicing.faults import FilePart, Reason

_BEYOND = (pa.ArrowNotImplementedError, NotImplementedError, pa.ArrowCapacityError)
# pyarrow also reports "invalid" for values that don't fit into one Arrow array.
_OVERFLOW = re.compile(r"offset overflow|overflowed binary array capacity")
_FAILED = (pa.ArrowException, OSError, ValueError, MemoryError, NotImplementedError)


@contextmanager
def decoding(file_part: FilePart) -> Iterator[None]:
    """Raise pyarrow's errors as ours: `UnsupportedError` with a `reason` if the file is healthy but
    pyarrow can't decode it, `StorageError` if the store failed (the error has an error number), and
    `CorruptFileError` otherwise.
    """
    try:
        yield
    except _FAILED as error:
        if isinstance(error, _BEYOND) or _OVERFLOW.search(str(error)):
            raise UnsupportedError(
                "a part of a Parquet file can't be decoded; rewrite it with the program that"
                " made it",
                path=file_part.path,
                place=file_part.part,
                reason=str(Reason.UNDECODABLE),
                cause=str(error),
            ) from error
        if getattr(error, "errno", None) is not None:
            raise _unread(file_part, error) from error
        raise file_part.corrupt("it cannot be decoded", cause=str(error)) from error


@contextmanager
def reading(name: str, part: str) -> Iterator[None]:
    """`decoding` of a part of the file `name`."""
    with decoding(FilePart(name, part)):
        yield


def read_at(source: pa.NativeFile, length: int, offset: int, file_part: FilePart) -> bytes:
    """Return bytes of a file, fewer at its end. Blocks; raises `StorageError` if the store
    fails.
    """
    try:
        data: bytes = source.read_at(length, offset)
    except OSError as error:
        if error.errno is None:
            raise file_part.corrupt("the file ends before it", cause=str(error)) from error
        raise _unread(file_part, error) from error
    return data


def mapped(source: pa.NativeFile) -> pa.Buffer | None:
    """Return all bytes of a memory-mapped file without reading any; None for other files.

    Reading such a file as a stream would copy the bytes.
    """
    if not isinstance(source, pa.MemoryMappedFile):
        return None
    at = source.tell()
    source.seek(0)
    whole = source.read_buffer()
    source.seek(at)
    return whole


class RangeReader(Protocol):
    """A file that reads several ranges of its bytes by one request. Files in buckets do; this
    folder may not import their class.
    """

    def read_ranges(self, offsets: Sequence[int], lengths: Sequence[int]) -> list[pa.Buffer]:
        """Return the bytes of each range, fewer where it extends beyond the end.

        Blocks; safe from several threads.
        """
        ...


def ranged(source: pa.NativeFile) -> RangeReader | None:
    """Return the file if it reads ranges by itself; None otherwise."""
    return source if hasattr(source, "read_ranges") else None


def buffer_at(source: pa.NativeFile, length: int, offset: int, file_part: FilePart) -> pa.Buffer:
    """Do what `read_at` does, and return a buffer."""
    try:
        return source.get_stream(offset, length).read_buffer()
    except OSError as error:
        raise _unread(file_part, error) from error


def _unread(file_part: FilePart, error: BaseException) -> StorageError:
    return StorageError("a file can't be read", path=file_part.path, cause=str(error))
