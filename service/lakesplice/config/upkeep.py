"""The settings of what keeps a table tidy: its log, its files, old versions."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lakesplice.config.quantities import Bytes, Seconds
from lakesplice.config.section import DAY, Section
from lakesplice.planning.file_merge import FILE_MERGE_POLICY
from lakesplice.planning.retention import RETENTION_SECONDS_MIN


class LogSettings(Section):
    """How the log of each table is kept short."""

    checkpoint_every: int = Field(
        default=10, ge=1, le=10_000, description="Commits between two checkpoints of a table's log."
    )
    retention: Seconds = Field(
        default=7 * DAY,
        ge=0,
        le=3_650 * DAY,
        description="How long old versions stay readable: their log entries,"
        " and the files that only they name.",
    )
    readers_may_fail: bool = Field(
        default=False,
        description="Allow a retention below an hour, at which who reads or compacts a table just"
        " then may find files gone.",
    )

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if self.retention < RETENTION_SECONDS_MIN and not self.readers_may_fail:
            raise ValueError(
                "retention must be an hour at least, or readers_may_fail must say that it may harm"
            )
        return self


class MergeSettings(Section):
    """How small base files become larger ones."""

    files_max: int = Field(
        default=FILE_MERGE_POLICY.files_max,
        ge=2,
        le=100_000,
        description="Small base files at which some of a table's are merged, in files.",
    )
    small_bytes: Bytes = Field(
        default=FILE_MERGE_POLICY.small_bytes,
        ge=0,
        le=2**30,
        description="Base files below this size are small; 0: none is, and nothing is merged.",
    )
    target_bytes: Bytes = Field(
        default=FILE_MERGE_POLICY.target_bytes,
        ge=2**20,
        le=2**32,
        description="Size that a merged file stays below, about; a task holds as much in memory.",
    )


class VacuumSettings(Section):
    """How the files go that no retained version needs."""

    every: Seconds = Field(
        default=3_600.0,
        ge=1.0,
        le=30 * DAY,
        description="How often to delete files that only versions past `log.retention` name.",
    )
    orphans_every: Seconds = Field(
        default=DAY,
        ge=60.0,
        le=365 * DAY,
        description="How often to list a table for files that nothing names; they go if they are"
        " older than `log.retention`, than a day, and than the listing before.",
    )
