"""Bounds the memory of an operation over all its threads, whatever the size of its chunks.

Values are decoded in spans of bounded bytes, at most _SPANS of them at a time. While a span is
encoded and read back, it takes a few times its size. New pages wait for their chunk to be written;
beyond _HELD_BYTES they wait in a scratch file, if there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pyarrow as pa

from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Scratch
from lakesplice.splicing.output.images import CopiedRange, Piece

_SPANS = 16
# A chunk of at most so many spans is decoded at once, so its values are hashed only once.
_SPANS_AT_ONCE = 8
_DICTIONARY_BYTES = 8 * 1024 * 1024
_HELD_BYTES = 8 * 1024 * 1024
# Allocators keep freed memory for each thread; returning it to the system takes time.
_TIDY_BYTES = 4 * 1024 * 1024

OpenScratch = Callable[[], Scratch]


class MemoryLimits:
    """The memory limits that the chunks of one operation share."""

    def __init__(self, options: Options) -> None:
        self._span_bytes = options.span_bytes
        self._decoded = _SharedBytes(_SPANS * options.span_bytes)
        self._tidying = AllocatorTrimmer()
        self._dictionaries = _SharedBytes(_DICTIONARY_BYTES)
        # So many chunks exist at a time: being made, waiting, and being written.
        self._held_bytes = _HELD_BYTES // (options.threads + 2)
        self._open_scratch = options.open_scratch

    def span_bytes(self, chunk_bytes: int) -> int:
        """Return how many bytes to decode at a time of a chunk that decodes to `chunk_bytes`."""
        at_once = _SPANS_AT_ONCE * self._span_bytes
        return at_once if chunk_bytes <= at_once else self._span_bytes

    @contextmanager
    def decoded(self, size: int) -> Iterator[None]:
        """Wait until `size` more decoded bytes may be in memory; reserve them within the `with`.

        The caller must not wait for anything else within it.
        """
        with self._decoded.taken(size):
            yield
        self._tidying.freed(size)

    def dictionary(self, size: int) -> AbstractContextManager[None]:
        """Do the same for a chunk's dictionary; its spans are decoded within this `with`."""
        return self._dictionaries.taken(size)

    def held(self) -> PageBuffer:
        """Return a buffer for the new pages of one chunk."""
        return PageBuffer(self._held_bytes, self._open_scratch)


class AllocatorTrimmer:
    """Returns freed memory that allocators keep to the system from time to time; safe from several
    threads.
    """

    def __init__(self) -> None:
        self._freed, self._lock = 0, threading.Lock()

    def freed(self, size: int) -> None:
        """Count `size` freed bytes; release memory to the system once enough are freed."""
        with self._lock:
            self._freed += size
            due = self._freed >= _TIDY_BYTES
            if due:
                self._freed = 0
        if due:
            self.release()

    def release(self) -> None:
        """Return it now: Arrow's, and the C library's, which NumPy and Python use."""
        pa.default_memory_pool().release_unused()
        pa.system_memory_pool().release_unused()


class PageBuffer:
    """Holds the new pages of one chunk until they are written; not safe from several threads."""

    def __init__(self, limit: int, open_scratch: OpenScratch | None) -> None:
        self._left, self._open_scratch = limit, open_scratch
        self._scratch: Scratch | None = None

    def put(self, data: pa.Buffer) -> Piece:
        """Store the bytes and return them as a piece that keeps nothing else in memory."""
        if self._open_scratch is None or (self._scratch is None and data.size <= self._left):
            self._left -= data.size
            return _copy(data)
        if self._scratch is None:
            self._scratch = self._open_scratch()
        return CopiedRange(self._scratch, self._scratch.put(data), data.size)


def part_of(piece: Piece, at: int, size: int) -> Piece:
    """Return `size` bytes of a piece from `at`."""
    if isinstance(piece, CopiedRange):
        return CopiedRange(piece.source, piece.offset + at, size)
    return piece.slice(at, size)


def _copy(data: pa.Buffer) -> pa.Buffer:
    """Copy to memory outside Python's heap, which large allocations would fragment."""
    copy = pa.allocate_buffer(data.size)
    np.frombuffer(copy, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return copy


class _SharedBytes:
    """A number of bytes that threads share; a thread that asks for more than all gets all,
    alone.
    """

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
