"""Copies from file to file on the local disk, in which no byte passes through this process."""

from __future__ import annotations

import errno
import os
from io import UnsupportedOperation

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.copying import StreamSink

# Different file systems, or one that can't.
_CANNOT = frozenset((errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP))


class FileSink(StreamSink):
    """`Sink` on a local file: copies by `copy_file_range`, through a buffer where that can't be."""

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


def _descriptor(file: pa.NativeFile) -> int | None:
    try:
        return int(file.fileno())
    except (AttributeError, UnsupportedOperation, OSError):
        return None
