"""The fate of a topic's record, and the ports by which records are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.table.protocol.ports import SchemaSource


class RecordOutcome(StrEnum):
    """The outcome of a record's change."""

    APPLIED = "applied"
    FOLDED = "folded"
    REPEATED = "repeated"
    OLDER = "older"
    BELOW_FENCE = "below-fence"
    BELOW_FLOOR = "below-purge-floor"
    ERASED = "erased"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    DEAD_LETTER = "dead-letter"
    STOPPED = "stopped"
    UNREAD = "unread"
    BEFORE_HISTORY = "taken-before"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class RecordFate:
    """The fate of a record of the key, and the version of it.

    A record with two changes has two fates, and so has a record that was read twice. `position` is
    its change's, None if it is no change. `by` is the position of the change, row, fence or floor
    that decided the outcome. `detail` may quote a value.
    """

    topic: str
    partition: int
    offset: Offset
    time_ms: EpochMs
    outcome: RecordOutcome
    version: int | None = None
    op: str | None = None
    position: Position | None = None
    by: Position | None = None
    reason: str = ""
    detail: str = ""


class TopicRecords(Protocol):
    """Reads the records of a topic. Every call blocks, and may raise `SourceUnavailable`."""

    def offsets(self, topic: str) -> OffsetRanges:
        """Return per partition the earliest offset, and the offset after the last record."""
        ...

    def read(self, topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of records, each of one partition, in offset order: columns offset,
        timestamp (ms), key, value and headers.
        """
        ...


@dataclass(frozen=True)
class RecordAccess:
    """How to read the records of a table's topics again: the reader, the configuration for each
    source, and the schema registry if the records name schemas in one.
    """

    records: TopicRecords
    reading: Callable[[SourceState], RecordReading]
    registry: SchemaSource | None = None
