"""Offsets of records in a partition of a topic.

A partition keeps a record's offset for good; offsets may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NewType, TypeAlias

Offset = NewType("Offset", int)
"""A record's offset in its partition, as Kafka counts; not a place in a binlog or a row."""

NO_OFFSET = Offset(-1)
"""Stands for an offset that isn't known."""

Offsets: TypeAlias = Mapping[int, Offset]
"""An offset per partition of one topic."""


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` up to `end` (exclusive)."""

    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        """The number of its offsets; 0 or less if there are none."""
        return self.end - self.start


OffsetRanges: TypeAlias = Mapping[int, OffsetRange]
"""A range of offsets per partition of one topic."""


class PartitionOffset(NamedTuple):
    """The partition and the offset of a record of one topic."""

    partition: int
    offset: Offset
