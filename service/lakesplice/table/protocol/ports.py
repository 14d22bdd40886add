"""What the protocol needs from outside. Adapters implement these; tests make them fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from lakesplice.formats.events import SchemaText, schema_ids
from lakesplice.formats.parquet import WrittenBase
from lakesplice.model.address import BaseFile
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ComparedEdits, Edits


class Store(Protocol):
    """Files under one root, named by relative paths with `/`.

    Every write creates a file; an existing file is never changed, so a paused driver or a retried
    task can't overwrite what another committed. A call that raises `StorageError` may or may not
    have taken effect. All calls block; all are safe from several threads and processes.
    """

    @property
    def row_group_bytes(self) -> int:
        """The size in memory of a new base file's row groups, chosen so that a splice copies most
        of them.
        """
        ...

    def put_new(self, path: str, data: bytes) -> bool:
        """Create the file whole and durably; False if the name exists (the existing file is
        unchanged).

        Readers see all of it or nothing. True means that it survives a power loss.
        """
        ...

    def writer(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Create a file by writing it from start to end; leaving the block makes it durable.

        If the block is left by an exception, the file is removed. An existing name raises
        `StorageError`: names have a random part, so it would be a defect.
        """
        ...

    def read(self, path: str) -> bytes:
        """Return the whole file; `MissingFileError` if it doesn't exist."""
        ...

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """Open for random access, mapped into memory if the store can; `MissingFileError` if it
        doesn't exist.

        The last `tail_bytes` will be read: a store that is reached by requests fetches them at
        once.
        """
        ...

    def size(self, path: str) -> int | None:
        """Return the size in bytes, or None if the file doesn't exist."""
        ...

    def modified_ms(self, path: str) -> EpochMs | None:
        """Return when the file was written, in milliseconds since 1970 by the store's own clock, or
        None if it doesn't exist. Not for code that runs in every batch.
        """
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the paths that start with `prefix`, in order of name. Not for code that runs in
        every batch.
        """
        ...

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the names of the folders in a folder, in order. Not for code that runs in every
        batch.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete the file; it is no error if it doesn't exist."""
        ...

    def within(self, folder: str) -> Store:
        """Return the store whose root is a folder of this one."""
        ...


class Rewriter(Protocol):
    """Writes a base file's next version: the same rows at the same addresses, with some new
    values.
    """

    def compared(self, source: pa.NativeFile, file: BaseFile, edits: Edits) -> ComparedEdits:
        """Return the edits that change a value of `source`, or all edits if the comparison would
        cost more than it saves.

        Arguments and errors as in `rewrite`; nothing is written.
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
        """Write `source` with `edits` to `sink`, in the layout of `schema`; close neither.

        `source` is open for random access, and its tail was compared with `file`. A column that was
        added to the table later is null, except for its edits. Called from several threads at once,
        also for one file. Blocks. `CorruptFileError` with `file.path` if the source can't be
        decoded. `UnsupportedError` if it turns out, after something was written to `sink`, that
        only the plain rewrite can do it.
        """
        ...


class LogKeeper(Protocol):
    """Writes checkpoints of one table's log in the form that every Delta reader knows. It is a port
    although it has one adapter: a store's library writes them, which the protocol may not import.
    """

    def checkpoint(self, version: int) -> None:
        """Write the checkpoint of `version` and the hint to it, durably; may be called twice.

        Blocks. `StorageError` if it fails; that is harmless, since a checkpoint only saves time.
        """
        ...

    def checkpoint_without_removed(self, version: int) -> None:
        """Write the same without the files that the log remembers as removed: their names and
        partition values may be what was erased.
        """
        ...


class Clock(Protocol):
    """The time. It stamps commits and measures ages and leases; nothing is ordered by it."""

    def now_ms(self) -> EpochMs:
        """Milliseconds since the epoch; may jump forwards and backwards."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        ...

    def wait(self, seconds: float) -> object:
        """Block the calling thread until so many seconds have passed on this clock."""
        ...


class Entropy(Protocol):
    """Random numbers, so that a test can repeat a run from its seed."""

    def bits(self, count: int) -> int:
        """Return `count` random bits; with 63 bits and more, values don't repeat in practice."""
        ...


class Progress(Protocol):
    """Receives the progress of long work. Any thread may call it; a call returns at once.

    Work says what its units are: bytes of files, or rows.
    """

    def expect(self, units: int) -> None:
        """Add to the number of units to do."""
        ...

    def advance(self, units: int) -> None:
        """Add to the number of units that are done."""
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
    """Schemas by their numbers in a registry. It is pickled and sent to tasks; calls block. It is a
    port although it has one adapter: planning and table may not ask a server.
    """

    def schemas(self, numbers: Iterable[int]) -> Mapping[int, SchemaText]:
        """Return the schemas with these numbers, except for those that the registry says it lacks.

        Raises `SourceUnavailable` if it can't be reached or refuses: then nothing may be decoded.
        """
        ...


def schemas_of(
    batches: Iterable[pa.RecordBatch], source: SchemaSource | None
) -> Mapping[int, SchemaText] | None:
    """Return the schemas that records name; None without a registry. Blocks."""
    if source is None:
        return None
    return source.schemas(
        schema_ids(batch.column(name) for batch in batches for name in ("key", "value"))
    )
