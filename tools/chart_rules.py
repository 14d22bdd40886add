"""Writes the chart's template of alert rules: `PYTHONPATH=tools:service python -m chart_rules`.

The rules are those of `lakesplice rules`. A threshold that follows settings is written as a formula
that Helm computes from the values, so that no rule is written by hand twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import nan
from pathlib import Path

from lakesplice.apps.alert_rules import FOLLOWED, RUNBOOKS, default_settings, setting_of
from lakesplice.config.quantities import duration_text
from lakesplice.telemetry.alerts import AlertLimits, Amount, rule_groups, rules_text
from lakesplice.telemetry.alerts.limits import END, HOLE

TEMPLATE = Path(__file__).resolve().parents[1] / "helm" / "lakesplice" / "templates" / "_rules.tpl"
_DURATIONS = {"trigger", "lease", "age_max", "vacuum_every"}
# Stands for their address, within quotes of YAML.
_RUNBOOKS = "@runbooks@"
_HEAD = """\
{{- /* Written by `PYTHONPATH=tools:service python -m chart_rules`. A setting is looked for in the
environment first, as the service does. */}}
{{- define "lakesplice.rules" -}}
{{- $given := dict }}
{{- range .Values.extraEnv }}{{ $_ := set $given .name (get . "value") }}{{ end }}
"""


def chart_rules() -> str:
    """Return the text of the template."""
    limits = AlertLimits(
        **{name: Amount(nan, f"${name}") for name in FOLLOWED},
        runbooks=_RUNBOOKS,
    )
    lines = rules_text(rule_groups(limits), limits.runbooks).splitlines()
    rules = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    settings = "\n".join(_setting(name, path) for name, path in _settings().items())
    return f"{_HEAD}{settings}\n{_escaped(rules)}\n{{{{- end }}}}\n"


def _settings() -> Mapping[str, str]:
    return {**FOLLOWED, "runbooks": RUNBOOKS}


def _setting(name: str, path: str) -> str:
    """Return the line that reads a setting of the values into a variable."""
    default = setting_of(default_settings(), path)
    written = duration_text(default) if name in _DURATIONS else default
    keys = " ".join(json.dumps(key) for key in path.split("."))
    variable = f"LAKESPLICE_{path.replace('.', '__').upper()}"
    found = f'get $given "{variable}" | default (dig {keys} {json.dumps(written)} .Values.settings)'
    if name in _DURATIONS:
        found = f'include "lakesplice.exactSeconds" ({found}) | float64'
    elif name in FOLLOWED:
        found = f'{found} | toString | replace "_" "" | float64'
    return f"{{{{- ${name} := {found} }}}}"


def _escaped(rules: str) -> str:
    """Return rules so that Helm writes Prometheus' own templates as they are, and fills holes."""
    opened, closed = '{{ "{{" }}', '{{ "}}" }}'
    parts = rules.replace("{{", "\0").replace("}}", closed).replace("\0", opened)
    filled = parts.replace(HOLE, "{{ ").replace(END, " }}")
    return filled.replace(_RUNBOOKS, '{{ $runbooks | toJson | trimAll "\\"" }}')


if __name__ == "__main__":
    TEMPLATE.write_text(chart_rules(), encoding="utf-8")
