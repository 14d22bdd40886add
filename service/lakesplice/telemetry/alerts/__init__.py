"""The alert rules: what is wrong, from when on, how severe it is, and where to read on.

Thresholds follow the settings, which are passed as `AlertLimits`. `rules_text` writes rules in the
form that Prometheus reads.
"""

from lakesplice.telemetry.alerts.limits import AlertLimits as AlertLimits
from lakesplice.telemetry.alerts.limits import Amount as Amount
from lakesplice.telemetry.alerts.rules import rule_groups as rule_groups
from lakesplice.telemetry.alerts.rules import rules_text as rules_text
