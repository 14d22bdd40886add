"""A store on the local disk that survives a power loss.

Linux promises nothing about a file until the file and the folder that names it are synced, so:

    put_new   temporary file -> fsync -> hard link to its name -> unlink temporary -> fsync folder
    writer    create exclusively -> write -> fsync -> fsync folder

The hard link makes `put_new` atomic, and it refuses an existing name: readers see a whole file or
none. When a folder is first written, its chain up to the root is synced even if another process
made it, since that process may have died before it synced it.

Temporary files are in `_lakesplice/tmp` of the outermost root: on the same file system, and hidden
from readers of the log. Only a crash leaves them; a vacuum deletes old ones.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from lakesplice.errors import MissingFileError, StorageError, UsageError
from lakesplice.formats.parquet import ROW_GROUP_BYTES_MAX
from lakesplice.model.moments import EpochMs

TEMPORARY = "_lakesplice/tmp"
_FORBIDDEN_PARTS = frozenset(("", ".", ".."))
# Folders whose chain this process has synced, by inode: one re-created under the same name is
# another. Kept per process, since a worker gets new stores with each batch.
_synced: dict[Path, int] = {}


class LocalStore:
    """`Store` on a local folder, which is created with its first file."""

    row_group_bytes = ROW_GROUP_BYTES_MAX

    def __init__(self, root: str | Path, _outermost: Path | None = None) -> None:
        self.root = Path(root).absolute()
        self._outermost = _outermost or self.root

    def __repr__(self) -> str:
        return f"LocalStore({str(self.root)!r})"

    def __str__(self) -> str:
        """Its path."""
        return str(self.root)

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`; False, too, is returned only after the existing file is durable."""
        target = self._resolve(path)
        with _writing(path):
            self._make_folder(target.parent)
            temporary = self._temporary()
            try:
                _write_synced(temporary, data)
                created = _link(temporary, target)
            finally:
                # A file that can't be removed is left over: its error must not hide the first one.
                with suppress(OSError):
                    temporary.unlink()
            if not created:
                sync(target)
            sync(target.parent)
        return created

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        """See `Store.writer`; what is yielded is an `OSFile`, so nothing passes through Python."""
        target = self._resolve(path)
        with _writing(path):
            self._make_folder(target.parent)
            # Kept open to the end: an fsync reports only failures that happened after its
            # descriptor was opened.
            descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
            try:
                with pa.OSFile(str(target), "wb") as sink:
                    yield sink
                os.fsync(descriptor)
                sync(target.parent)
            except BaseException:
                with suppress(OSError):
                    target.unlink()
                raise
            finally:
                os.close(descriptor)

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        target = self._resolve(path)
        with _reading(path):
            return target.read_bytes()

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:  # noqa: ARG002
        """See `Store.open`; mapped into memory, so that reading copies nothing."""
        target = self._resolve(path)
        with _reading(path):
            return pa.memory_map(str(target), "r")

    def size(self, path: str) -> int | None:
        """See `Store.size`."""
        target = self._resolve(path)
        with _reading(path):
            try:
                return target.stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def modified_ms(self, path: str) -> EpochMs | None:
        """See `Store.modified_ms`."""
        target = self._resolve(path)
        with _reading(path):
            try:
                return EpochMs(target.stat().st_mtime_ns // 1_000_000)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`; temporary files are left out."""
        folder = prefix.rpartition("/")[0]
        base = self._resolve(folder) if folder else self.root
        with _reading(prefix):
            found = sorted(file.relative_to(self.root).as_posix() for file in self._files(base))
        return (path for path in found if path.startswith(prefix))

    def folders(self, folder: str = "") -> Sequence[str]:
        """See `Store.folders`."""
        base = self._resolve(folder) if folder else self.root
        with _reading(folder):
            try:
                return sorted(entry.name for entry in os.scandir(base) if entry.is_dir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def delete(self, path: str) -> None:
        """See `Store.delete`; after a power loss the file may be there again."""
        target = self._resolve(path)
        with _writing(path), suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()

    def drop_temporaries(self, before_ms: EpochMs) -> int:
        """Delete temporary files that were last written before a moment, by the disk's clock;
        return how many.

        Harmless at any moment: a writer whose file is deleted before it is linked fails with
        `StorageError` and has written nothing. Raises `StorageError` if the disk fails.
        """
        dropped = 0
        for folder in {self.root / TEMPORARY, self._outermost / TEMPORARY}:
            with _writing(TEMPORARY):
                for file in _entries(folder):
                    with suppress(FileNotFoundError):
                        if file.stat().st_mtime_ns // 1_000_000 < before_ms:
                            file.unlink()
                            dropped += 1
        return dropped

    def within(self, folder: str) -> LocalStore:
        """See `Store.within`."""
        return LocalStore(self._resolve(folder), self._outermost)

    def _resolve(self, path: str) -> Path:
        if not _FORBIDDEN_PARTS.isdisjoint(path.split("/")) or "\0" in path:
            raise UsageError("a path must be relative and stay within the store", path=path)
        return self.root / path

    def _temporary(self) -> Path:
        folder = self._outermost / TEMPORARY
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(16)

    def _files(self, base: Path) -> Iterator[Path]:
        hidden = self._outermost / TEMPORARY
        for folder, _, names in os.walk(base, onerror=_raise_unless_gone):
            if Path(folder) != hidden:
                yield from (Path(folder, name) for name in names)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder whose path from the outermost one is durable; the caller syncs its
        content.
        """
        if _is_synced(folder):
            return
        existing = next(above for above in (folder, *folder.parents) if above.exists())
        folder.mkdir(parents=True, exist_ok=True)
        top = self._outermost if existing.is_relative_to(self._outermost) else existing
        made = [folder]
        while made[-1] != top:
            parent = made[-1].parent
            sync(parent)
            if _is_synced(parent):
                break
            made.append(parent)
        for above in made:
            inode = _inode(above)
            if inode is not None:
                _synced[above] = inode


def _is_synced(folder: Path) -> bool:
    return folder in _synced and _synced[folder] == _inode(folder)


def _entries(folder: Path) -> list[Path]:
    try:
        return [*folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def _link(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    return True


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def sync(path: Path) -> None:
    """Make a file or a folder durable; `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFileError("there is no such file in the store", path=path) from error
    except OSError as error:
        _raise_storage_error(error, path)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without an errno it isn't the disk's fault: pyarrow reports in this way a bad Parquet
        # file that the writer's block was reading.
        if error.errno is None:
            raise
        _raise_storage_error(error, path)


_RIGHTS = "give this process's user the right to read and write there"
_SPACE = "free space on the disk"
_REMEDIES = {
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "mount it writable, or give another folder",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EMFILE: "raise the limit of open files",
    errno.ENFILE: "raise the limit of open files",
    errno.ENAMETOOLONG: "give the table a shorter name",
    errno.EIO: "repair the disk",
}


def _raise_storage_error(error: OSError, path: str) -> NoReturn:
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    remedy = _REMEDIES.get(error.errno or 0, "check the disk and the folder")
    raise StorageError(
        f"the local store failed: {reason}; {remedy}, then try again",
        path=path or str(error.filename),
        file=None if error.filename is None else str(error.filename),
        errno=error.errno,
    ) from error
