"""The results of a commit as values: it was made, or something on which it relies has changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakesplice.table.protocol.snapshot import Snapshot


class ConflictCode(StrEnum):
    """The precondition that no longer holds."""

    EXISTS = "exists"
    OFFSETS = "offsets"
    PARKED = "parked"
    GROUPS = "groups"
    INDEX = "index"
    SCHEMA = "schema"
    FILES = "files"
    DELTAS = "deltas"
    RUNS = "runs"
    VERSION = "version"
    UPSERTS = "upserts"
    SWEPT = "swept"
    RETENTION = "retention"
    FLOOR = "floor"
    CHUNKS = "chunks"
    FENCE = "fence"
    FEED = "feed"
    CONTENTION = "contention"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was committed, since something on which the intent relies has changed. Read and plan
    again.
    """

    reason: ConflictCode
    detail: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is durable and visible; `snapshot` is the table right after it."""

    snapshot: Snapshot
