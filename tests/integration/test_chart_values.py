"""Values of the chart: what they mean, which are refused, and that each is explained."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakesplice import __version__
from lakesplice.config.quantities import seconds_of
from tests.support import tools
from tests.support.chart import CHART, LEAST, Render, Values, over, pod, renderer


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    return renderer(tmp_path_factory.mktemp("values"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"rbac": {"executorPods": True}}, "set settings.spark.master to k8s://"),
        ({"settings": {"spark": {"master": "k8s://a"}}}, "set rbac.executorPods to true"),
    ],
)
def test_executors_and_their_rights_go_together(render: Render, values: Values, told: str) -> None:
    done = render(over(LEAST, values))
    assert done.returncode != 0
    assert told in done.stderr


def test_a_changed_setting_restarts_the_pod(render: Render) -> None:
    def checksum(**settings: Any) -> str:
        done = render(over(LEAST, {"settings": settings}))
        (found,) = [line for line in done.stdout.splitlines() if "checksum/configuration" in line]
        return found

    assert checksum() == checksum()
    assert checksum() != checksum(trigger="1m")


@pytest.mark.parametrize(
    "text", ["90", 90, 2_000_000, "1m30s", "500ms", "2.5m", "1h 30m", "0s", "1d", 1.5]
)
def test_a_duration_means_to_the_chart_what_it_means_to_the_service(
    render: Render, text: str | float
) -> None:
    done = render(over(LEAST, {"settings": {"stop_timeout": text}, "stopMarginSeconds": 10}))
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    grace = pod(found)["terminationGracePeriodSeconds"] - 40
    assert grace == -(-seconds_of(str(text)) // 1)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"settings": {"triger": "5m"}}, "triger"),
        ({"settings": {"kafka": {"topics": "x"}}}, "topics"),
        ({"settings": {"compaction": {"threads": 0}}}, "threads"),
        ({"settings": {"kafka": {"options": {"sasl.jaas.config": "x"}}}}, "sasl.jaas.config"),
        ({"settings": {"kafka": {"topic_pattern": ""}}}, "topic_pattern must be given"),
        ({"replica": 2}, "replica"),
        ({"replicas": 2}, "both can mount"),
        ({"settings": {"lake": {"root": "/elsewhere"}}}, "persistence.mountPath"),
        ({"settings": {"lake": {"root": "s3://b/lake"}}}, "persistence.enabled to false"),
        ({"persistence": {"enabled": False}}, "lost with the pod"),
        ({"secretEnv": {"A": "in plain text"}}, "secretEnv"),
        ({"stopMarginSeconds": 0}, "stopMarginSeconds"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_values_that_would_not_work_are_refused_with_the_reason(
    render: Render, values: Values, complaint: str
) -> None:
    done = render(over(LEAST, values))
    assert done.returncode != 0
    assert complaint in done.stderr


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_notes_say_how_to_look_at_it(tmp_path: Path, replicas: int) -> None:
    # Only an installation shows them, which needs a cluster; so they are rendered as a manifest.
    chart = tmp_path / "lakesplice"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "notes.yaml").write_text(
        f'{{{{- define "notes" }}}}{text}{{{{ end }}}}notes: {{{{ include "notes" . | toJson }}}}'
    )
    values = tmp_path / "values.yaml"
    shared = {"replicas": replicas, "persistence": {"accessModes": ["ReadWriteMany"]}}
    values.write_text(yaml.safe_dump(over(LEAST, shared)))
    options = ["--show-only", "templates/notes.yaml", "--kube-version", "1.30.0", "-f", str(values)]
    command = [str(tools.helm()), "template", "lake", str(chart), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["notes"]
    assert "exec deployment/lake-lakesplice -- lakesplice tables /lake" in notes
    assert ("--wait" in notes) == (replicas > 1)


def test_the_chart_is_released_with_the_service() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_every_value_is_explained() -> None:
    def names(values: Values, path: str = "") -> list[str]:
        closed = {"settings", "podSecurityContext", "securityContext", "resources"}
        found = []
        for name, value in values.items():
            deeper = isinstance(value, dict) and value and name not in closed
            found += names(value, f"{path}{name}.") if deeper else [path + name]
        return found

    text = (CHART / "README.md").read_text()
    known = names(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert not [name for name in known if f"`{name}`" not in text]
