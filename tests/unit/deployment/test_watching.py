"""Dashboard and alerts speak of metrics that there are, and of all that tell of trouble."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lakesplice.apps.alert_rules import alert_rules as alert_rules_for
from lakesplice.telemetry.alerts.rule import anchor
from lakesplice.telemetry.catalogue import CATALOGUE
from tests.support.machine import ROOT
from tests.support.prometheus import (
    ALERTS,
    DASHBOARD,
    Query,
    alert_rules,
    dashboard_queries,
    rule_queries,
)

RULES = alert_rules()
LABELS = {metric.name: {*metric.label_names, "le"} for metric in CATALOGUE}
PANELS: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]


@pytest.mark.parametrize(
    "query",
    [*dashboard_queries(), *rule_queries()],
    ids=lambda query: query.where,
)
def test_a_query_names_metrics_and_labels_of_the_catalogue(query: Query) -> None:
    assert query.metrics <= LABELS.keys()
    for selector in query.selectors:
        name, _, labels = selector.partition("{")
        known = LABELS[re.sub(r"_(bucket|count|sum)$", "", name)]
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels)) <= known


def test_the_dashboard_shows_every_metric() -> None:
    shown = set().union(*(query.metrics for query in dashboard_queries()))
    assert shown == LABELS.keys()


def test_panels_lie_side_by_side_and_are_told_apart() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_leads_to_a_section_of_the_operations_page() -> None:
    text = (ROOT / "docs" / "operations.md").read_text().replace("`", "")
    sections = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert {rule["annotations"]["section"] for rule in RULES} <= sections


def test_every_section_about_a_metric_has_an_alert() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    alerts = page.partition("\n## Alerts\n")[2].partition("\n## ")[0].replace("`", "")
    sections = re.findall(r"^### (.+)$", alerts, re.MULTILINE)
    assert len(sections) > 10
    assert set(sections) <= {rule["annotations"]["section"] for rule in RULES}


def test_alerts_have_a_severity_and_say_what_is_wrong() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"].endswith(".")


@pytest.mark.parametrize("file", [ALERTS, ROOT / "helm" / "lakesplice" / "files" / "alerts.yaml"])
def test_the_rule_files_are_what_the_command_writes_for_the_default_settings(file: Path) -> None:
    written = alert_rules_for(None)
    assert file.read_text() == written, f"lakesplice rules > {file.relative_to(ROOT)}"


def test_every_runbook_is_a_section_of_the_operations_page() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    known = {f"docs/operations.md#{anchor(heading)}" for heading in headings}
    assert {rule["annotations"]["runbook_url"] for rule in RULES} <= known


def test_an_aggregation_of_an_alert_keeps_the_labels_that_tell_lakes() -> None:
    for query in rule_queries():
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", query.text):
            assert {"lake", "namespace", "job"} <= set(labels.split(", ")), query.where
