"""Freshness goals: how old the views of some tables may become."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import DAY, Section
from lakesplice.model.driver_status import FreshnessGoal

# A batch may wait for the one before it and fail once; half of age_max is for the compaction.
_TRIGGERS, _AGES = 3.0, 1.5
# The ends of topics are looked up every few seconds, so a shorter goal would be missed often.
_REAL_TIME_SECONDS_MIN = 60.0


class FreshnessSettings(Section):
    """How old the views of some tables may become before the tables count as late."""

    real_time: Seconds | None = Field(
        default=None,
        ge=1.0,
        le=365 * DAY,
        description="How old the real-time view of these tables may become. Without it three times"
        " `trigger`, and at least a minute.",
    )
    read_optimised: Seconds | None = Field(
        default=None,
        ge=1.0,
        le=365 * DAY,
        description="How old the read-optimised view of these tables may become. Without it the"
        " goal of the real-time view plus one and a half times `compaction.age_max`.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.real_time and self.read_optimised and self.read_optimised < self.real_time:
            raise ValueError(
                "read_optimised must be at least real_time: that view is never the fresher one"
            )
        return self

    def goal(self, trigger: float, age_max: float) -> FreshnessGoal:
        """Return the goal of both views under these settings of the service, in seconds."""
        real_time = self.real_time or max(_REAL_TIME_SECONDS_MIN, _TRIGGERS * trigger)
        return FreshnessGoal(real_time, self.read_optimised or real_time + _AGES * age_max)
