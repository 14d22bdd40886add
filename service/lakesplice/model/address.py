"""Row addresses: (file group, row position). An address is valid as long as the file group is
live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lakesplice.errors import CorruptFileError

GROUP_BITS = 63

# The value of each partition column in the log's form; None for null and for an empty text.
Partition: TypeAlias = tuple[str | None, ...]


class RowAddress(NamedTuple):
    """Where a row is: its file group, and its row position there."""

    group: int
    row: int


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """Rows that stay together: a file group and its number of rows, which never changes."""

    group: int
    rows: int

    def __post_init__(self) -> None:
        if not 0 <= self.group < 1 << GROUP_BITS or self.rows < 0:
            raise CorruptFileError("a segment is out of range", group=self.group, rows=self.rows)


def group_name(group: int) -> str:
    """A file group in the form of file names and messages: 16 hexadecimal digits."""
    return f"{group:016x}"


@dataclass(frozen=True, slots=True)
class Cube:
    """Base files whose rows were ordered together: by the columns with the ids `by`, in this order.

    `number` is random; one cube has one number.
    """

    by: tuple[int, ...]
    number: int


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A Parquet data file: an ordered list of segments.

    `path` is relative to the table; `bytes` is its size; `splices` counts its rewrites. Row
    position p of a segment is row (rows of the segments before it) + p of the file. Pages have
    checksums of their own. The tail, that is the page index and the footer, has none in Parquet, so
    its size and its XXH3-128 checksum are recorded here (size 0: not recorded). `partition` has the
    partition of all its rows, and is empty in a table without partition columns. `cube` is the
    one that the file belongs to, if its rows were ordered by columns.
    """

    path: str
    bytes: int
    segments: tuple[Segment, ...]
    splices: int = 0
    tail_bytes: int = 0
    tail_checksum: str = ""
    partition: Partition = ()
    cube: Cube | None = None

    @property
    def rows(self) -> int:
        """The rows in the file, with tombstones."""
        return sum(segment.rows for segment in self.segments)
