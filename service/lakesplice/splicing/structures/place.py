"""Where in which file something was found, for errors that name both."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.errors import CorruptFileError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a file, in words: `footer`, `offset index of row group 0, column 3 (price)`."""

    path: str
    part: str

    def within(self, part: str) -> Place:
        """Return a smaller part of this one."""
        return Place(self.path, f"{part} of {self.part}")

    def corrupt(self, reason: str, **facts: object) -> CorruptFileError:
        """Return the error for a defect found here; the caller raises it."""
        return CorruptFileError(
            f"a Parquet file is damaged: {reason}; restore or rebuild it",
            path=self.path,
            place=self.part,
            **facts,
        )

    def too_large(self, what: str, **facts: object) -> UnsupportedError:
        """Return the error for metadata beyond what is read at once; the caller raises it."""
        return UnsupportedError(
            f"a Parquet file's metadata is too large: {what}; write it as several files",
            path=self.path,
            place=self.part,
            **facts,
        )
