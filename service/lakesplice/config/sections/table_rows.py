"""The settings of what may become of some tables' rows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import DAY, Section
from lakesplice.model.choices import NotInserts
from lakesplice.planning.schema.policy import PartialImages
from lakesplice.planning.upkeep.retention import PURGE_SECONDS_MIN


class RowSettings(Section):
    """Whether the rows of some tables never change, and when deleted ones leave."""

    mode: Literal["upsert", "insert-only", "append"] = Field(
        default="upsert",
        description="`insert-only` for events that never change: a key that is known is skipped,"
        " nothing waits to be merged. `append` is the same without a key: every row inserted is"
        " one, identified by its position at the source, in the column `_source_position`.",
    )
    not_inserts: NotInserts = Field(
        default=NotInserts.PARK,
        description="What becomes of an update or delete where `mode` isn't `upsert`: the table"
        " parks at it, or it becomes a dead letter.",
    )

    partial_images: PartialImages | None = Field(
        default=None,
        description="What these tables make of partial images; as `partial_images` without it.",
    )
    purge_after: Seconds | None = Field(
        default=None,
        ge=PURGE_SECONDS_MIN,
        le=3_650 * DAY,
        description="When deleted rows of these tables leave for good; `purge.after` without it.",
    )

    @property
    def policy(self) -> NotInserts | None:
        """What becomes of updates and deletes; None where they are taken."""
        return self.not_inserts if self.mode != "upsert" else None
