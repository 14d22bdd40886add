"""Files in a bucket in the form that pyarrow uses: one to read ranges of, one to write in order."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakesplice.storage.bucket_access import Bucket

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

TAIL_BYTES = 64 * 1024


class _Ranges:
    """What an `ObjectFile` reads through: a position, and the bytes at the end, which are read
    first.
    """

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        tail: Any,
        size: int,
        failing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._bucket, self._key, self._failing = bucket, key, failing
        self._tail = pa.py_buffer(tail)
        self._tail_start = size - self._tail.size
        self.size, self.closed = size, False
        self._at = 0

    def ranges(self, offsets: Sequence[int], lengths: Sequence[int]) -> list[pa.Buffer]:
        found: list[pa.Buffer | None] = [
            self._known_part(*one) for one in zip(offsets, lengths, strict=True)
        ]
        absent = [at for at, buffer in enumerate(found) if buffer is None]
        if absent:
            import obstore

            with self._failing():
                read = obstore.get_ranges(
                    self._bucket.client(),
                    self._key,
                    starts=[offsets[at] for at in absent],
                    lengths=[lengths[at] for at in absent],
                )
            for at, data in zip(absent, read, strict=True):
                found[at] = pa.py_buffer(data)
        return [buffer for buffer in found if buffer is not None]

    def _known_part(self, offset: int, length: int) -> pa.Buffer | None:
        """The part of the range if it is known already, so that nothing has to be read; else
        None.
        """
        if not length or offset >= self.size:
            return pa.py_buffer(b"")
        if offset < self._tail_start:
            return None
        return self._tail.slice(offset - self._tail_start, min(length, self.size - offset))

    def read(self, count: int = -1) -> pa.Buffer:
        left = max(self.size - self._at, 0)
        (data,) = self.ranges([self._at], [left if count < 0 else min(count, left)])
        self._at += data.size
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class ObjectFile(pa.PythonFile):  # type: ignore[misc]  # PyArrow has no types
    """An object open for random access; its last bytes were read when it was opened."""

    bucket: Bucket
    key: str
    etag: str | None
    _ranges: _Ranges

    @classmethod
    def over(
        cls,
        bucket: Bucket,
        key: str,
        etag: str | None,
        tail: Any,
        size: int,
        failing: Callable[[], AbstractContextManager[None]],
    ) -> ObjectFile:
        """Return the file of an object whose last bytes are `tail`; `failing` names errors."""
        ranges = _Ranges(bucket, key, tail, size, failing)
        file = cls(ranges, mode="r")
        file.bucket, file.key, file.etag, file._ranges = bucket, key, etag, ranges
        return file

    def read_ranges(self, offsets: Sequence[int], lengths: Sequence[int]) -> list[pa.Buffer]:
        """Return the bytes of several ranges: neighbouring ones by one request, the others in
        parallel.

        Ranges beyond the end return fewer bytes. Blocks; safe from several threads.
        """
        return self._ranges.ranges(offsets, lengths)


class Upload(Protocol):
    """An object that is being written; used by one thread. All calls block and may raise
    `StorageError`.
    """

    def write(self, data: Any) -> int:
        """Append bytes, in any object with the buffer protocol; return how many."""
        ...

    def complete(self) -> None:
        """Make the object visible, whole and durable."""
        ...

    def abort(self) -> None:
        """Leave nothing of it; raises nothing."""
        ...


class _Writable:
    """What an `ObjectSink` writes through."""

    def __init__(self, upload: Upload) -> None:
        self._upload, self.closed = upload, False

    def write(self, data: Any) -> int:
        return self._upload.write(data)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class ObjectSink(pa.PythonFile):  # type: ignore[misc]  # PyArrow has no types
    """An object that is written in order."""

    upload: Upload

    @classmethod
    def over(cls, upload: Upload) -> ObjectSink:
        """Return the file that writes to an upload, which the caller completes or aborts."""
        sink = cls(_Writable(upload), mode="w")
        sink.upload = upload
        return sink
