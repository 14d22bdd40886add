"""The alert rules of Prometheus that fit a configuration."""

from __future__ import annotations

from lakesplice.config import Settings
from lakesplice.telemetry.alerts import AlertLimits, rule_groups, rules_text


def alert_rules(settings: Settings | None) -> str:
    """Return a rule file whose thresholds follow these settings, or the defaults for None."""
    limits = limits_of(settings or _default_settings())
    return rules_text(rule_groups(limits), limits.runbooks)


def limits_of(settings: Settings) -> AlertLimits:
    """Return what alerts need to know of the settings."""
    return AlertLimits(
        trigger=settings.trigger,
        lease=settings.lease,
        age_max=settings.compaction.age_max,
        back_pressure_deltas=settings.compaction.back_pressure_deltas,
        runs_max=settings.index.runs_max,
        checkpoint_every=settings.log.checkpoint_every,
        merge_files_max=settings.merge.files_max,
        vacuum_every=settings.vacuum.every,
        objective=settings.alerts.objective,
        runbooks=settings.alerts.runbooks,
    )


def _default_settings() -> Settings:
    # These settings have no default, and no alert depends on them.
    kafka = {"bootstrap_servers": "kafka:9092", "topic_pattern": ".*"}
    return Settings.model_validate({"kafka": kafka, "lake": {"root": "lake"}})
