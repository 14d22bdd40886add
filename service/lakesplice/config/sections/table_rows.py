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
    """Whether the rows of some tables ever change, and when deleted rows are removed."""

    mode: Literal["upsert", "insert-only", "append"] = Field(
        default="upsert",
        description="`insert-only` is for events that never change: a row whose key is already"
        " known is skipped, so no change ever waits for compaction. `append` is the"
        " same for tables without a key: every inserted row is a new row,"
        " identified by its position at the source, in the column"
        " `_source_position`.",
    )
    not_inserts: NotInserts = Field(
        default=NotInserts.PARK,
        description="What happens with an update or delete if `mode` isn't `upsert`: the table"
        " is parked, or the record becomes a dead letter.",
    )

    partial_images: PartialImages | None = Field(
        default=None,
        description="What happens with row images of these tables that lack columns; without it"
        " `partial_images` of the whole service applies.",
    )
    purge_after: Seconds | None = Field(
        default=None,
        ge=PURGE_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long ago a row of these tables must have been deleted to be removed"
        " for good; without it `purge.after` applies.",
    )

    @property
    def policy(self) -> NotInserts | None:
        """What becomes of updates and deletes; None where they are taken."""
        return self.not_inserts if self.mode != "upsert" else None
