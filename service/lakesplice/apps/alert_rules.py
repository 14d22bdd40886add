"""The alert rules of Prometheus that fit a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from lakesplice.config import Settings
from lakesplice.telemetry.alerts import AlertLimits, Amount, rule_groups, rules_text

FOLLOWED: Mapping[str, str] = {
    "trigger": "trigger",
    "lease": "lease",
    "age_max": "compaction.age_max",
    "back_pressure_deltas": "compaction.back_pressure_deltas",
    "runs_max": "index.runs_max",
    "checkpoint_every": "log.checkpoint_every",
    "merge_files_max": "merge.files_max",
    "vacuum_every": "vacuum.every",
    "objective": "alerts.objective",
}
"""The numbers that thresholds follow, by their names there, and the settings that say them."""
RUNBOOKS = "alerts.runbooks"


def alert_rules(settings: Settings | None) -> str:
    """Return a rule file whose thresholds follow these settings, or the defaults for None."""
    limits = limits_of(settings or default_settings())
    return rules_text(rule_groups(limits), limits.runbooks)


def limits_of(settings: Settings) -> AlertLimits:
    """Return what alerts need to know of the settings."""
    return AlertLimits(
        **{name: Amount(setting_of(settings, path)) for name, path in FOLLOWED.items()},
        runbooks=setting_of(settings, RUNBOOKS),
    )


def setting_of(settings: Settings, path: str) -> Any:
    """Return the value of a setting, named as `section.name`."""
    return reduce(getattr, path.split("."), settings)


def default_settings() -> Settings:
    """Return the settings that a file has which gives only what has no default."""
    # No alert depends on these.
    kafka = {"bootstrap_servers": "kafka:9092", "topic_pattern": ".*"}
    return Settings.model_validate({"kafka": kafka, "lake": {"root": "lake"}})
