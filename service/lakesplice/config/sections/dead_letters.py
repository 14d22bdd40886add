"""The section about records that can't be decoded."""

from __future__ import annotations

from pydantic import Field

from lakesplice.config.sections.section import Section
from lakesplice.planning.intake.dead_letter_limit import LetterLimit


class DeadLetterSettings(Section):
    """How many records of a table may become dead letters before it is parked."""

    share_max: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="The share of a table's records in a batch that may be dead letters. With more"
        " the table is parked (`dead-letters`) before it moves past them, with the commonest"
        " reason. 1 allows all.",
    )
    count_min: int = Field(
        default=20,
        ge=1,
        le=1_000_000_000,
        description="How many dead letters there must be for that, those that wait in the lake"
        " included. A table that never took a change is parked by the first one, if its batch"
        " brings no change.",
    )

    @property
    def limit(self) -> LetterLimit:
        """The limit as decisions have it."""
        return LetterLimit(self.share_max, self.count_min)
