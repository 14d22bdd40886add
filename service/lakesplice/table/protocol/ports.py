"""What the protocol needs from outside. Adapters implement these; tests make them fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from lakesplice.formats.events import SchemaText
from lakesplice.formats.parquet import WrittenBase
from lakesplice.model.address import BaseFile
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ComparedEdits, Edits


class Store(Protocol):
    """Files under one root, named by relative paths with `/`.

    Every write creates: nothing that exists is ever changed, so a paused driver or a retried task
    cannot overwrite what another committed. A call that raises `StorageError` may or may not have
    taken effect. All calls block; all are safe from several threads and processes.
    """

    @property
    def row_group_bytes(self) -> int:
        """About how large a row group of a new base file is to be in memory, so that a splice
        copies most of it here.
        """
        ...

    def put_new(self, path: str, data: bytes) -> bool:
        """Create the file whole and durably; False if the name exists (its content is untouched).

        Readers see all of it or nothing. True means it survives a power loss.
        """
        ...

    def writer(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Create a file by writing it in order; leaving the block makes it durable.

        Leaving by an exception removes what was written. An existing name raises `StorageError`:
        names carry a random part, so meeting one means a defect.
        """
        ...

    def read(self, path: str) -> bytes:
        """Return the whole file; `MissingFileError` if there is none."""
        ...

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """Open for random access, mapped into memory where the store can; `MissingFileError` if
        absent.

        `tail_bytes` at its end will be read: a store that answers requests fetches them at once.
        """
        ...

    def size(self, path: str) -> int | None:
        """Return the size in bytes, or None if there is no such file."""
        ...

    def modified_ms(self, path: str) -> int | None:
        """Return when the file was written by the store's own clock, in milliseconds since the
        epoch, or None if there is no such file. Never on the hot path.
        """
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the paths starting with `prefix`, in order of name. Never on the hot path."""
        ...

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the names of the folders in a folder, in order. Never on the hot path."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file; it is not an error if it doesn't exist."""
        ...

    def within(self, folder: str) -> Store:
        """Return the store whose root is a folder of this one."""
        ...


class Rewriter(Protocol):
    """Writes a base file's next version: the same rows at the same places, some values new."""

    def compared(self, source: pa.NativeFile, file: BaseFile, edits: Edits) -> ComparedEdits:
        """Return what of `edits` is new to `source`, or all where that would cost more than it
        saves.

        As `rewrite` otherwise, but that nothing is written.
        """
        ...

    def rewrite(
        self,
        source: pa.NativeFile,
        file: BaseFile,
        edits: Edits,
        schema: TableSchema,
        sink: pa.NativeFile,
    ) -> WrittenBase:
        """Write `source` with `edits` to `sink`, in the layout of `schema`; neither is closed.

        `source` is open for random access and its tail was compared with `file`. Columns added to
        the table since it was written are null where not edited. Called from several threads at
        once, also for one file. Blocks; `CorruptFileError` naming `file.path` if the source cannot
        be decoded, `UnsupportedError` if it turns out, `sink` having been written to, that it can
        only be rewritten plainly.
        """
        ...


class LogKeeper(Protocol):
    """Writes checkpoints of one table's log, in the form that every Delta reader knows. A port
    although one adapter has it: a store's library writes them, which the protocol may not import.
    """

    def checkpoint(self, version: int) -> None:
        """Write the checkpoint of `version` and the hint to it, durably; may be called twice.

        Blocks; `StorageError` if it fails, which is harmless: a checkpoint only saves time.
        """
        ...


class Clock(Protocol):
    """Time. Nothing is ordered by it: it stamps commits and measures ages and leases."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump forwards and backwards."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start."""
        ...

    def wait(self, seconds: float) -> object:
        """Block the calling thread until so many seconds have passed on this clock."""
        ...


class Entropy(Protocol):
    """Randomness, so that a test can replay a run from its seed."""

    def bits(self, count: int) -> int:
        """Return `count` random bits; values never repeat in practice for 63 bits and more."""
        ...


class Progress(Protocol):
    """Who watches long work. Any thread may call it; a call returns at once.

    Work says what its units are: bytes of files, or rows.
    """

    def expect(self, units: int) -> None:
        """So many more units are to be done."""
        ...

    def advance(self, units: int) -> None:
        """So many more units are done."""
        ...


class Unwatched:
    """`Progress` of work that nobody watches."""

    def expect(self, units: int) -> None:
        """See `Progress.expect`."""

    def advance(self, units: int) -> None:
        """See `Progress.advance`."""


UNWATCHED = Unwatched()


def watched(files: Iterable[BaseFile], progress: Progress) -> Iterator[BaseFile]:
    """Yield files; the bytes of each are done when the next one is asked for."""
    for file in files:
        yield file
        progress.advance(file.bytes)


class SchemaSource(Protocol):
    """Schemas by the numbers under which a registry keeps them. Sent to tasks, so it is pickled;
    calls block. A port although one adapter has it: planning and table may not ask a server.
    """

    def schemas(self, numbers: Iterable[int]) -> Mapping[int, SchemaText]:
        """Return the schemas of these numbers, without those that the registry says it lacks.

        `SourceUnavailable` if it can't be asked or refuses: nothing may then be decoded.
        """
        ...
