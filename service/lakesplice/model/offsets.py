"""Offsets of records in a partition of a topic, and gaps: records that were passed over, so that a
table lacks their changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, NewType, TypeAlias

from lakesplice.model.position import BEFORE_ALL, Position

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


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of a partition, `start` to `end` (exclusive), that were passed over and not read
    since.

    `end` is None if it is unknown, because the topic was deleted: `topic_id` says which topic the
    offsets belong to. The partition had reached the position `after` before them; `before` is the
    lowest position above `after` that was read after them, None until there is one.
    """

    topic_id: str
    partition: int
    start: Offset
    end: Offset | None
    after: Position = BEFORE_ALL
    before: Position | None = None

    @property
    def text(self) -> str:
        """The offsets for people; without an end if that is unknown."""
        end = "" if self.end is None else self.end
        return f"{self.partition}:{self.start}-{end}"

    @property
    def offsets(self) -> int:
        """The number of its offsets, at least one."""
        return 1 if self.end is None else self.end - self.start
