"""How far a table is filled with rows that were read from its source in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lakesplice.model.position import BEFORE_ALL, Position

# A range of chunk numbers, half-open.
ChunkRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BackfillState:
    """Which of the `chunks`, numbered from 0, are in the table, as ascending ranges that don't
    touch.

    `highest` is the highest position at which one of them was read: once every partition of the
    topic is past it, the table equals the source at one moment. `rows` is the number of their rows.
    """

    chunks: int
    done: tuple[ChunkRange, ...] = ()
    highest: Position = BEFORE_ALL
    rows: int = 0

    @property
    def done_count(self) -> int:
        """How many chunks are in the table."""
        return sum(end - start for start, end in self.done)

    @property
    def is_whole(self) -> bool:
        """Whether all chunks are in the table."""
        return self.done_count == self.chunks

    def open_chunks(self) -> list[int]:
        """The chunks that are still to be read, ascending."""
        return [chunk for chunk in range(self.chunks) if not self.has(chunk)]

    def has(self, chunk: int) -> bool:
        """Whether a chunk is in the table."""
        return any(start <= chunk < end for start, end in self.done)

    def with_chunks(self, chunks: Iterable[int], highest: Position, rows: int) -> BackfillState:
        """Return the state with these chunks in the table, read at `highest` or below."""
        ranges: list[ChunkRange] = []
        for start, end in sorted((*self.done, *((chunk, chunk + 1) for chunk in chunks))):
            if ranges and start <= ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(end, ranges[-1][1])
            else:
                ranges.append((start, end))
        highest = max(self.highest, highest)
        return replace(self, done=tuple(ranges), highest=highest, rows=self.rows + rows)
