"""How old the views of a table may become, by the settings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lakesplice.config import Settings
from lakesplice.model.driver_status import FreshnessGoal, strictest
from lakesplice.model.names import TableName
from tests.support.service_settings import settings_of

ORDERS, ITEMS = TableName("shop", "orders"), TableName("shop", "items")


def settings(freshness: dict[str, Any] | None = None, **more: Any) -> Settings:
    entry = {"match": "shop.orders", **({} if freshness is None else {"freshness": freshness})}
    service = {"trigger": "5m", "compaction": {"age_max": "30m"}, **more}
    return settings_of("lake", tables=[entry], **service)


@pytest.mark.parametrize(
    ("service", "goal"),
    [
        ({}, (900, 3600)),
        ({"trigger": "1m"}, (180, 2880)),
        ({"compaction": {"age_max": "1h"}}, (900, 6300)),
        ({"trigger": "1s", "compaction": {"age_max": "10s"}}, (60, 75)),
    ],
)
def test_without_a_setting_the_goal_follows_trigger_and_age_max(
    service: dict[str, Any], goal: tuple[float, float]
) -> None:
    assert settings(**service).freshness_goal(ITEMS) == FreshnessGoal(*goal)


@pytest.mark.parametrize(
    ("freshness", "goal"),
    [
        ({"real_time": "5m", "read_optimised": "1h"}, (300, 3600)),
        ({"real_time": "1d"}, (86_400, 89_100)),
        ({"read_optimised": "2h"}, (900, 7200)),
        ({}, (900, 3600)),
    ],
)
def test_a_goal_applies_to_the_tables_of_its_entry(
    freshness: dict[str, Any], goal: tuple[float, float]
) -> None:
    found = settings(freshness)
    assert found.freshness_goal(ORDERS) == FreshnessGoal(*goal)
    assert found.freshness_goal(ITEMS) == FreshnessGoal(900, 3600)


@pytest.mark.parametrize(
    "freshness",
    [{"real_time": "1h", "read_optimised": "5m"}, {"real_time": 0}, {"real_time": "366d"}],
)
def test_an_implausible_goal_is_refused(freshness: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(freshness)


def test_a_table_is_as_late_as_its_later_view() -> None:
    goal = FreshnessGoal(100, 1000)
    assert goal.lateness(150, 1000) == 1.5
    assert goal.lateness(50, 3000) == 3
    assert goal.lateness(50, None) == 0.5
    assert goal.lateness(None, None) is None


def test_the_strictest_goal_of_its_topics_is_the_tables() -> None:
    goals = [FreshnessGoal(10, 300), FreshnessGoal(20, 200)]
    assert strictest(goals) == FreshnessGoal(10, 200)
    assert strictest([]) is None
