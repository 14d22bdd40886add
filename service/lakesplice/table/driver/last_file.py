"""A folder of a lake in which only the newest file counts; new content is written as a new file.

Existing files of a lake never change, and a bucket can't rename. So new content is a file with the
next number, and earlier files are deleted once it is durable. A reader that finds both uses the
newer one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lakesplice.errors import LakespliceError
from lakesplice.table.protocol.ports import Store


@dataclass(frozen=True)
class LastFile:
    """The content of such a folder. Every call blocks, and raises the store's errors."""

    lake: Store
    folder: str

    def read(self) -> bytes | None:
        """Return the last written content; None if there is none, or if it can't be read now."""
        found = self._all()
        with suppress(LakespliceError):
            return self.lake.read(found[-1]) if found else None
        return None

    def write(self, data: bytes) -> None:
        """Replace the content; of two writers at once, the first one's content is kept."""
        older = self._all()
        last = int(older[-1].rpartition("/")[2].partition(".")[0]) if older else 0
        self.lake.put_new(f"{self.folder}/{last + 1:012}.json", data)
        for path in older:
            self.lake.delete(path)

    def delete(self) -> None:
        """Delete the content; may be called twice."""
        for path in self._all():
            self.lake.delete(path)

    def _all(self) -> list[str]:
        return sorted(self.lake.list(f"{self.folder}/"))
