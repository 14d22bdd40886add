"""The settings that thresholds of alerts follow."""

from __future__ import annotations

from dataclasses import dataclass

# A batch takes some seconds, however short the trigger is.
_BATCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """Values of settings, in seconds where they are times. `objective` is the share of 30 days in
    which a view is to keep its freshness goal; `runbooks` is the address of the operations page.
    """

    trigger: float
    lease: float
    age_max: float
    back_pressure_deltas: int
    runs_max: int
    checkpoint_every: int
    merge_files_max: int
    vacuum_every: float
    objective: float
    runbooks: str

    @property
    def batch_seconds_max(self) -> float:
        """How long a batch may take."""
        return max(_BATCH_SECONDS, self.trigger)

    @property
    def silence_seconds_max(self) -> float:
        """How long the service may be without the end of a batch: three triggers."""
        return 3 * self.batch_seconds_max
