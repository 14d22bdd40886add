"""Settings of a table's maintenance: its log, its files, old versions."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lakesplice.config.quantities import Bytes, Seconds
from lakesplice.config.sections.section import DAY, Section
from lakesplice.planning.upkeep.file_merge import FILE_MERGE_POLICY
from lakesplice.planning.upkeep.retention import PURGE_SECONDS_MIN, RETENTION_SECONDS_MIN


class LogSettings(Section):
    """How long the log of each table is kept."""

    checkpoint_every: int = Field(
        default=10, ge=1, le=10_000, description="Commits between two checkpoints of a table's log."
    )
    retention: Seconds = Field(
        default=7 * DAY,
        ge=0,
        le=3_650 * DAY,
        description="How long old versions stay readable. Then their log entries are deleted,"
        " and the files that only they need.",
    )
    readers_may_fail: bool = Field(
        default=False,
        description="Allow a retention below an hour. Files may then be deleted while a reader"
        " or a compaction still needs them.",
    )

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if self.retention < RETENTION_SECONDS_MIN and not self.readers_may_fail:
            raise ValueError("retention must be at least an hour unless readers_may_fail is set")
        return self


class MergeSettings(Section):
    """When small base files are merged into larger ones."""

    files_max: int = Field(
        default=FILE_MERGE_POLICY.files_max,
        ge=2,
        le=100_000,
        description="How many small base files a table may have before some of them are merged.",
    )
    small_bytes: Bytes | None = Field(
        default=None,
        ge=0,
        le=2**30,
        description="Base files below this size count as small; without it those below a quarter"
        " of a merged file's size. With 0 no files are merged.",
    )
    target_bytes: Bytes | None = Field(
        default=None,
        ge=2**20,
        le=2**32,
        description="The approximate size below which a merged file stays, and the size of the"
        " files that clustering writes. Without it the table's size decides (docs/layout.md). A"
        " task needs that much memory, and several times as much if it clusters.",
    )


class ClusterSettings(Section):
    """When files of tables with `cluster_by` are laid out by these columns."""

    new_share_min: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Which share of a table's bytes must be in files that aren't laid out yet;"
        " they must also be enough for a file of the usual size.",
    )


class VacuumSettings(Section):
    """When files are deleted that no retained version needs."""

    every: Seconds = Field(
        default=3_600.0,
        ge=1.0,
        le=30 * DAY,
        description="How often to delete files that only versions older than `log.retention` need.",
    )
    orphans_every: Seconds = Field(
        default=DAY,
        ge=60.0,
        le=365 * DAY,
        description="How often to look for files of a table that no version names. Such a file"
        " is deleted if it is older than `log.retention`, older than a day, and was"
        " already found by the previous search.",
    )


class PurgeSettings(Section):
    """When deleted rows are removed from base files for good."""

    after: Seconds | None = Field(
        default=None,
        ge=PURGE_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long ago a row must have been deleted, by the source's clock, to be"
        " removed for good. Without it no row is.",
    )
    every: Seconds = Field(
        default=DAY, ge=1.0, le=365 * DAY, description="How often to look for such rows in a table."
    )
    ratio_min: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="The share of a base file's rows that must be due for removal before the"
        " file is rewritten.",
    )


class CompactionSettings(Section):
    """When deltas are spliced into their base files: as soon as a table exceeds a limit."""

    threads: int = Field(
        default=2, ge=1, le=64, description="How many tables are compacted at the same time."
    )
    tasks_max: int = Field(
        default=4,
        ge=1,
        le=1_024,
        description="How many rewrites may run at the same time, over all tables.",
    )
    deltas_max: int = Field(
        default=20, ge=1, le=10_000, description="How many deltas may wait in a table."
    )
    bytes_max: Bytes = Field(
        default=128 * 2**20,
        ge=1,
        le=2**40,
        description="How many bytes of deltas may wait in a table.",
    )
    age_max: Seconds = Field(
        default=1_800.0,
        ge=0.1,
        le=30 * DAY,
        description="How old a waiting change may become before it must be in the"
        " read-optimised view.",
    )
    ratio_max: float = Field(
        default=0.1,
        gt=0,
        le=100,
        description="How many changes may wait in a table, per row of its base files.",
    )
    changes_per_page_min: float = Field(
        default=200.0,
        gt=0,
        le=1_000_000,
        description="How many changes must wait per affected page (of 4096 rows) before a"
        " rewrite is worth its cost.",
    )
    back_pressure_deltas: int = Field(
        default=200,
        ge=2,
        le=100_000,
        description="How many deltas may wait in a table before its ingest pauses; it continues"
        " when there are fewer.",
    )
    poll_seconds: Seconds = Field(
        default=5.0, ge=0.05, le=3_600.0, description="How often to look for tables that are due."
    )


class IndexSettings(Section):
    """The row index."""

    runs_max: int = Field(
        default=8,
        ge=1,
        le=64,
        description="How many runs a table's index may have before they are merged.",
    )
