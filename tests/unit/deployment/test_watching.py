"""Dashboards and alerts use existing metrics, and all metrics that show problems."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dashboards.files import FOLDERS, dashboard_texts
from lakesplice.apps.alert_rules import alert_rules as alert_rules_for
from lakesplice.telemetry.alerts.rule import anchor
from lakesplice.telemetry.catalogue import CATALOGUE
from tests.support.machine import ROOT
from tests.support.prometheus import (
    ALERTS,
    DASHBOARDS,
    Query,
    alert_rules,
    dashboard_queries,
    rule_queries,
)

RULES = alert_rules()
TARGET = {"lake", "namespace", "job", "instance"}
LABELS = {metric.name: {*metric.label_names, "le", *TARGET} for metric in CATALOGUE}
BOARDS: dict[str, dict[str, Any]] = {file.name: json.loads(file.read_text()) for file in DASHBOARDS}


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


def test_the_dashboards_show_every_metric() -> None:
    shown = set().union(*(query.metrics for query in dashboard_queries()))
    assert shown == LABELS.keys()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_the_dashboards_are_what_the_code_makes(folder: Path) -> None:
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == dashboard_texts(), "PYTHONPATH=tools:service python -m dashboards"


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_every_dashboard_can_be_narrowed_to_a_lake_a_namespace_and_a_table(
    board: dict[str, Any],
) -> None:
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names == ["datasource", "lake", "namespace", "table"]
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            for selector in re.findall(r"lakesplice[_:]\w+\{([^}]*)\}", target["expr"]):
                assert selector.startswith('lake=~"$lake",namespace=~"$namespace"')


def test_the_fleet_is_sorted_by_the_latest_against_its_goal_and_says_why() -> None:
    panels = BOARDS["lakesplice-fleet.json"]["panels"]
    (table,) = [panel for panel in panels if panel["type"] == "table"]
    (order,) = table["options"]["sortBy"]
    (organised,) = [one for one in table["transformations"] if one["id"] == "organize"]
    names = organised["options"]["renameByName"]
    (sorting,) = [field for field, name in names.items() if name == order["displayName"]]
    (asked,) = [one for one in table["targets"] if f"Value #{one['refId']}" == sorting]
    assert order["desc"]
    assert "freshness_seconds" in asked["expr"]
    assert "/ lakesplice_table_freshness_goal_seconds" in asked["expr"]
    assert {"table", "lake", "namespace", "state", "code"} <= names.keys()


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_panels_lie_side_by_side_and_are_distinguished(board: dict[str, Any]) -> None:
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
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


def test_the_rule_file_is_what_the_command_writes_for_the_default_settings() -> None:
    assert ALERTS.read_text() == alert_rules_for(None), (
        "lakesplice rules > deploy/prometheus/alerts.yaml"
    )


def test_every_runbook_is_a_section_of_the_operations_page() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    known = {f"docs/operations.md#{anchor(heading)}" for heading in headings}
    assert {rule["annotations"]["runbook_url"] for rule in RULES} <= known


def test_an_aggregation_of_an_alert_keeps_the_labels_that_tell_lakes() -> None:
    for query in rule_queries():
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", query.text):
            assert {"lake", "namespace", "job"} <= set(labels.split(", ")), query.where
