"""Kafka as in production: users with passwords or certificates, over TLS, with the least rights.

One broker has a listener for each kind of login. Each user has the least rights, or lacks one of
them (docs/kafka-security.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakesplice.spark.jars import JarSet, Module, ensure_jars
from lakesplice.testing.servers.process import java_command
from lakesplice.testing.shop import Database
from tests.support import warm_jvms
from tests.support.ledgers import ledger
from tests.support.running import Lake, environment
from tests.support.secured_broker import (
    CERTIFIED,
    PASSWORD,
    STORE_PASSWORD,
    USER,
    Right,
    SecuredBroker,
)
from tests.support.topics import Sender, make_topics

TOPIC, LETTERS, GROUP = "shop.some.goods", "letters", "lake-of-the-shop"
LEAST: dict[str, Right] = {
    "topics": ("READ", "TOPIC", "shop.*"),
    "group": ("READ", "GROUP", GROUP),
    "letters": ("WRITE", "TOPIC", LETTERS),
}
# Kafka's own tools, for tests alone.
TOOLS = JarSet(
    "kafka-tools",
    (
        Module("org.apache.kafka", "kafka-tools", "4.1.2", transitive=True),
        Module("org.slf4j", "slf4j-simple", "1.7.36", transitive=True),
    ),
)
SECONDS_MAX = 15.0
FORBIDDEN = "other.books.forbidden"
STEPS = ["topics", "group", "letter"]
Told = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def broker(
    broker_jars: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured")
    with SecuredBroker(broker_jars, folder, java_command()) as running:
        make_topics(running.administrator, {TOPIC: 1, LETTERS: 1})
        Sender(running.administrator).send_all([(TOPIC, 0, b"key", b"value")] * 5)
        for user in (USER, CERTIFIED):
            running.allow(*LEAST.values(), user=user)
        yield running


@pytest.fixture(scope="module")
def told(broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What happens to each user, all in one process."""
    cases: dict[str, dict[str, Any]] = {}

    def add(name: str, listener: str, options: dict[str, str], steps: list[str]) -> None:
        of_case = {"servers": broker.servers(listener), "options": options, "steps": steps}
        cases[name] = {**of_case, "topic": TOPIC, "group": GROUP, "letters": LETTERS}

    for listener in ("PLAIN", "CERTIFIED"):
        add(listener, listener, broker.options(listener), [*STEPS, "records"])
    for missing in LEAST:
        user = f"without-{missing}"
        broker.allow(*(right for name, right in LEAST.items() if name != missing), user=user)
        add(user, "PLAIN", broker.options("PLAIN", user), STEPS)
    broker.allow(("DESCRIBE", "TOPIC", "shop.*"), ("DESCRIBE", "GROUP", GROUP), user="looks-only")
    steps = ["topics", "group", "records", "refusal", "first_records"]
    add("looks-only", "PLAIN", broker.options("PLAIN", "looks-only"), steps)
    for listener in ("PLAIN", "SCRAM"):
        wrong = broker.options(listener, password="another")
        add(f"wrong password, {listener}", listener, wrong, ["topics"])
    certified = broker.options("CERTIFIED")
    without = {name: at for name, at in certified.items() if not name.startswith("ssl.keystore")}
    add("no certificate", "CERTIFIED", without, ["topics"])
    trusting = {name: at for name, at in certified.items() if "truststore" not in name}
    add("unknown broker", "CERTIFIED", trusting, ["topics"])
    jvm, log = warm_jvms.take(environment()), tmp_path_factory.mktemp("told") / "jvm.log"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.secured_checks"],
        input=json.dumps(cases),
        env={**environment(), **(jvm.variables if jvm else {})},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    log.touch()
    if jvm is not None:
        jvm.give_back(log)
    for secret in (PASSWORD, STORE_PASSWORD, "another"):
        assert secret not in done.stderr + log.read_text(errors="replace")
    found: Told = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("login", ["PLAIN", "CERTIFIED"])
def test_the_least_rights_are_enough_for_every_client(told: Told, login: str) -> None:
    assert {step: one.get("value", one) for step, one in told[login].items()} == {
        "topics": {TOPIC: True},
        "group": [[TOPIC, 0, 3, True]],
        "letter": "sent",
        "records": 5,
    }


@pytest.mark.parametrize(
    ("user", "step", "named"),
    [
        ("without-group", "group", f"DESCRIBE on group {GROUP}"),
        ("looks-only", "group", f"READ on group {GROUP}"),
        ("without-letters", "letter", f"WRITE on topic {LETTERS}"),
        ("looks-only", "records", f"Not authorized to access topics: [{TOPIC}]"),
        ("looks-only", "refusal", f"Not authorized to access topics: [{TOPIC}]"),
        ("looks-only", "first_records", f"Not authorized to access topics: [{TOPIC}]"),
    ],
)
def test_an_error_names_the_right_that_is_missing(
    told: Told, user: str, step: str, named: str
) -> None:
    assert named in told[user][step]["error"]
    assert "RetryableError" in told[user][step]["kinds"]


def test_a_topic_that_may_not_be_read_is_known_before_it_is_read(told: Told) -> None:
    assert told["looks-only"]["topics"]["value"] == {TOPIC: False}
    assert told["without-topics"]["topics"]["value"] == {}


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ("wrong password, PLAIN", "Invalid username or password"),
        ("wrong password, SCRAM", "invalid credentials with SASL mechanism SCRAM-SHA-512"),
        ("no certificate", "bad_certificate"),
        ("unknown broker", "unable to find valid certification path"),
    ],
)
def test_wrong_credentials_are_refused_within_seconds_with_the_cause(
    told: Told, case: str, cause: str
) -> None:
    refused = told[case]["topics"]
    assert "CredentialsRefused" in refused["kinds"]
    assert cause in refused["error"]
    assert refused["seconds"] < SECONDS_MAX


@dataclass
class Fed:
    """A lake that a service fills as the user of the SCRAM listener, and its source."""

    lake: Lake
    sender: Sender
    database: Database

    def insert(self, first: int) -> None:
        rows = [(key, f"row {key}", key, key, 1_000) for key in range(first, first + 10)]
        self.database.insert("ledger", rows)
        events = self.database.drain()
        self.sender.send_all([(event.topic, 0, event.key, event.value) for event in events])

    @property
    def topic(self) -> str:
        return self.database.topic("ledger")

    def next_offset(self) -> int:
        return self.lake.table(self.topic).offsets[0]


@pytest.fixture
def fed(broker: SecuredBroker, tmp_path: Path) -> Fed:
    database = Database([ledger()], server="shop", database="books")
    make_topics(broker.administrator, {database.topic("ledger"): 1, FORBIDDEN: 1})
    broker.allow(("DESCRIBE", "TOPIC", FORBIDDEN))
    options = broker.options("SCRAM")
    kafka = {"group_id": GROUP, "options": options, "topic_poll_seconds": 1}
    lake = Lake(tmp_path, broker.servers("SCRAM"), r"(shop|other)\.books\..*", kafka=kafka)
    return Fed(lake, Sender(broker.administrator), database)


def kafka_consumer_groups(broker: SecuredBroker, *arguments: str) -> str:
    """What Kafka's own tool says."""
    classpath = ":".join(str(jar) for jar in ensure_jars(TOOLS, java=java_command()))
    command = [
        *(java_command(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath),
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", broker.administrator, "--group", GROUP, *arguments),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def columns(shown: str, topic: str) -> dict[str, str]:
    """The row of a topic in what the tool shows, by its headings."""
    lines = [line.split() for line in shown.splitlines() if line.strip()]
    (head,) = [line for line in lines if line[0] == "GROUP"]
    (row,) = [line for line in lines if topic in line]
    return dict(zip(head, row, strict=True))


def test_the_doctor_names_the_topic_that_may_not_be_read(fed: Fed) -> None:
    _, found = fed.lake.examined()
    told = {(row["area"], row["check"]): row for row in found}
    assert told["broker", "rights"]["seen"] == f"we may not read {FORBIDDEN}"
    assert told["broker", "consumer group"]["verdict"] == "ok"
    assert PASSWORD not in json.dumps(found)


@pytest.mark.nightly
def test_kafkas_own_tool_sees_the_lag_and_resets_a_table(broker: SecuredBroker, fed: Fed) -> None:
    fed.insert(0)
    with fed.lake.running() as service:
        service.until(lambda: bool(fed.lake.said("group-offsets-sent")), "the group has offsets")
        shown = columns(kafka_consumer_groups(broker, "--describe"), fed.topic)
        assert (shown["CURRENT-OFFSET"], shown["LAG"]) == ("10", "0")
        reset = ["--reset-offsets", "--to-offset", "4", "--topic", fed.topic, "--execute"]
        kafka_consumer_groups(broker, *reset)
        service.until(lambda: bool(fed.lake.said("request")), "the reset is honoured")
        fed.insert(10)
        service.until(lambda: fed.next_offset() == 20, "all is read again, and what is new")
        service.terminate()
        service.ends_well()
    (request,) = fed.lake.said("request")
    assert request["done"]
    assert request["by"] == f"consumer group {GROUP}"
    assert "partition 0 is moved from 10 to 4" in request["answer"]
    (entry,) = [one for one in fed.lake.table(fed.topic).history() if "by" in one.info.parameters]
    assert entry.info.parameters["by"] == f"consumer group {GROUP}"
    assert fed.lake.table(fed.topic).read().num_rows == 20
    (refused,) = fed.lake.said("table-not-opened")
    assert f"READ on topic {FORBIDDEN}" in refused["error"], "alone; the other table goes on"
    assert PASSWORD not in fed.lake.log.read_text()
