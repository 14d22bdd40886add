"""What an operation takes of memory, over all its threads, whatever the size of its chunks.

Values are decoded in spans of bounded bytes and no more than _SPANS of them at a time: some times
as much is taken while a span is encoded and read back. New pages wait for their chunk to be
written; beyond _HELD_BYTES they wait in a scratch file, if there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pyarrow as pa

from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Scratch
from lakesplice.splicing.output.images import Copied, Piece

_SPANS = 16
# A chunk of no more spans is decoded at once: its values are hashed once then.
_SPANS_AT_ONCE = 8
_DICTIONARY_BYTES = 8 * 1024 * 1024
_HELD_BYTES = 8 * 1024 * 1024
# The allocator keeps what is freed, for each thread; to give it back takes time.
_TIDY_BYTES = 4 * 1024 * 1024

OpenScratch = Callable[[], Scratch]


class Memory:
    """Shared by the chunks of one operation."""

    def __init__(self, options: Options) -> None:
        self._span_bytes = options.span_bytes
        self._decoded = _Room(_SPANS * options.span_bytes)
        self._tidying = AllocatorTrimmer()
        self._dictionaries = _Room(_DICTIONARY_BYTES)
        # As many chunks are being made, made, or being written.
        self._held_bytes = _HELD_BYTES // (options.threads + 2)
        self._open_scratch = options.open_scratch

    def span_bytes(self, chunk_bytes: int) -> int:
        """Return what is to be decoded at a time of a chunk that decodes to so many bytes."""
        at_once = _SPANS_AT_ONCE * self._span_bytes
        return at_once if chunk_bytes <= at_once else self._span_bytes

    @contextmanager
    def decoded(self, size: int) -> Iterator[None]:
        """Wait until so many decoded bytes may be held, and hold them within the `with`.

        Nothing else may be waited for meanwhile.
        """
        with self._decoded.taken(size):
            yield
        self._tidying.freed(size)

    def dictionary(self, size: int) -> AbstractContextManager[None]:
        """The same for a chunk's dictionary, around its spans."""
        return self._dictionaries.taken(size)

    def held(self) -> PageBuffer:
        """Return a place for the new pages of one chunk."""
        return PageBuffer(self._held_bytes, self._open_scratch)


class AllocatorTrimmer:
    """Gives back, now and then, what allocators keep of freed bytes; for several threads."""

    def __init__(self) -> None:
        self._freed, self._lock = 0, threading.Lock()

    def freed(self, size: int) -> None:
        """Count so many freed bytes."""
        with self._lock:
            self._freed += size
            due = self._freed >= _TIDY_BYTES
            if due:
                self._freed = 0
        if due:
            self.release()

    def release(self) -> None:
        """Give it back now: Arrow's, and that of the C library, which has NumPy's and Python's."""
        pa.default_memory_pool().release_unused()
        pa.system_memory_pool().release_unused()


class PageBuffer:
    """New pages of one chunk, until they are written; not for several threads."""

    def __init__(self, limit: int, open_scratch: OpenScratch | None) -> None:
        self._left, self._open_scratch = limit, open_scratch
        self._scratch: Scratch | None = None

    def put(self, data: pa.Buffer) -> Piece:
        """Return the bytes as a piece that holds no more than them."""
        if self._open_scratch is None or (self._scratch is None and data.size <= self._left):
            self._left -= data.size
            return _copy(data)
        if self._scratch is None:
            self._scratch = self._open_scratch()
        return Copied(self._scratch, self._scratch.put(data), data.size)


def part_of(piece: Piece, at: int, size: int) -> Piece:
    """Return `size` bytes of a piece from `at`."""
    if isinstance(piece, Copied):
        return Copied(piece.source, piece.offset + at, size)
    return piece.slice(at, size)


def _copy(data: pa.Buffer) -> pa.Buffer:
    """Not as Python bytes: so many would be allocated and freed that the heap would be full of
    gaps.
    """
    copy = pa.allocate_buffer(data.size)
    np.frombuffer(copy, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return copy


class _Room:
    """Bytes that may be taken at a time; more than there is is given to one alone."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._freed = threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        size = min(size, self._size)
        with self._freed:
            self._freed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            with self._freed:
                self._left += size
                self._freed.notify_all()
