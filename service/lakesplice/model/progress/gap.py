"""Gaps: records that were passed over, so that a table lacks their changes."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import MetGtids


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of a partition, `start` to `end` (exclusive), that were passed over and not read
    since.

    `end` is None if it is unknown, because the topic was deleted: `topic_id` says which topic the
    offsets belong to. The partition had reached the position `after` before them; `before` is the
    lowest position above `after` that was read after them, None until there is one. If their
    records are read after all, these two bound their positions.

    `met` is what the partition had met before them. It is None in gaps of older versions and in
    those that were joined, whose records can't be judged.
    """

    topic_id: str
    partition: int
    start: Offset
    end: Offset | None
    after: Position = BEFORE_ALL
    before: Position | None = None
    met: MetGtids | None = None

    @property
    def text(self) -> str:
        """The offsets for people; without an end if that is unknown."""
        end = "" if self.end is None else self.end
        return f"{self.partition}:{self.start}-{end}"

    @property
    def offsets(self) -> int:
        """The number of its offsets, at least one."""
        return 1 if self.end is None else self.end - self.start

    def holds(self, offset: int) -> bool:
        """Whether a record is in it, if its end is known."""
        return self.end is not None and self.start <= offset < self.end
