"""What happens to disks of the demo: a folder becomes read-only, or its disk is small and full.

All of it needs root, and ends with the demo.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

_CHUNK = bytes(1 << 20)
_FILLER = ".filler"


class Disks:
    """Mounts over folders of one demo; `close` ends all of them."""

    def __init__(self) -> None:
        self._read_only: list[Path] = []
        self._small: list[Path] = []

    def make_read_only(self, folder: Path) -> None:
        """Let no process write in a folder any more."""
        subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
        self._read_only.append(folder)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)

    def make_writable(self) -> None:
        """End what `make_read_only` did."""
        while self._read_only:
            subprocess.run(["umount", "-l", str(self._read_only.pop())], check=True)

    def make_small(self, folder: Path, megabytes: int) -> None:
        """Move a folder, which no process may use now, to a disk of its own."""
        kept = folder.with_name(f"{folder.name}-before")
        shutil.copytree(folder, kept)
        options = f"size={megabytes}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
        self._small.append(folder)
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        shutil.rmtree(kept)

    def fill(self, folder: Path) -> None:
        """Write into a small disk until nothing fits any more."""
        assert folder in self._small
        with (folder / _FILLER).open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(_CHUNK)
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise

    def empty(self, folder: Path) -> None:
        """Delete what `fill` wrote."""
        (folder / _FILLER).unlink(missing_ok=True)

    def mend(self) -> None:
        """Let every process write everywhere again."""
        self.make_writable()
        for folder in self._small:
            with suppress(OSError):
                self.empty(folder)

    def close(self) -> None:
        """End all mounts; what is on small disks is lost."""
        for folder in (*self._read_only, *self._small):
            subprocess.run(["umount", "-l", str(folder)], check=False)
