"""`lakesplice rules`: alert rules whose thresholds follow the settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import CommandLine
from tests.support.prometheus import ALERTS


def rules(lakesplice: CommandLine, folder: Path, **settings: Any) -> dict[str, dict[str, Any]]:
    """The alerts that the command writes for these settings, by name."""
    file = folder / "lakesplice.yaml"
    kafka = {"bootstrap_servers": "a:1", "topic_pattern": ".*"}
    file.write_text(json.dumps({"kafka": kafka, "lake": {"root": "lake"}, **settings}))
    ended = lakesplice("rules", "--config", file)
    assert ended.code == 0, ended.err
    groups = yaml.safe_load(ended.out)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def test_without_a_configuration_it_writes_the_rules_that_are_shipped(
    lakesplice: CommandLine,
) -> None:
    assert lakesplice("rules").out == ALERTS.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alert", "settings", "expected"),
    [
        ("NoBatch", {"trigger": "1h"}, "> 10800"),
        ("NoBatch", {"trigger": "1s"}, "> 180"),
        ("BatchesTooLong", {"trigger": "20m"}, "[2h]"),
        ("BatchesTooLong", {"trigger": "20m"}, ">= 1200"),
        ("CompactionBehind", {"compaction": {"age_max": "2h"}}, "oldest_age_seconds > 14400"),
        ("CompactionBehind", {"compaction": {"back_pressure_deltas": 50}}, "files > 37.5"),
        ("UpkeepFails", {"index": {"runs_max": 20}}, "runs > 40"),
        ("UpkeepFails", {"log": {"checkpoint_every": 30}}, "commits > 150"),
        ("SmallFilesStay", {"merge": {"files_max": 40}}, "> 120"),
        ("VacuumLate", {"vacuum": {"every": "1d"}}, "> 345600"),
        ("FreshnessBudgetBurnsFast", {"alerts": {"objective": 0.995}}, "late[1h]) > 4.32"),
        ("FreshnessBudgetBurns", {"alerts": {"objective": 0.95}}, "late[3d]) > 216"),
    ],
)
def test_a_threshold_follows_its_setting(
    lakesplice: CommandLine, tmp_path: Path, alert: str, settings: dict[str, Any], expected: str
) -> None:
    assert expected in rules(lakesplice, tmp_path, **settings)[f"Lakesplice{alert}"]["expr"]


@pytest.mark.slow
def test_an_alert_waits_longer_where_batches_are_rarer(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    found = rules(lakesplice, tmp_path, trigger="1h")
    assert found["LakespliceTopicWithoutTable"]["for"] == "3h"


def test_runbooks_are_where_the_setting_says(lakesplice: CommandLine, tmp_path: Path) -> None:
    address = "https://docs.example.com/operations/"
    found = rules(lakesplice, tmp_path, alerts={"runbooks": address})
    for rule in found.values():
        assert rule["annotations"]["runbook_url"].startswith(f"{address}#")
