"""A service that follows a fleet of which three tables are in trouble: how fresh the others are."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.filling import fill
from benchmarks.fleet_merge.contenders import TOPICS
from benchmarks.fleet_merge.rates import sizes
from benchmarks.soak.comparing import catch_up, is_equal
from benchmarks.soak.fleet import DATABASE, Fleet
from benchmarks.soak.running import changing, service
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.telemetry.catalogue import (
    FRESHNESS,
    FRESHNESS_GOAL,
    PARKED,
    READ_OPTIMISED,
    REAL_TIME,
)
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.servers.process import free_port
from lakesplice.testing.shop import Event
from lakesplice.testing.shop.columns import integer

_SAMPLE_SECONDS, _TIMEOUT_SECONDS = 5.0, 20.0
_HOTTEST = 0.5
_UNREADABLE = 10  # records a second of the bad table
_SERIES = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
# A name, its labels and its value.
_Series = tuple[str, dict[str, str], float]
# The age and the goal, in seconds, of each table's views.
_Sample = dict[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True)
class Following:
    """What the service follows, and how: `rate` changes a second, a freshness goal of `goal`."""

    tables: int
    rows: int
    rate: int
    trigger: str
    goal: str


class TroubledFleet(Fleet):
    """The first table gets half of all changes; the bad one records that can't be read, and the
    altered one another column, from the call number `alters_at` on.
    """

    def __init__(self, tables: int, rows: int, alters_at: int) -> None:
        super().__init__(tables, sizes(tables, rows), seed=1, hottest=_HOTTEST)
        self.hot, self.altered, self.bad = (
            self.names[number] for number in (0, tables // 3, tables // 2)
        )
        self.others = [
            name for name in self.names if name not in (self.hot, self.altered, self.bad)
        ]
        self._alters_at, self._calls = alters_at, 0

    def changes(self, count: int) -> list[Event]:
        """As any fleet's, with what the tables in trouble get besides."""
        self._calls += 1
        if self._calls == self._alters_at:
            self.add_column(self.altered, integer("added", default=7))
        events = super().changes(count)
        unreadable = Event(self.database.topic(self.bad), b'{"id":', b'{"op":', (), 0)
        moment = events[-1].timestamp_ms
        return [*events, *[unreadable._replace(timestamp_ms=moment)] * _UNREADABLE]


def follow(work: Path, following: Following, seconds: float) -> dict[str, Any]:
    """Run the service, and return how fresh its tables were and whether they are right."""
    fleet = TroubledFleet(following.tables, following.rows, round(seconds / 2))
    lake, port = work / "lake", free_port()
    config, log = work / "lakesplice.yaml", work / "service.log"
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(servers, [fleet.database.topic(name) for name in fleet.names], partitions=1)
        fill(servers, fleet.snapshot())
        config.write_text(yaml.safe_dump(_settings(servers, lake, port, following)))
        with service(config, log) as process:
            if catch_up(fleet, fleet.names, servers, lake, process) is None:
                raise RuntimeError(f"the first load failed:\n{log.read_text()[-4_000:]}")
            with changing(fleet, servers, following.rate) as sent:
                samples = _watched(process, port, seconds)
            parked = _parked(_page(port))
            caught_up = catch_up(
                fleet, [fleet.hot, fleet.altered, *fleet.others], servers, lake, process
            )
        equal = [
            name
            for name in (fleet.hot, fleet.altered, *fleet.others)
            if is_equal(fleet, lake, name)
        ]
    return {
        "tables": following.tables,
        "changes_per_second": following.rate,
        "records_per_second": round(sum(sent) / seconds, 1),
        "seconds": seconds,
        "trigger": following.trigger,
        "goal": following.goal,
        "samples": len(samples),
        "samples_missed": sum(not sample for sample in samples),
        "others": _ages(samples, {f"{DATABASE}.{name}" for name in fleet.others}),
        "hot": _ages(samples, {f"{DATABASE}.{fleet.hot}"}),
        "altered": _ages(samples, {f"{DATABASE}.{fleet.altered}"}),
        "bad_is_parked_as": parked.get(f"{DATABASE}.{fleet.bad}", "none"),
        "others_parked": len(parked.keys() - {f"{DATABASE}.{fleet.bad}"}),
        "caught_up_after_seconds": caught_up,
        "others_compared": len(fleet.others),
        "others_equal": sum(name in fleet.others for name in equal),
        "hot_is_equal": fleet.hot in equal,
        "altered_is_equal": fleet.altered in equal,
        "load": round(os.getloadavg()[1], 1),
    }


def _settings(servers: str, lake: Path, port: int, following: Following) -> dict[str, Any]:
    goal = {"real_time": following.goal}
    return {
        "kafka": {"bootstrap_servers": servers, "topic_pattern": TOPICS},
        "lake": {"root": str(lake)},
        "trigger": following.trigger,
        "spark": {"master": "local[2]"},
        "metrics": {"port": port},
        "tables": [{"match": f"{DATABASE}.*", "freshness": goal}],
    }


def _watched(process: subprocess.Popen[bytes], port: int, seconds: float) -> list[_Sample]:
    """Take samples for so long; one is empty if the page wasn't there in time."""
    began, samples = time.monotonic(), list[_Sample]()
    while (passed := time.monotonic() - began) < seconds:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended after {passed:.0f} s; see service.log")
        try:
            samples.append(_sample(_page(port)))
        except OSError:
            samples.append({})
        time.sleep(max(0.0, len(samples) * _SAMPLE_SECONDS - (time.monotonic() - began)))
    return samples


def _page(port: int) -> list[_Series]:
    address = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as answer:
        page = answer.read().decode()
    return [
        (name, dict(_LABEL.findall(labels)), float(value))
        for name, labels, value in _SERIES.findall(page)
    ]


def _sample(page: list[_Series]) -> _Sample:
    ages, goals = (
        {(labels["table"], labels["view"]): value for name, labels, value in page if name == wanted}
        for wanted in (FRESHNESS.name, FRESHNESS_GOAL.name)
    )
    return {view: (age, goals[view]) for view, age in ages.items() if view in goals}


def _parked(page: list[_Series]) -> dict[str, str]:
    """The parked tables, and the code of each one's reason."""
    return {
        labels["table"]: labels["code"]
        for name, labels, value in page
        if name == PARKED.name and value
    }


def _ages(samples: Sequence[_Sample], tables: Collection[str]) -> dict[str, Any]:
    """What the samples say of these tables."""
    found: dict[str, Any] = {}
    for view in (REAL_TIME, READ_OPTIMISED):
        seen = [
            (table, age, goal)
            for sample in samples
            for (table, of), (age, goal) in sample.items()
            if of == view and table in tables
        ]
        ages = [age for _, age, _ in seen]
        found[view] = {
            "goal_seconds": min(goal for _, _, goal in seen),
            "tables_ever_beyond": len({table for table, age, goal in seen if age > goal}),
            "age_median_seconds": round(statistics.median(ages), 1),
            "age_worst_seconds": round(max(ages), 1),
        }
    return found
