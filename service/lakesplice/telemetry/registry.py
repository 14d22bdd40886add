"""The service's metrics: those of the catalogue, in a Prometheus registry of their own."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lakesplice.telemetry.catalogue import CATALOGUE, PARKED, SUSPECT_SETTING, TABLES, TOPIC_STATE
from lakesplice.telemetry.metric import NOT_PARKED, TABLE, Metric, MetricKind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Every metric of the catalogue, ready to be set and scraped.

    All methods may be called from any thread, and none blocks. A missing or unknown label raises
    `ValueError`, as does a metric of another kind: both are defects of the caller. `now` returns
    seconds since 1970, for ages.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        # It would be one more series per counter, which nobody uses.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # has no types
        self._registry = CollectorRegistry(auto_describe=False)
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._ages: dict[str, _Ages] = {}
        self._tables: dict[str, str] = {}
        self._topics: set[tuple[str, str, str]] = set()
        self._suspects: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._measures: list[Callable[[], None]] = []
        for metric in CATALOGUE:
            self._create(metric, now)
            if not metric.is_per_table:
                self._zero(metric)

    def add(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        """Count `amount`, which isn't negative, on a counter."""
        if metric.is_rare and not amount:
            return
        counter = self._counters[metric.name]
        (counter.labels(**labels) if metric.labels else counter).inc(amount)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge to `value`."""
        gauge = self._gauges[metric.name]
        (gauge.labels(**labels) if metric.labels else gauge).set(value)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Record one measurement in a histogram."""
        histogram = self._histograms[metric.name]
        (histogram.labels(**labels) if metric.labels else histogram).observe(value)

    def since(self, metric: Metric, moment: float | None, **labels: str) -> None:
        """Let an age count from `moment`, in seconds since 1970; None means that no moment is
        known.
        """
        self._ages[metric.name].since(moment, _ordered(metric, labels))

    @contextmanager
    def timed(self, metric: Metric, **labels: str) -> Iterator[None]:
        """Record in a histogram how long the block took, also when it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.observe(metric, time.perf_counter() - started, **labels)

    def register_table(self, table: str) -> None:
        """Export zeros for a table for every metric that is 0 at first; may be called again."""
        with self._lock:
            if table in self._tables:
                return
            self._tables[table] = NOT_PARKED
        for metric in CATALOGUE:
            if metric.is_per_table and metric is not PARKED:
                self._zero(metric, table)
        self.park(table, None)

    def park(self, table: str, code: str | None) -> None:
        """Show a registered table as parked for the reason `code`, or as running."""
        with self._lock:
            if table not in self._tables:
                return
            gauge = self._gauges[PARKED.name]
            gauge.remove_by_labels({TABLE.name: table})
            gauge.labels(table=table, code=code or NOT_PARKED).set(int(code is not None))
            self._tables[table] = code or NOT_PARKED
            self._count_tables()

    def drop_table(self, table: str) -> None:
        """Export nothing more about a table; an unknown table isn't an error."""
        with self._lock:
            self._tables.pop(table, None)
            for metric in CATALOGUE:
                if metric.is_per_table:
                    self._drop(metric, table)
            self._count_tables()

    def show_topics(self, states: Iterable[tuple[str, str, str]]) -> None:
        """Show these combinations of topic, table and state, in one series each, and no others."""
        gauge, now = self._gauges[TOPIC_STATE.name], set(states)
        with self._lock:
            for topic, table, state in self._topics - now:
                gauge.remove_by_labels({"topic": topic, "table": table, "state": state})
            for topic, table, state in now:
                gauge.labels(topic=topic, table=table, state=state).set(1)
            self._topics = now

    def show_suspect_settings(self, shown: Iterable[tuple[str, str, str]]) -> None:
        """Show these combinations of topic, table and setting, in one series each, and no
        others.
        """
        gauge, now = self._gauges[SUSPECT_SETTING.name], set(shown)
        with self._lock:
            for topic, _, setting in self._suspects - now:
                gauge.remove_by_labels({"topic": topic, "setting": setting})
            for labels in now:
                gauge.labels(*labels).set(1)
            self._suspects = now

    def before_page(self, measure: Callable[[], None]) -> None:
        """Have `measure` called before each page, to set metrics that are measured only when they
        are read.
        """
        self._measures.append(measure)

    def page(self) -> bytes:
        """Return all series in Prometheus' text format (`CONTENT_TYPE`)."""
        for measure in self._measures:
            measure()
        return generate_latest(self._registry)

    def value(self, metric: Metric, **labels: str) -> float | None:
        """Return the present value of a counter, gauge or age; None for an unknown series."""
        name = metric.name
        return self._registry.get_sample_value(name, labels)

    def _create(self, metric: Metric, now: Callable[[], float]) -> None:
        about = (metric.name, metric.meaning, metric.label_names)
        match metric.kind:
            case MetricKind.COUNTER:
                self._counters[metric.name] = Counter(*about, registry=self._registry)
            case MetricKind.GAUGE:
                self._gauges[metric.name] = Gauge(*about, registry=self._registry)
            case MetricKind.HISTOGRAM:
                self._histograms[metric.name] = Histogram(
                    *about, registry=self._registry, buckets=metric.buckets
                )
            case MetricKind.AGE:
                self._ages[metric.name] = _Ages(metric, now)
                self._registry.register(self._ages[metric.name])

    def _zero(self, metric: Metric, table: str | None = None) -> None:
        """Create the series of a metric whose label values are known beforehand."""
        if not metric.labels or metric.kind is MetricKind.AGE or metric.is_rare:
            return
        known = [(table,) if label == TABLE else label.values for label in metric.labels]
        family = self._family(metric)
        for values in itertools.product(*known):
            family.labels(*values)

    def _drop(self, metric: Metric, table: str) -> None:
        if metric.kind is MetricKind.AGE:
            self._ages[metric.name].drop(table)
        else:
            self._family(metric).remove_by_labels({TABLE.name: table})

    def _family(self, metric: Metric) -> Counter | Gauge | Histogram:
        families: tuple[dict[str, Counter] | dict[str, Gauge] | dict[str, Histogram], ...] = (
            self._counters,
            self._gauges,
            self._histograms,
        )
        return next(family[metric.name] for family in families if metric.name in family)

    def _count_tables(self) -> None:
        running = sum(code == NOT_PARKED for code in self._tables.values())
        self.set(TABLES, running, state="running")
        self.set(TABLES, len(self._tables) - running, state="parked")


class _Ages(Collector):
    """One age metric: the moment is stored, and the time since then is scraped."""

    def __init__(self, metric: Metric, now: Callable[[], float]) -> None:
        self._metric = metric
        self._now = now
        self._moments: dict[tuple[str, ...], float | None] = {}
        self._lock = threading.Lock()

    def since(self, moment: float | None, labels: tuple[str, ...]) -> None:
        with self._lock:
            self._moments[labels] = moment

    def drop(self, table: str) -> None:
        at = self._metric.label_names.index(TABLE.name)
        with self._lock:
            self._moments = {k: v for k, v in self._moments.items() if k[at] != table}

    def collect(self) -> Iterable[GaugeMetricFamily]:
        metric, now = self._metric, self._now()
        family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.label_names)
        with self._lock:
            moments = dict(self._moments)
        for labels, moment in moments.items():
            # A clock that was set back must not show a negative age.
            if moment is not None:
                family.add_metric(labels, max(0.0, now - moment))
            elif metric.nothing is not None:
                family.add_metric(labels, metric.nothing)
        yield family


def _ordered(metric: Metric, labels: dict[str, str]) -> tuple[str, ...]:
    if labels.keys() != set(metric.label_names):
        raise ValueError(f"{metric.name} has the labels {metric.label_names}, not {tuple(labels)}")
    return tuple(labels[name] for name in metric.label_names)
