"""Why records are refused: single dead letters, or a stop for all further records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.parking import ParkCode


class DeadReason(StrEnum):
    """Why a record can't be decoded; the dead letter stores the code."""

    EMPTY = "empty"
    NOT_JSON = "not-json"
    NOT_AVRO = "not-avro"
    UNKNOWN_SCHEMA = "unknown-schema"
    NOT_AN_ENVELOPE = "not-an-envelope"
    WRONG_TABLE = "wrong-table"
    WRONG_TYPE = "wrong-type"
    OUT_OF_RANGE = "out-of-range"
    MISSING_FIELD = "missing-field"
    UNEXPECTED_FIELD = "unexpected-field"
    UNKNOWN_OP = "unknown-op"
    MISSING_IMAGE = "missing-image"
    MISSING_POSITION = "missing-position"
    MISSING_KEY = "missing-key"
    KEY_MISMATCH = "key-mismatch"


@dataclass(frozen=True)
class DeadLetters:
    """Records that can't be decoded: their indexes, ascending, each with a code and a detail."""

    rows: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    reason: tuple[str, ...] = ()
    detail: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Stop:
    """The record `row` and all after it in its partition must not be applied: the table parks."""

    row: int
    code: ParkCode
    detail: str
