"""The catalogue of metrics, and the scraped page."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakesplice.telemetry.catalogue import (
    BATCH_SECONDS,
    CATALOGUE,
    CHANGES,
    DUPLICATES,
    FRESHNESS,
    PARKED,
    QUERY_RESTARTS,
    TABLES,
)
from lakesplice.telemetry.document import metrics_page, series_per_table
from lakesplice.telemetry.families.compaction import DELTA_FILES, DELTA_OLDEST
from lakesplice.telemetry.metric import PREFIX, TABLE, Metric, MetricKind
from lakesplice.telemetry.registry import Metrics

DOCS = Path(__file__).parents[3] / "docs"


def labels_of(metric: Metric) -> dict[str, str]:
    return {label.name: label.values[0] if label.values else "x" for label in metric.labels}


def touch(metrics: Metrics, metric: Metric) -> None:
    match metric.kind:
        case MetricKind.COUNTER:
            metrics.add(metric, 3, **labels_of(metric))
        case MetricKind.GAUGE:
            metrics.set(metric, 3, **labels_of(metric))
        case MetricKind.HISTOGRAM:
            metrics.observe(metric, 3, **labels_of(metric))
        case MetricKind.AGE:
            metrics.since(metric, 97, **labels_of(metric))


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_every_metric_can_be_set_and_is_scraped_with_its_help(metric: Metric) -> None:
    metrics = Metrics(now=lambda: 100.0)
    touch(metrics, metric)
    families = {f.name: f for f in text_string_to_metric_families(metrics.page().decode())}
    family = families[metric.name.removesuffix("_total")]
    assert family.documentation == metric.meaning
    samples = {
        sample.name: sample.value
        for sample in family.samples
        if labels_of(metric).items() <= sample.labels.items() and "le" not in sample.labels
    }
    histogram = metric.kind is MetricKind.HISTOGRAM
    assert samples[f"{metric.name}_sum" if histogram else metric.name] == 3


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert metric.name.startswith(PREFIX)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert metric.name.endswith("_seconds") == (metric.unit == "seconds")
    assert bool(metric.buckets) == (metric.kind is MetricKind.HISTOGRAM)
    assert list(metric.buckets) == sorted(metric.buckets)
    assert metric.meaning.endswith(".")
    assert metric.remedy.endswith(".")


def test_no_two_metrics_share_a_name() -> None:
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)


def test_the_document_is_the_catalogue() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == metrics_page()


def test_known_labels_are_zero_from_the_start() -> None:
    metrics = Metrics()
    assert metrics.value(QUERY_RESTARTS, reason="error") == 0
    assert metrics.value(CHANGES, table="shop.orders", op="update") is None
    metrics.register_table("shop.orders")
    assert metrics.value(CHANGES, table="shop.orders", op="update") == 0
    assert metrics.value(DELTA_FILES, table="shop.orders") == 0


def test_a_table_has_some_thirty_series_so_that_hundreds_can_be_scraped() -> None:
    assert series_per_table() <= 32


def test_a_rare_counter_has_a_series_only_after_it_was_counted() -> None:
    metrics = Metrics()
    metrics.register_table("shop.orders")
    metrics.add(DUPLICATES, 0, table="shop.orders")
    assert metrics.value(DUPLICATES, table="shop.orders") is None
    metrics.add(DUPLICATES, 2, table="shop.orders")
    assert metrics.value(DUPLICATES, table="shop.orders") == 2


def test_registering_twice_keeps_what_was_counted() -> None:
    metrics = Metrics()
    metrics.register_table("shop.orders")
    metrics.add(CHANGES, table="shop.orders", op="update")
    metrics.register_table("shop.orders")
    assert metrics.value(CHANGES, table="shop.orders", op="update") == 1


def test_a_dropped_table_leaves_no_series() -> None:
    metrics = Metrics()
    for table in ("shop.orders", "shop.items"):
        metrics.register_table(table)
        for metric in CATALOGUE:
            if metric.is_per_table:
                labels = {**labels_of(metric), TABLE.name: table}
                if metric.kind is MetricKind.AGE:
                    metrics.since(metric, 1, **labels)
    metrics.drop_table("shop.orders")
    metrics.drop_table("shop.orders")
    page = metrics.page().decode()
    assert "shop.orders" not in page
    assert "shop.items" in page
    assert metrics.value(TABLES, state="running") == 1


def test_a_parked_table_has_one_series_with_its_code() -> None:
    metrics = Metrics()
    metrics.register_table("shop.orders")
    assert metrics.value(PARKED, table="shop.orders", code="none") == 0
    metrics.park("shop.orders", "no-key")
    assert metrics.value(PARKED, table="shop.orders", code="no-key") == 1
    assert metrics.value(PARKED, table="shop.orders", code="none") is None
    assert metrics.value(TABLES, state="parked") == 1
    metrics.park("shop.orders", None)
    assert metrics.value(PARKED, table="shop.orders", code="no-key") is None
    assert metrics.value(TABLES, state="running") == 1
    metrics.park("shop.unknown", "no-key")
    assert "shop.unknown" not in metrics.page().decode()


def test_an_age_grows_by_itself_and_is_never_negative() -> None:
    now = [100.0]
    metrics = Metrics(now=lambda: now[0])
    labels = {"table": "shop.orders", "view": "real_time"}
    assert metrics.value(FRESHNESS, **labels) is None
    metrics.since(FRESHNESS, 90, **labels)
    assert metrics.value(FRESHNESS, **labels) == 10
    now[0] = 150
    assert metrics.value(FRESHNESS, **labels) == 60
    now[0] = 50
    assert metrics.value(FRESHNESS, **labels) == 0


def test_an_age_of_nothing_is_zero_or_unknown_as_the_catalogue_says() -> None:
    metrics = Metrics(now=lambda: 100.0)
    labels = {"table": "shop.orders", "view": "real_time"}
    metrics.since(FRESHNESS, 90, **labels)
    metrics.since(FRESHNESS, None, **labels)
    assert metrics.value(FRESHNESS, **labels) is None
    metrics.since(DELTA_OLDEST, 90, table="shop.orders")
    metrics.since(DELTA_OLDEST, None, table="shop.orders")
    assert metrics.value(DELTA_OLDEST, table="shop.orders") == 0


def test_a_label_that_a_metric_does_not_have_is_refused() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="label"):
        metrics.add(CHANGES, table="a", operation="b")
    with pytest.raises(ValueError, match="labels"):
        metrics.since(FRESHNESS, 1, table="a")


def test_a_block_is_timed_also_when_it_raises() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError), metrics.timed(BATCH_SECONDS, phase="job"):
        raise KeyError
    assert b'lakesplice_batch_duration_seconds_count{phase="job"} 1.0' in metrics.page()


def test_two_services_in_one_process_do_not_share_counts() -> None:
    one, other = Metrics(), Metrics()
    one.add(QUERY_RESTARTS, reason="error")
    assert other.value(QUERY_RESTARTS, reason="error") == 0


def test_threads_may_count_together() -> None:
    metrics = Metrics()

    def count() -> None:
        for _ in range(1_000):
            metrics.add(QUERY_RESTARTS, reason="error")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.value(QUERY_RESTARTS, reason="error") == 4_000


def test_a_label_with_odd_characters_keeps_the_page_readable() -> None:
    metrics = Metrics()
    table = 'sh"op.or\nders\\ü'
    metrics.register_table(table)
    families = list(text_string_to_metric_families(metrics.page().decode()))
    tables = {s.labels.get("table") for family in families for s in family.samples}
    assert table in tables


def test_a_topic_has_one_series_of_the_state_that_it_is_in() -> None:
    metrics = Metrics()

    def shown() -> list[str]:
        page = metrics.page().decode().splitlines()
        return [line for line in page if line.startswith("lakesplice_topic_state{")]

    metrics.show_topics([("a.b.c", "b.c", "waiting"), ("a.b.d", "", "refused")])
    metrics.show_topics([("a.b.c", "b.c", "running"), ("a.b.d", "", "refused")])
    assert shown() == [
        'lakesplice_topic_state{state="refused",table="",topic="a.b.d"} 1.0',
        'lakesplice_topic_state{state="running",table="b.c",topic="a.b.c"} 1.0',
    ]
    metrics.show_topics([("a.b.c", "b.c", "running")])
    assert len(shown()) == 1, "what the broker has no more is shown no more"
