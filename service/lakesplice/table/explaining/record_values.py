"""What is told of a topic's record, and how records are read to tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from lakesplice.model.manifest import SourceState
from lakesplice.model.position import Position
from lakesplice.planning.intake.line import RecordReading
from lakesplice.table.explaining.record_ranges import Ranges
from lakesplice.table.protocol.ports import SchemaSource


class Outcome(StrEnum):
    """What became of a record's change."""

    APPLIED = "applied"
    FOLDED = "folded"
    REPEATED = "repeated"
    OLDER = "older"
    BELOW_FENCE = "below-fence"
    BELOW_FLOOR = "below-purge-floor"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    DEAD_LETTER = "dead-letter"
    STOPPED = "stopped"
    UNREAD = "unread"
    TAKEN_BEFORE = "taken-before"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class RecordFate:
    """What became of a change of the key, in which version; a record may be of two changes, and
    may have been read more than once. `position` is its change's, None for a record that is none;
    `by` is what it was folded into, older than, or below. `detail` may quote a value.
    """

    topic: str
    partition: int
    offset: int
    time_ms: int
    outcome: Outcome
    version: int | None = None
    op: str | None = None
    position: Position | None = None
    by: Position | None = None
    reason: str = ""
    detail: str = ""


class TopicRecords(Protocol):
    """Reads a topic; every call blocks, and raises `SourceUnavailable`."""

    def offsets(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """Return per partition the earliest offset and one after the last."""
        ...

    def read(self, topic: str, ranges: Ranges) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of records, each of one partition and all in offset order: columns offset,
        timestamp (milliseconds), key, value and headers.
        """
        ...


@dataclass(frozen=True)
class RecordAccess:
    """How records of a table's topics are read: their topic, what the configuration says of each
    source, and the registry that they name schemas of, if there is one.
    """

    records: TopicRecords
    reading: Callable[[SourceState], RecordReading]
    registry: SchemaSource | None = None
