"""What a shadow is to be filled with: its source, and the chunks that its rows are read in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offsets
from lakesplice.model.position import Position

# The value of each key column, as a text that the reader of the source understands.
KeyBound = tuple[str, ...]


class FilledFrom(StrEnum):
    """Where a shadow's rows come from: tables of the source's database, files, the topic alone, or
    the newest snapshot in it.
    """

    DATABASE = "database"
    FILES = "files"
    TOPIC = "topic"
    SNAPSHOT = "snapshot"

    @property
    def is_replayed(self) -> bool:
        """Whether all rows come from the topic's records."""
        return self in (FilledFrom.TOPIC, FilledFrom.SNAPSHOT)


@dataclass(frozen=True, slots=True)
class ShadowPlan:
    """A shadow's source and chunks; never changes.

    `server` identifies the server of `database` and `table` that is read: positions are places in
    its binlog. `start` is a position that it had reached before the first chunk was read. Before
    that, `topic` had the offsets `ends`; what is above `start` came later. Chunk n has the rows
    whose keys are above `bounds[n - 1]` and not above `bounds[n]`; the first and last are open, so
    there is one chunk more than bounds. `rows` is about how many rows there are, -1 if that isn't
    known.

    If it is `filled_from` files, `server` is their folder, `start` the position that they were
    written at, and each of `bounds` a chunk: a part of a file.

    A shadow that is `filled_from` its topic has no chunks, server or start: its topic's records
    from `ends` on, the first that there are, have all rows. If it is `filled_from` a snapshot by
    the connector, `start` is the snapshot's position, and the records from `ends` on have its rows
    and all later changes.
    """

    shadow: str
    topic: str
    topic_id: str
    server: str
    database: str
    table: str
    start: Position
    created_ms: EpochMs
    ends: Offsets = field(default_factory=dict)
    bounds: tuple[KeyBound, ...] = ()
    rows: int = -1
    filled_from: FilledFrom = FilledFrom.DATABASE

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        match self.filled_from:
            case FilledFrom.DATABASE:
                return len(self.bounds) + 1
            case FilledFrom.FILES:
                return len(self.bounds)
            case FilledFrom.TOPIC | FilledFrom.SNAPSHOT:
                return 0

    def range_of(self, chunk: int) -> tuple[KeyBound | None, KeyBound | None]:
        """Return the keys of a chunk: those above the first bound and not above the second."""
        first = self.bounds[chunk - 1] if chunk else None
        last = self.bounds[chunk] if chunk < len(self.bounds) else None
        return first, last
