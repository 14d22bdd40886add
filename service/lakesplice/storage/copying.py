"""Copies between files on the local disk without passing the bytes through this process, and
temporary files.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from io import UnsupportedOperation
from typing import Any

import pyarrow as pa

from lakesplice.errors import CorruptFileError, StorageError
from lakesplice.splicing.output.copying import StreamSink

# The file systems differ, or don't support it.
_CANNOT = frozenset((errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP))


class FileSink(StreamSink):
    """`Sink` on a local file: copies by `copy_file_range`, or through a buffer where that is
    impossible.
    """

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__(stream)
        self._target = _descriptor(stream)

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        """See `Sink.copy`."""
        origin = _descriptor(source)
        end = offset + length
        while offset < end and origin is not None and self._target is not None:
            try:
                done = os.copy_file_range(origin, self._target, end - offset, offset)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                break
            if not done:
                raise CorruptFileError("a file ends before its pages do; restore it", offset=offset)
            offset += done
        super().copy(source, offset, end - offset)


class ScratchFile:
    """`Scratch` in the folder for temporary files (TMPDIR). It has no name, so it disappears with
    the process at the latest.
    """

    def __init__(self) -> None:
        try:
            with tempfile.NamedTemporaryFile(prefix="lakesplice-") as named:
                self._descriptor = os.dup(named.fileno())
                self.source = pa.OSFile(named.name, "rb")
        except OSError as error:
            raise _unwritable(error) from error
        weakref.finalize(self, os.close, self._descriptor)
        self._size = 0

    def put(self, data: Any) -> int:
        """See `Scratch.put`."""
        at, view = self._size, memoryview(data).cast("B")
        try:
            while len(view):
                written = os.write(self._descriptor, view)
                view = view[written:]
                self._size += written
        except OSError as error:
            raise _unwritable(error) from error
        return at

    def read(self, offset: int, length: int) -> pa.Buffer:
        """See `Readable.read`."""
        return pa.py_buffer(self.source.read_at(length, offset))


def _unwritable(error: OSError) -> StorageError:
    return StorageError(
        "a temporary file can't be written; free some space, or set TMPDIR",
        path=tempfile.gettempdir(),
        cause=str(error),
    )


def _descriptor(file: pa.NativeFile) -> int | None:
    try:
        return int(file.fileno())
    except (AttributeError, UnsupportedOperation, OSError):
        return None
