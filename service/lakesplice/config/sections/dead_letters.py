"""The section about records that can't be decoded."""

from __future__ import annotations

from pydantic import Field

from lakesplice.config.sections.section import Section
from lakesplice.model.parking import DeadLetterLimit


class DeadLetterSettings(Section):
    """How many records of a table may become dead letters before it is parked."""

    share_max: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="The share of a table's records in a batch that may become dead letters. If"
        " more do, the table is parked (`dead-letters`) before any of these records"
        " is skipped; the detail names the most frequent reason. With 1 a table is"
        " never parked for this.",
    )
    count_min: int = Field(
        default=20,
        ge=1,
        le=1_000_000_000,
        description="How many dead letters a table must have, including those already in the"
        " lake, before `share_max` applies. A table that has never applied a change"
        " is parked by the first dead letter, if its batch contains no change.",
    )

    @property
    def limit(self) -> DeadLetterLimit:
        """The limit in the form that decisions use."""
        return DeadLetterLimit(self.share_max, self.count_min)
