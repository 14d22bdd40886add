"""A file on the local disk that gets its name when it is complete, on disk, and checked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from lakesplice.errors import StorageError, UsageError
from lakesplice.splicing.options import Options
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.local import LocalStore

_THREADS_MAX = 8

Check = Callable[[pa.NativeFile, str], None]


def options_for(threads: int | None, *, verify: bool, erase: bool = False) -> Options:
    """Return settings for a file on the local disk; by default one thread per core, up to 8."""
    return Options(
        threads=threads or min(os.cpu_count() or 1, _THREADS_MAX),
        erase=erase,
        verify=verify,
        open_scratch=ScratchFile,
    )


@contextmanager
def opened(path: Path) -> Iterator[pa.NativeFile]:
    """Yield a file for reading; `MissingFileError`, `StorageError`."""
    with LocalStore(path.parent).open(path.name) as source:
        yield source


def refuse_existing(target: Path) -> None:
    """Raise `UsageError` if there is a file of that name."""
    if target.exists():
        raise UsageError("the target exists; choose another name", target=str(target))


@contextmanager
def appearing(target: Path, check: Check | None = None) -> Iterator[pa.NativeFile]:
    """Yield a sink for a Parquet file. The finished file is read again from the disk before it gets
    its name.

    Its footer and all offset indexes are read, and `check` is called with the file and its
    temporary name. If one of these raises, the error is raised and nothing is left. `UsageError` if
    another process created a file of that name meanwhile.
    """
    store = LocalStore(target.parent)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        with store.writer(partial.name) as sink:
            yield sink
        with opened(partial) as written:
            _check_indexes(SourceFile(written, str(partial)))
            if check is not None:
                check(written, str(partial))
        _link(partial, target)
    finally:
        with suppress(OSError):
            partial.unlink()


def _check_indexes(file: SourceFile) -> None:
    for row_group in range(len(file.footer.row_groups)):
        for leaf in file.footer.leaves:
            file.offset_index(row_group, leaf.column)


def _link(partial: Path, target: Path) -> None:
    try:
        os.link(partial, target)
    except FileExistsError:
        raise UsageError("the target exists; choose another name", target=str(target)) from None
    except OSError as error:
        raise StorageError(
            "the complete new file could not be given its name; check the folder's rights and disk",
            target=str(target),
            cause=str(error),
        ) from None
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
