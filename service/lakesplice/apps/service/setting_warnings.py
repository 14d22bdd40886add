"""Warnings of connectors' settings that change values, once for each topic and setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakesplice.planning.intake.report import PartitionReport


class SettingWarnings:
    """What was warned of since the driver started."""

    def __init__(self, log: Any) -> None:
        """`log` is a structlog logger."""
        self._log = log
        self._warned: set[tuple[str, str]] = set()

    def look_at(self, topic: str, reports: Sequence[PartitionReport]) -> None:
        """Log the settings that a topic's records showed, each the first time."""
        for told in sorted(set[str]().union(*(report.suspect_settings for report in reports))):
            if (topic, told) not in self._warned:
                self._warned.add((topic, told))
                setting, _, detail = told.partition(": ")
                self._log.warning(
                    "connector-changes-values", topic=topic, setting=setting, detail=detail
                )
