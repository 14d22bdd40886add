"""All rules."""

from __future__ import annotations

from lakesplice.telemetry.alerts.budget import budget_groups
from lakesplice.telemetry.alerts.limits import AlertLimits
from lakesplice.telemetry.alerts.rule import RuleGroup
from lakesplice.telemetry.alerts.service_alerts import service_alerts
from lakesplice.telemetry.alerts.table_alerts import TABLE_ALERTS
from lakesplice.telemetry.alerts.topic_alerts import topic_alerts
from lakesplice.telemetry.alerts.upkeep_alerts import upkeep_alerts


def rule_groups(limits: AlertLimits) -> tuple[RuleGroup, ...]:
    """Return the groups of rules under these settings."""
    alerts = (
        *service_alerts(limits),
        *topic_alerts(limits),
        *TABLE_ALERTS,
        *upkeep_alerts(limits),
    )
    return (RuleGroup("lakesplice", alerts), *budget_groups(limits))
