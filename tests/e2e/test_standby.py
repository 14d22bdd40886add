"""Two replicas of one lake, as an orchestrator runs them: one is the driver, the other waits."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from lakesplice.testing.compare import compare
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.machine import ROOT
from tests.support.running import Lake, RunningService, ends_of, take_in
from tests.support.topics import Sender, make_topics

LEASE_SECONDS = 2
DEPLOYMENT = (ROOT / "helm/lakesplice/templates/deployment.yaml").read_text()
ALIVE, READY = (
    re.findall(rf"{probe}Probe:\s+httpGet: {{path: (/\w+)", DEPLOYMENT)[0]
    for probe in ("liveness", "readiness")
)
EAGER: dict[str, Any] = {
    "trigger": 0.2,
    "lease": LEASE_SECONDS,
    "compaction": {"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1},
}


@dataclass(frozen=True)
class Replica:
    """One of several services with one lake, and what is asked of it from outside."""

    lake: Lake
    service: RunningService
    port: int

    def answers(self, path: str) -> bool:
        """Whether a probe of this path succeeds."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5):
                return True
        except (HTTPError, URLError, TimeoutError):
            return False

    def shows(self, line: str) -> bool:
        """Whether the metrics page has the line."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
            return line in page.read().decode().splitlines()

    def until_ready(self) -> None:
        self.service.until(lambda: self.answers(READY), "it is ready")

    def until_it_waits(self) -> None:
        self.service.until(lambda: bool(self.lake.said("standby")), "it stands by")
        assert self.answers(ALIVE)
        assert not self.answers(READY)
        assert self.shows("lakesplice_driver_standby 1.0")


@contextmanager
def replica(
    folder: Path, name: str, servers: str, pattern: str, *, own_jvm: bool = True
) -> Iterator[Replica]:
    """One more service of the lake in `folder`, with a log and a page of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sections = {**EAGER, "metrics": {"port": port}, "lake": {"root": str(folder / "lake")}}
    lake = Lake(folder / name, servers, pattern, **sections)
    with lake.running(own_jvm=own_jvm) as service:
        yield Replica(lake, service, port)


def generations(folder: Path) -> list[int]:
    """The numbers of all drivers that the lake had."""
    records = sorted((folder / "lake/_lakesplice/generations").glob("*.json"))
    return [json.loads(record.read_text())["generation"] for record in records]


def test_a_standby_takes_over_from_a_killed_and_from_a_frozen_driver_which_then_stops(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender, pattern = Sender(kafka_broker), rf"{topic_name}\..*"

    with replica(tmp_path, "first", kafka_broker, pattern) as first:
        take_in(first.service, first.lake, ends_of(send(sender, goods.insert(0, 300))))
        first.until_ready()
        with replica(tmp_path, "second", kafka_broker, pattern) as second:
            second.until_it_waits()
            assert first.shows("lakesplice_driver_standby 0.0")
            records = send(sender, goods.update(range(0, 300, 3), "first's last"))
            first.service.kill()
            take_in(second.service, second.lake, ends_of(records))
            second.until_ready()
            assert second.shows("lakesplice_driver_standby 0.0")
            assert generations(tmp_path) == [1, 2]

            with replica(tmp_path, "third", kafka_broker, pattern) as third:
                third.until_it_waits()
                records = send(sender, goods.update(range(0, 300, 2), "second's last"))
                second.service.freeze()
                third.service.until(lambda: len(generations(tmp_path)) == 3, "it takes over")
                records += send(sender, goods.delete(range(10)) + goods.insert(300, 320))
                take_in(third.service, third.lake, ends_of(records))
                version = third.lake.table(goods.topic).version
                second.service.thaw()
                assert second.service.ends() == 1
                assert "higher generation" in second.service.tail()
                assert third.lake.table(goods.topic).version >= version
                records = send(sender, goods.insert(320, 330))
                take_in(third.service, third.lake, ends_of(records))
                assert generations(tmp_path) == [1, 2, 3]
                third.service.until(
                    lambda: not third.lake.table(goods.topic).snapshot.manifest.deltas,
                    "all is spliced in",
                )
                third.service.terminate()
                third.service.ends_well()
    for view in ("real_time", "read_optimised"):
        assert compare(goods.truth, third.lake.table(goods.topic).read(view), ["id"]) is None


def test_a_driver_that_ends_in_order_hands_over_without_a_lease(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender, pattern = Sender(kafka_broker), rf"{topic_name}\..*"
    with replica(tmp_path, "first", kafka_broker, pattern, own_jvm=False) as first:
        take_in(first.service, first.lake, ends_of(send(sender, goods.insert(0, 100))))
        with replica(tmp_path, "second", kafka_broker, pattern, own_jvm=False) as second:
            second.until_it_waits()
            first.service.terminate()
            first.service.ends_well()
            take_in(second.service, second.lake, ends_of(send(sender, goods.delete(range(50)))))
            # A standby that never drove ends at once when asked to.
            with replica(tmp_path, "third", kafka_broker, pattern) as third:
                third.until_it_waits()
                third.service.terminate()
                third.service.ends_well(30)
            assert generations(tmp_path) == [1, 2]
            second.service.terminate()
            second.service.ends_well()
    assert compare(goods.truth, second.lake.table(goods.topic).read(), ["id"]) is None
