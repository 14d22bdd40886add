"""The dashboards' queries and the alerts, in a real Prometheus that scrapes the service's page.

Here every metric of the catalogue has a value, so that no query may come back empty; a whole
service in front of the same queries is in tests/e2e.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from lakesplice.model.driver_status import TopicState
from lakesplice.telemetry.catalogue import CATALOGUE, PARKED, TABLES, TOPIC_STATE
from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.http import WebServer
from lakesplice.telemetry.metric import TABLE, Metric, MetricKind
from lakesplice.telemetry.registry import Metrics
from tests.support import tools
from tests.support.prometheus import (
    ALERTS,
    Prometheus,
    Query,
    alert_rules,
    dashboard_queries,
    rule_queries,
)

TESTS_OF_ALERTS = ALERTS.with_name("alerts.test.yaml")
TABLE_NAME = "shop.orders"


def show(metrics: Metrics, metric: Metric, moment: float) -> None:
    """Give every series of a metric that can be known beforehand a value, else one of them."""
    labels: list[dict[str, str]] = [{}]
    for label in metric.labels:
        values = (TABLE_NAME,) if label == TABLE else label.values or ("some",)
        labels = [{**one, label.name: value} for one in labels for value in values]
    for one in labels:
        match metric.kind:
            case MetricKind.COUNTER:
                metrics.add(metric, 1, **one)
            case MetricKind.GAUGE:
                metrics.set(metric, 1, **one)
            case MetricKind.HISTOGRAM:
                metrics.observe(metric, 1, **one)
            case MetricKind.AGE:
                metrics.since(metric, moment, **one)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    metrics = Metrics()
    metrics.register_table(TABLE_NAME)

    def work() -> None:
        for metric in CATALOGUE:
            if metric not in (PARKED, TABLES, TOPIC_STATE):
                show(metrics, metric, 1.0)
        metrics.show_topics((f"a.{state}", TABLE_NAME, state) for state in TopicState)
        metrics.park(TABLE_NAME, "no-key")

    # Counters move with each scrape, so that rates have something to measure.
    metrics.before_page(work)
    app = application(endpoints(metrics, Health(60.0)))
    with WebServer(app, "127.0.0.1", 0) as server:
        folder = tmp_path_factory.mktemp("prometheus")
        with Prometheus(folder, [f"127.0.0.1:{server.port}"]) as running:
            yield running


def test_every_panel_shows_something(prometheus: Prometheus) -> None:
    texts = [query.text for query in dashboard_queries()]
    assert len(texts) > 100
    prometheus.until(lambda: not prometheus.empty(texts), f"all of {texts} show something")


def test_every_series_that_an_alert_watches_is_there(prometheus: Prometheus) -> None:
    watched: set[str] = set()
    for rule in alert_rules():
        watched |= Query(rule["alert"], rule["expr"]).selectors
    # Reasons are known only by their first event: here there is but "some".
    known = {re.sub(r'reason="offsets"', 'reason="some"', selector) for selector in watched}
    prometheus.until(lambda: not prometheus.empty(known), f"all of {known} are there")


def test_prometheus_evaluates_every_alert(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        return all(rule["health"] != "unknown" for rule in prometheus.rules())

    prometheus.until(evaluated, "all rules are evaluated")
    assert {rule["name"]: rule["health"] for rule in prometheus.rules()} == {
        rule.where: "ok" for rule in rule_queries()
    }


def test_each_alert_is_raised_by_its_trouble_and_by_nothing_else() -> None:
    command = [str(tools.prometheus("promtool")), "test", "rules", str(TESTS_OF_ALERTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test_that_raises_it_and_one_that_does_not() -> None:
    named: dict[bool, set[str]] = {True: set(), False: set()}
    for one in yaml.safe_load(TESTS_OF_ALERTS.read_text())["tests"]:
        for check in one["alert_rule_test"]:
            named[bool(check.get("exp_alerts"))].add(check["alertname"])
    assert named[True] == named[False] == {rule["alert"] for rule in alert_rules()}
