"""The settings of what keeps a table tidy: its log, its files, old versions."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lakesplice.config.quantities import Bytes, Seconds
from lakesplice.config.sections.section import DAY, Section
from lakesplice.planning.upkeep.file_merge import FILE_MERGE_POLICY
from lakesplice.planning.upkeep.retention import PURGE_SECONDS_MIN, RETENTION_SECONDS_MIN


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
        description="Base files below this size are small; 0: nothing is merged.",
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


class PurgeSettings(Section):
    """When deleted rows leave base files for good."""

    after: Seconds | None = Field(
        default=None,
        ge=PURGE_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long ago a row must have been deleted, by the source's clock, to leave its"
        " table for good; without it none does.",
    )
    every: Seconds = Field(
        default=DAY, ge=1.0, le=365 * DAY, description="How often to look for such rows in a table."
    )
    ratio_min: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of a base file's rows that must be such for it to be rewritten, as a"
        " ratio.",
    )


class CompactionSettings(Section):
    """When deltas are spliced into their base files; a table is due past any threshold."""

    threads: int = Field(
        default=2, ge=1, le=64, description="Tables compacted at the same time, in threads."
    )
    tasks_max: int = Field(
        default=4,
        ge=1,
        le=1_024,
        description="Most rewrites running at once over all tables, in tasks.",
    )
    deltas_max: int = Field(
        default=20, ge=1, le=10_000, description="Deltas that may wait in a table, in files."
    )
    bytes_max: Bytes = Field(
        default=128 * 2**20, ge=1, le=2**40, description="Bytes of deltas that may wait in a table."
    )
    age_max: Seconds = Field(
        default=1_800.0,
        ge=0.1,
        le=30 * DAY,
        description="How long a change may wait before the read-optimised view must show it.",
    )
    ratio_max: float = Field(
        default=0.1,
        gt=0,
        le=100,
        description="Waiting changes that a table may have per row of its base files, as a ratio.",
    )
    changes_per_page_min: float = Field(
        default=200.0,
        gt=0,
        le=1_000_000,
        description="Waiting changes per touched page (of 4096 rows) that make a rewrite worth it.",
    )
    back_pressure_deltas: int = Field(
        default=200,
        ge=2,
        le=100_000,
        description="Waiting deltas at which a table's ingest pauses until they are fewer.",
    )
    poll_seconds: Seconds = Field(
        default=5.0, ge=0.05, le=3_600.0, description="How often to look for tables that are due."
    )


class IndexSettings(Section):
    """The row index."""

    runs_max: int = Field(
        default=8, ge=1, le=64, description="Runs a table's index may have before they are merged."
    )
