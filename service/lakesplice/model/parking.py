"""Why a table, or one of its topics, is parked, and how many dead letters park it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakesplice.model.offsets import NO_OFFSET, Offset


class ParkCode(StrEnum):
    """Why a table is parked."""

    NO_KEY = "no-key"
    TYPES_UNDECLARED = "types-undeclared"
    SCHEMA_CHANGE = "schema-change"
    UNSUPPORTED = "unsupported"
    POSITIONS_FELL_BACK = "positions-fell-back"
    OFFSETS_GONE = "offsets-gone"
    FORMAT_CHANGED = "format-changed"
    ORDER_UNKNOWN = "order-unknown"
    NOT_AN_INSERT = "not-an-insert"
    DEAD_LETTERS = "dead-letters"
    PARTIAL_IMAGE = "partial-image"
    TOPIC_RECREATED = "topic-recreated"
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    ROWS_MOVED = "rows-moved"
    KEY_CHANGED = "key-changed"
    NEW_TABLE = "new-table"
    CORRUPT = "corrupt"
    JOB_DIED = "job-died"
    FED_BY_HAND = "fed-by-hand"
    BY_HAND = "by-hand"


@dataclass(frozen=True, slots=True)
class ParkReason:
    """Why a table doesn't continue, in words that say what to do, and the record at which it
    stopped.
    """

    code: ParkCode
    detail: str
    topic: str = ""
    partition: int = -1
    offset: Offset = NO_OFFSET

    @property
    def is_of_topic(self) -> bool:
        """Whether the table could continue with its other topics, if it had any."""
        whole = self.code is ParkCode.BY_HAND and not self.topic
        return self.code is not ParkCode.CORRUPT and not whole


@dataclass(frozen=True, slots=True)
class DeadLetterLimit:
    """The share of a batch's records of one table, 0 to 1, that may be dead letters, and how many
    there must be for the limit to apply, open ones included. A share of 1 allows all.
    """

    share_max: float
    count_min: int = 1


NO_LIMIT = DeadLetterLimit(1.0)
