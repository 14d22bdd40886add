"""Folders of queries' checkpoints: each belongs to one process and is removed after it, however it
ended.

A lock file beside each folder is locked as long as its process lives; the system unlocks it when
the process is killed. So a left-over folder is distinguished from one in use without process ids,
which mean nothing in another container. If the file system has no locks, nothing is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX, _SUFFIX = ".lakesplice-query-", ".lock"


class QueryFolder:
    """An empty temporary folder, until `remove`."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
        self._lock, self._descriptor = Path(name), descriptor
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        self.path = _folder_of(self._lock)
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder with its content; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.unlink(missing_ok=True)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def remove_leftovers() -> int:
    """Remove the folders of processes that died; return how many there were."""
    found = list(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"))
    return sum(_removed(lock) for lock in found)


def _removed(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False  # another process's, or deleted meanwhile
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(_folder_of(lock), ignore_errors=True)
        lock.unlink(missing_ok=True)
    except OSError:
        return False  # its process lives
    finally:
        os.close(descriptor)
    return True


def _folder_of(lock: Path) -> Path:
    return lock.with_name(lock.name.removeprefix(".").removesuffix(_SUFFIX))
