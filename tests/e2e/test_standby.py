"""Two replicas of one lake, as an orchestrator runs them: one is the driver, the other waits."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from lakesplice.testing.compare import compare
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.machine import ROOT
from tests.support.running import EVENT_SECONDS_MAX, Lake, RunningService, ends_of, take_in
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
    folder: Path, name: str, *, servers: str, pattern: str, own_jvm: bool = False
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


def ends_in_order(one: Replica, seconds_max: float = EVENT_SECONDS_MAX) -> None:
    one.service.terminate()
    one.service.ends_well(seconds_max)


def test_a_standby_takes_over_from_a_driver_that_ends_is_killed_or_is_frozen_and_stops(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    """One after the other, with one lake, so that each driver begins from what another left."""
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender = Sender(kafka_broker)
    replicas = partial(replica, tmp_path, servers=kafka_broker, pattern=rf"{topic_name}\..*")
    with ExitStack() as first_life, ExitStack() as lives:
        first = first_life.enter_context(replicas("first"))
        take_in(first.service, first.lake, ends_of(send(sender, goods.insert(0, 300))))
        first.until_ready()
        second = lives.enter_context(replicas("second"))
        second.until_it_waits()
        assert first.shows("lakesplice_driver_standby 0.0")
        ends_in_order(first)
        first_life.close()
        take_in(second.service, second.lake, ends_of(send(sender, goods.insert(300, 310))))

        third = lives.enter_context(replicas("third"))
        third.until_it_waits()
        records = send(sender, goods.update(range(0, 300, 3), "second's last"))
        second.service.kill()
        take_in(third.service, third.lake, ends_of(records))
        third.until_ready()
        assert third.shows("lakesplice_driver_standby 0.0")
        assert generations(tmp_path) == [1, 2, 3]

        with replicas("never", own_jvm=True) as never:
            never.until_it_waits()
            ends_in_order(never, 30)
        fourth = lives.enter_context(replicas("fourth"))
        fourth.until_it_waits()
        takes_over_from_frozen(third, fourth, goods, sender)
        assert generations(tmp_path) == [1, 2, 3, 4]
        fourth.service.until(
            lambda: not fourth.lake.table(goods.topic).snapshot.manifest.deltas,
            "all is spliced in",
        )
        ends_in_order(fourth)
    for view in ("real_time", "read_optimised"):
        assert compare(goods.truth, fourth.lake.table(goods.topic).read(view), ["id"]) is None


def takes_over_from_frozen(old: Replica, new: Replica, goods: Ledger, sender: Sender) -> None:
    """The old driver makes no further commit once it goes on, and stops."""
    records = send(sender, goods.update(range(0, 300, 2), "the old one's last"))
    old.service.freeze()
    new.service.until(lambda: bool(new.lake.said("driver")), "it takes over")
    records += send(sender, goods.delete(range(10)) + goods.insert(310, 330))
    take_in(new.service, new.lake, ends_of(records))
    version = new.lake.table(goods.topic).version
    old.service.thaw()
    assert old.service.ends() == 1
    assert "higher generation" in old.service.tail()
    assert new.lake.table(goods.topic).version >= version
    records = send(sender, goods.insert(330, 340))
    take_in(new.service, new.lake, ends_of(records))
