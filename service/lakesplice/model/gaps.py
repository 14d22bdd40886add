"""Gaps: records of a topic that were passed over, so that a table lacks their changes."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.position import BEFORE_ALL, Position


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of a partition, `start` to `end` (exclusive), that were passed over and not read
    since.

    `end` is None if it isn't known, because the topic was deleted: `topic_id` says of which topic
    the offsets are. The partition had reached the position `after` before them; `before` is the
    lowest position that was read behind them and above `after`, None until there is one.
    """

    topic_id: str
    partition: int
    start: int
    end: int | None
    after: Position = BEFORE_ALL
    before: Position | None = None

    @property
    def text(self) -> str:
        """The offsets for people; without an end if that isn't known."""
        end = "" if self.end is None else self.end
        return f"{self.partition}:{self.start}-{end}"

    @property
    def offsets(self) -> int:
        """How many offsets it has, at least one."""
        return 1 if self.end is None else self.end - self.start
