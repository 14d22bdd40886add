"""What every part of the configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

DAY = 86_400.0


class Section(BaseModel):
    """A part of the configuration: immutable, and closed to names it doesn't know."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False
    )
