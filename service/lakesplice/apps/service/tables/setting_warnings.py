"""Settings of connectors that change values: which of them a topic's events showed, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lakesplice.model.driver_status import SuspectSetting
from lakesplice.model.moments import EpochMs
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.table.protocol.ports import Clock

# How long a setting is reported after the last event that showed it. Nothing shows whether it was
# corrected since or the source is silent.
SHOWN_SECONDS = 86_400


class SettingWarnings:
    """What the events of one topic showed since the driver started."""

    def __init__(self, topic: str, clock: Clock, log: Any) -> None:
        """`log` is a structlog logger."""
        self._topic = topic
        self._clock = clock
        self._log = log
        self._shown: dict[str, SuspectSetting] = {}

    def look_at(self, reports: Sequence[PartitionReport]) -> None:
        """Record the settings that records showed, and log each the first time."""
        observed = set[str]().union(*(report.suspect_settings for report in reports))
        shown = dict(self._shown)
        for text in sorted(observed):
            name, _, detail = text.partition(": ")
            if name not in shown:
                self._log.warning(
                    "connector-changes-values", topic=self._topic, setting=name, detail=detail
                )
            shown[name] = SuspectSetting(name, detail, self._clock.now_ms())
        # Replaced as a whole, since another thread reads it.
        self._shown = shown

    def shown(self) -> tuple[SuspectSetting, ...]:
        """Return each setting that was shown; safe from any thread."""
        return tuple(self._shown.values())


def still_shown(settings: Iterable[SuspectSetting], now_ms: EpochMs) -> tuple[SuspectSetting, ...]:
    """Return each setting as it was last seen, in order of name, unless that is long ago."""
    newest = {one.name: one for one in sorted(settings, key=lambda one: one.seen_ms)}
    since_ms = now_ms - SHOWN_SECONDS * 1000
    return tuple(one for _, one in sorted(newest.items()) if one.seen_ms >= since_ms)
