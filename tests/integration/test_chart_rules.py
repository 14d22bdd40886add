"""The chart's alert rules are those that `lakesplice rules` writes for the same settings."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rules import TEMPLATE, chart_rules
from lakesplice.apps.alert_rules import (
    FOLLOWED,
    RUNBOOKS,
    alert_rules,
    default_settings,
    setting_of,
)
from lakesplice.config import load
from tests.support.chart import LEAST, Render, Values, over, renderer


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    return renderer(tmp_path_factory.mktemp("values"))


# What the settings that alerts follow may be other than they are by default.
SETTINGS_OF_ALERTS: tuple[Values, ...] = (
    {},
    {
        "trigger": "45m",
        "lease": "2m30s",
        "compaction": {"age_max": "3h", "back_pressure_deltas": 501},
        "index": {"runs_max": 20},
        "log": {"checkpoint_every": 50},
        "merge": {"files_max": 77},
        "vacuum": {"every": "1h 30m"},
        "alerts": {"objective": 0.999, "runbooks": 'https://example.org/"a"?b&c'},
    },
    {
        "trigger": "1m0.3s",
        "lease": "150500ms",
        "compaction": {"age_max": 2_000_000, "back_pressure_deltas": 7},
        "vacuum": {"every": "1500ms"},
        "alerts": {"objective": 0.9995},
    },
    {"trigger": 0.5, "lease": "90", "compaction": {"age_max": "1d"}, "alerts": {"objective": 0.95}},
)


def rules_of(settings: Values, folder: Path, environment: dict[str, str]) -> Any:
    """What `lakesplice rules` writes for these settings."""
    file = folder / "lakesplice.yaml"
    file.write_text(yaml.safe_dump({**settings, "lake": {"root": str(folder)}}))
    return yaml.safe_load(alert_rules(load(file, environment)))


def rendered_rules(render: Render, values: Values) -> Any:
    done = render(over(values, {"prometheusRule": {"enabled": True}}))
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    return found["PrometheusRule"]["spec"]


def test_every_setting_that_alerts_follow_is_among_the_examples() -> None:
    given = SETTINGS_OF_ALERTS[1]
    for path in (*FOLLOWED.values(), RUNBOOKS):
        assert setting_of(default_settings(), path) != reduce(getitem, path.split("."), given)


@pytest.mark.parametrize("settings", SETTINGS_OF_ALERTS, ids=range(len(SETTINGS_OF_ALERTS)))
def test_the_rules_are_those_of_the_command_for_the_same_settings(
    render: Render, tmp_path: Path, settings: Values
) -> None:
    values = over(LEAST, {"settings": settings})
    assert rendered_rules(render, values) == rules_of(values["settings"], tmp_path, {})


def test_rules_follow_variables_as_the_service_does(render: Render, tmp_path: Path) -> None:
    variables = {
        "LAKESPLICE_TRIGGER": "2h",
        "LAKESPLICE_COMPACTION__BACK_PRESSURE_DELTAS": "1_000",
        "LAKESPLICE_ALERTS__RUNBOOKS": "https://example.org/runbooks",
    }
    given = [{"name": name, "value": value} for name, value in variables.items()]
    values = over(LEAST, {"settings": {"trigger": "7m"}, "extraEnv": given})
    wanted = rules_of(values["settings"], tmp_path, variables)
    assert rendered_rules(render, values) == wanted


def test_the_template_of_rules_is_what_the_code_makes() -> None:
    assert TEMPLATE.read_text() == chart_rules(), "PYTHONPATH=tools:service python -m chart_rules"


@pytest.mark.parametrize("rules", ["", 'groups:\n  - {name: "{{ $labels.table }}", rules: []}\n'])
def test_the_rules_given_take_the_place_of_the_shipped_ones(render: Render, rules: str) -> None:
    values = {
        "prometheusRule": {"enabled": True, "rules": rules},
        "serviceMonitor": {"enabled": True, "lake": "shop" if rules else ""},
    }
    done = render(over(LEAST, values))
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    assert found["PrometheusRule"]["spec"] == yaml.safe_load(rules or alert_rules(None))
    (endpoint,) = found["ServiceMonitor"]["spec"]["endpoints"]
    (label,) = endpoint["relabelings"]
    name = found["ServiceMonitor"]["metadata"]["name"]
    assert label == {"targetLabel": "lake", "replacement": "shop" if rules else name}
