"""A store that fails when and how a test wants it to.

To enumerate the crashes of a scenario, run it once and count its calls; then run it once per call
and per kind of failure, restart on the bare store, and compare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto

import pyarrow as pa

from lakesplice.errors import MissingFileError, StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.ports import Store


class How(Enum):
    """How a call fails.

    LOST: the call has no effect and raises `StorageError`. ANSWER_LOST: it has its effect, then
    raises. CUT: the store breaks its contract: a put stores half the bytes and raises, a read
    returns half; a writer raises at its end, and removes the file as it must. CRASH_BEFORE and
    CRASH_AFTER raise `Crash`, as if the process died there; every later call raises it, too.
    """

    LOST = auto()
    ANSWER_LOST = auto()
    CUT = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()


class Crash(BaseException):
    """The process is dead. It isn't in our tree of errors, so that no code handles it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store: its number from zero, its method, its path from the outermost root."""

    number: int
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Fails the calls for which `hits` returns True."""

    hits: Callable[[Call], bool]
    how: How

    @classmethod
    def at(cls, number: int, how: How) -> Fault:
        """Fail the call of this number."""
        return cls(lambda call: call.number == number, how)

    @classmethod
    def since(cls, number: int, how: How) -> Fault:
        """Fail the call of this number and every later one."""
        return cls(lambda call: call.number >= number, how)

    @classmethod
    def on(cls, method: str, part: str, how: How, times: int = 1) -> Fault:
        """Fail the first `times` calls of `method` whose path contains `part`."""
        left = [times]

        def hits(call: Call) -> bool:
            if call.method != method or part not in call.path or left[0] == 0:
                return False
            left[0] -= 1
            return True

        return cls(hits, how)


@dataclass(slots=True)
class _Ledger:
    """The state that a store and all stores within it share."""

    faults: tuple[Fault, ...]
    before_call: Callable[[Call], None]
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    crashed: bool = False


class FaultyStore:
    """A `Store` around another one; without faults it behaves like that one.

    `before_call` is called before each call, outside of any lock: a test may wait there, or act as
    another process.
    """

    def __init__(
        self,
        inner: Store,
        faults: Iterable[Fault] = (),
        before_call: Callable[[Call], None] = lambda _call: None,
    ) -> None:
        self._inner = inner
        self._prefix = ""
        self._ledger = _Ledger(tuple(faults), before_call)

    @property
    def row_group_bytes(self) -> int:
        """See `Store.row_group_bytes`."""
        return self._inner.row_group_bytes

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in order, of this store and of all stores within it."""
        return tuple(self._ledger.calls)

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`."""
        with self._call("put_new", path) as cut:
            created = self._inner.put_new(path, data[: len(data) // 2] if cut else data)
            if cut:
                raise _failure(path)
            return created

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        """See `Store.writer`; a crash leaves half a file, as a dead process does on a disk."""
        with self._call("writer", path) as cut:
            leftover = None
            try:
                with self._inner.writer(path) as sink:
                    try:
                        yield sink
                    except Crash:
                        sink.flush()
                        # In a bucket no reader sees a file before it is whole.
                        with suppress(MissingFileError):
                            leftover = self._inner.read(path)
                        raise
                    if cut:
                        raise _failure(path)
            except Crash:
                if leftover is not None:
                    self._inner.put_new(path, leftover[: len(leftover) // 2])
                raise

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        with self._call("read", path) as cut:
            data = self._inner.read(path)
            return data[: len(data) // 2] if cut else data

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """See `Store.open`."""
        with self._call("open", path) as cut:
            if not cut:
                return self._inner.open(path, tail_bytes)
            with self._inner.open(path, tail_bytes) as file:
                return pa.BufferReader(file.read(file.size() // 2))

    def size(self, path: str) -> int | None:
        """See `Store.size`."""
        with self._call("size", path):
            return self._inner.size(path)

    def modified_ms(self, path: str) -> EpochMs | None:
        """See `Store.modified_ms`."""
        with self._call("modified_ms", path):
            return self._inner.modified_ms(path)

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        with self._call("list", prefix):
            return iter([*self._inner.list(prefix)])

    def folders(self, folder: str = "") -> Sequence[str]:
        """See `Store.folders`."""
        with self._call("folders", folder):
            return self._inner.folders(folder)

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        with self._call("delete", path):
            self._inner.delete(path)

    def within(self, folder: str) -> FaultyStore:
        """See `Store.within`; the calls and faults are shared."""
        store = FaultyStore(self._inner.within(folder))
        store._prefix = f"{self._prefix}{folder}/"
        store._ledger = self._ledger
        return store

    @contextmanager
    def _call(self, method: str, path: str) -> Iterator[bool]:
        """Count a call, and let it fail if a fault applies; yields whether to cut it (CUT)."""
        ledger = self._ledger
        with ledger.lock:
            call = Call(len(ledger.calls), method, self._prefix + path)
            ledger.calls.append(call)
            how = next((fault.how for fault in ledger.faults if fault.hits(call)), None)
        ledger.before_call(call)
        if ledger.crashed or how is How.CRASH_BEFORE:
            ledger.crashed = True
            raise Crash
        if how is How.LOST:
            raise _failure(path)
        yield how is How.CUT
        if how is How.CRASH_AFTER:
            ledger.crashed = True
            raise Crash
        if how is How.ANSWER_LOST:
            raise _failure(path)


def _failure(path: str) -> StorageError:
    return StorageError("the store was made to fail", path=path)
