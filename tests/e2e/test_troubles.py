"""One service has topics with every kind of problem: each is shown with its reason, and affects no
other.

Only a whole service shows that queries aren't restarted for resting tables, and that the lake, the
pages and the log report the same. All cases share one service.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakesplice.model.driver_status import TROUBLES, TopicState
from lakesplice.testing.servers.process import free_port
from tests.support.command_line import CommandLine
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, RunningService, ends_of, take_in
from tests.support.topics import Sender, make_topics

LONG = "x" * 256


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Nothing can be put into the folder while the block runs, by root either."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    done = subprocess.run(["chattr", "+i", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("as root, and the file system knows no immutable folders")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)


@dataclass
class Scene:
    """A lake, its service's pages, and a source to each topic."""

    lake: Lake
    servers: str
    prefix: str
    port: int
    cli: CommandLine
    ledgers: dict[str, Ledger] = field(default_factory=dict)

    def ledger(self, name: str, server: str = "") -> Ledger:
        return self.ledgers.setdefault(server + name, Ledger(server or self.prefix, name))

    def topic(self, name: str) -> str:
        return self.ledger(name).topic

    def tables(self) -> dict[str, dict[str, Any]]:
        """What `lakesplice tables` says, by topic."""
        return {row["topic"]: row for row in self.cli.rows("tables", self.lake.root)}

    def state(self, topic: str) -> str:
        return str(self.tables().get(topic, {}).get("state"))

    def is_running(self, topic: str) -> Callable[[], bool]:
        """A question for `until`: whether the topic's table runs."""
        return lambda: self.state(topic) == "running"

    def page(self, name: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=10) as answer:
            return str(answer.read().decode())

    def series(self, name: str, **labels: str) -> dict[str, float]:
        """The values of a metric's series that have these labels, by their lines."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = [line.rpartition(" ") for line in self.page("metrics").splitlines()]
        return {
            head: float(value)
            for head, _, value in lines
            if head.startswith(f"lakesplice_{name}{{") and all(one in head for one in wanted)
        }

    def restarts(self) -> int:
        return len(self.lake.said("query-restarts"))

    def files(self, name: str) -> set[Path]:
        folder = self.lake.path(self.topic(name))
        return {path for path in folder.rglob("*") if path.is_file()}

    def rests(self, name: str) -> int:
        """How often the topic's table has rested."""
        said = self.lake.said("table-rests")
        return len([one for one in said if one["topic"] == self.topic(name)])


@pytest.fixture
def scene(kafka_broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scene:
    prefix, port = f"troubles-{secrets.token_hex(4)}", free_port()
    lake = Lake(
        tmp_path,
        kafka_broker,
        rf"{prefix}\..*",
        metrics={"enabled": True, "port": port},
        tables=[
            {"match": "long.ledger", "to": f"long.{LONG}"},
            {"match": "left.ledger", "read": False},
        ],
    )
    return Scene(lake, kafka_broker, prefix, port, CommandLine(capsys))


def test_each_topic_in_trouble_is_shown_and_continues_once_it_is_mended(scene: Scene) -> None:
    lake, sender = scene.lake, Sender(scene.servers)
    names = ("steady", "stuck", "unborn", "long", "left", "empty", "garbled")
    for name in names:
        scene.ledger(name)
    again = scene.ledger("steady", f"{scene.prefix}.zz")
    silent = scene.ledger("silent", f"{scene.prefix}.dead")
    beats = f"__debezium-heartbeat.{scene.prefix}"
    nameless = f"{scene.prefix}.nameless."
    topics = {ledger.topic: PARTITIONS for ledger in scene.ledgers.values()} | {
        nameless: 1,
        beats: 1,
    }
    make_topics(scene.servers, topics)
    lake.root.mkdir()
    in_the_way = lake.root / "unborn"
    in_the_way.write_text("no folder")
    with lake.running() as service:
        garbled = scene.ledger("garbled").insert(0, 3)
        send(sender, [event._replace(value=b'{"payload": 1}') for event in garbled])
        topic = scene.topic("garbled")
        service.until(lambda: scene.state(topic) == TopicState.PARKED, "what can't be read parks")
        sender.send(beats, 0, None, b"{}")
        # What a topic's table is called is known from its first record.
        send(sender, again.insert(0, 1))
        # What a converter makes of what a connector leaves empty, if it puts defaults there.
        (filled,) = scene.ledger("steady").insert(50, 51)
        value = (filled.value or b"").replace(b'"snapshot":null', b'"snapshot":"false"')
        send(sender, [filled._replace(value=value)])
        first = [event for name in ("steady", "stuck") for event in scene.ledger(name).insert(0, 9)]
        first += silent.insert(0, 3)
        written = time.time()
        take_in(service, lake, ends_of(send(sender, first)))
        with unwritable(lake.path(scene.topic("stuck")) / "_delta_log"):
            troubled = [e for n in names[1:4] for e in scene.ledger(n).insert(100, 120)]
            ends = ends_of(record for record in send(sender, troubled))
            rests_without_harm(scene, service, sender)
            is_told_everywhere(scene, service, again.topic, nameless)
            connectors_show_when_they_last_wrote(scene, service, written)
        in_the_way.unlink()
        long = scene.topic("long")
        take_in(service, lake, {place: end for place, end in ends.items() if place[0] != long})
        for name in ("stuck", "unborn"):
            topic = scene.topic(name)
            service.until(scene.is_running(topic), f"{name} is well")
            assert lake.table(topic).read().num_rows == scene.ledger(name).truth.num_rows
        service.terminate()
        service.ends_well()
    is_known_to_be_behind_from_the_start(scene, sender)


def connectors_show_when_they_last_wrote(
    scene: Scene, service: RunningService, written: float
) -> None:
    """The age of one that stands still grows; heartbeats tell it from a source that is silent."""

    def age(connector: str, heartbeats: str) -> float:
        labels = {"connector": connector, "heartbeats": heartbeats}
        return max(scene.series("connector_event_age_seconds", **labels).values(), default=-1)

    dead = f"{scene.prefix}.dead"
    service.until(lambda: age(dead, "no") >= 0, "the age of the silent connector is shown")
    assert age(dead, "no") >= time.time() - written - 5
    assert 0 <= age(scene.prefix, "yes") < age(dead, "no")


def is_known_to_be_behind_from_the_start(scene: Scene, sender: Sender) -> None:
    """A driver that starts with a table behind, and can't catch up, says how fresh it is."""
    topic, table = scene.topic("steady"), "steady.ledger"
    fresh_seconds = {"table": table, "view": "real_time"}
    with unwritable(scene.lake.path(topic) / "_delta_log"):
        behind_since = time.time()
        send(sender, scene.ledger("steady").update(range(9), "while nobody reads"))
        with scene.lake.running() as service:
            service.until(lambda: scene.state(topic) == "resting", "what can't be written rests")
            (age,) = scene.series("table_freshness_seconds", **fresh_seconds).values()
            # Its last complete moment was before the first driver ended.
            assert time.time() - behind_since - 5 <= age < 600
            service.terminate()
            service.ends_well()


def rests_without_harm(scene: Scene, service: RunningService, sender: Sender) -> None:
    """The others go on, no file is written for what rests, and no query restarts for it."""
    service.until(lambda: scene.rests("stuck") >= 2, "it rests for the second time")
    files, restarts = scene.files("stuck"), scene.restarts()
    records = send(sender, scene.ledger("steady").update(range(9), "goes on"))
    take_in(service, scene.lake, ends_of(records))
    service.until(lambda: scene.rests("stuck") >= 3, "it rests for the third time")
    assert scene.files("stuck") == files
    assert scene.restarts() == restarts
    assert not scene.lake.said("query-failed")
    pauses = [
        one["seconds"]
        for one in scene.lake.said("table-rests")
        if one["topic"] == scene.topic("stuck")
    ]
    assert pauses == sorted(pauses)
    assert {one["level"] for one in scene.lake.said("table-rests")} == {"warning"}


def is_told_everywhere(scene: Scene, service: RunningService, again: str, nameless: str) -> None:
    expected = {
        scene.topic("steady"): TopicState.RUNNING,
        scene.topic("stuck"): TopicState.RESTING,
        scene.topic("unborn"): TopicState.RESTING,
        scene.topic("long"): TopicState.RESTING,
        scene.topic("left"): TopicState.EXCLUDED,
        scene.topic("empty"): TopicState.WAITING,
        scene.topic("garbled"): TopicState.PARKED,
        again: TopicState.REFUSED,
        nameless: TopicState.REFUSED,
    }

    def all_shown() -> bool:
        rows = scene.tables()
        return all(rows.get(topic, {}).get("state") == expected[topic] for topic in expected)

    service.until(all_shown, f"the tables' states are {expected}")
    rows = scene.tables()
    assert "_delta_log" in rows[scene.topic("stuck")]["detail"]
    assert "too long" in rows[scene.topic("long")]["detail"]
    assert "3 of 3 records can't be decoded" in rows[scene.topic("garbled")]["detail"]
    assert "two topics feed one table" in rows[again]["detail"]
    assert "must end in database.table" in rows[nameless]["detail"]
    assert all(rows[topic]["since"] for topic in expected)
    ready = json.loads(scene.page("readyz"))
    troubles = {t for t, state in expected.items() if state in TROUBLES}
    assert ready["ready"]
    assert ready["topics"].keys() == troubles
    page = scene.page("metrics").splitlines()
    for topic, state in expected.items():
        states = [line for line in page if line.startswith("lakesplice_topic_state{")]
        (series,) = [line for line in states if f'topic="{topic}"' in line]
        assert f'state="{state}"' in series
    assert [t for t, row in rows.items() if row["suspect_settings"]] == [scene.topic("steady")]
    (line,) = [line for line in page if line.startswith("lakesplice_suspect_setting{")]
    nulls = "value.converter.replace.null.with.default"
    (suspect,) = rows[scene.topic("steady")]["suspect_settings"]
    assert suspect["name"] == nulls
    assert f'setting="{nulls}",table="steady.ledger",topic="{scene.topic("steady")}"' in line


def test_once_over_a_pattern_that_matches_nothing_says_so_and_fails(
    kafka_broker: str, topic_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topics(kafka_broker, {f"{topic_name}.shop.goods": 1})
    lake = Lake(tmp_path, kafka_broker, topic_name.replace(".", r"\."))
    with lake.running("--once") as service:
        assert service.ends(240) == 1, service.tail()
    (said,) = lake.said("no-topic-matches")
    assert said["level"] == "warning"
    assert said["topics"] >= 1
    (ended,) = lake.said("once-ended")
    assert (ended["level"], ended["topics"], ended["changes"]) == ("error", 0, 0)
    told = CommandLine(capsys)("tables", lake.root)
    assert "no topic matches kafka.topic_pattern" in told.err
