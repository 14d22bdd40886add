"""Tables of a real database are filled while it is written to, by a command that is killed."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from lakesplice.testing.compare import compare
from tests.support.running import Lake, environment, take_in
from tests.support.sources import SourceServer, connector, debezium, source_server
from tests.support.statements import Statements, tables

_MAIN = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()"]
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SECONDS_MAX = 240.0
_KILLS = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceServer]:
    """A real MariaDB."""
    yield from source_server(tmp_path_factory.mktemp("mariadb"))


class Fleet:
    """A database with rows that its connector never read, and a lake that is to have them."""

    def __init__(self, server: SourceServer, kafka: str, folder: Path, seed: int) -> None:
        token = secrets.token_hex(4)
        self.server, self._kafka = server, kafka
        self.prefix = f"boot-{token}"
        self.source = Statements(f"boot_{token}", random.Random(seed), server.connect(), tables())
        self.source.create()
        self.source.run(60)
        properties = {
            "snapshot.mode": "no_data",
            "key.converter": _JSON,
            "value.converter": _JSON,
            "value.converter.replace.null.with.default": "false",
        }
        made = connector(server, self.source.database, self.prefix, 0, **properties)
        self.connect = debezium(folder / "connect", kafka, {"boot": made})
        self.lake = Lake(
            folder,
            kafka,
            rf"{self.prefix}\..*\..*",
            schema_change_topics={
                "names": [self.prefix],
                "bigint_unsigned_handling_mode": "precise",
            },
            compaction={"deltas_max": 2, "age_max": 5, "poll_seconds": 0.2},
        )

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.source.database}.{table}"

    def ends(self) -> dict[tuple[str, int], int]:
        """Where the topics end once every statement's events are in them."""
        token = self.source.mark().encode()
        consumer = KafkaConsumer(
            self.topic("marks"),
            bootstrap_servers=self._kafka,
            auto_offset_reset="earliest",
            consumer_timeout_ms=1_000,
        )
        try:
            deadline = time.monotonic() + _SECONDS_MAX
            while not any(token in (record.value or b"") for record in consumer):
                assert self.connect.failure() is None, self.connect.failure()
                assert time.monotonic() < deadline, "the mark doesn't come"
            names = [name for name in consumer.topics() if name.startswith(f"{self.prefix}.")]
            places = [
                TopicPartition(name, at)
                for name in names
                for at in consumer.partitions_for_topic(name)
            ]
            found = consumer.end_offsets(places)
        finally:
            consumer.close()
        return {(place.topic, place.partition): end for place, end in found.items() if end}

    @contextmanager
    def written_to(self) -> Iterator[None]:
        """The database while statements run at it, in another thread."""
        stopping = threading.Event()

        def work() -> None:
            while not stopping.is_set():
                self.source.run(1)
                stopping.wait(0.05)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """A command in a process group of its own."""
        address = f"mysql://{self.server.user}@{self.server.host}:{self.server.port}"
        given = [arguments[0], *arguments[1:], "--config", str(self.lake.config)]
        given += ["--database", address, "--chunk-rows", "7", "--settle", "1s", "--json"]
        return subprocess.Popen(
            [*_MAIN, *given],
            env={**environment(), "MYSQL_PWD": self.server.password},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """What a command says of each table."""
        out, err = self.command(*arguments).communicate(timeout=_SECONDS_MAX)
        assert "Traceback" not in err, err
        return [json.loads(line) for line in out.splitlines()]

    def done(self, *arguments: str) -> list[dict[str, Any]]:
        """The same of one that ends well."""
        rows = self.rows(*arguments)
        assert all(row["state"] in ("filled", "exists", "given up") for row in rows), rows
        return rows

    def killed(self, *arguments: str, commits: int) -> None:
        """Kill a command once so many more commits of shadows and tables are there."""
        process, before = self.command(*arguments), self.commits()
        until(lambda: process.poll() is not None or self.commits() >= before + commits, "commits")
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def commits(self) -> int:
        logs = ("*/*/_delta_log/*.json", "*/*/_lakesplice/shadows/*/_delta_log/*.json")
        return sum(len(list(self.lake.root.glob(log))) for log in logs)

    def equal(self) -> None:
        """Every table, column for column, is what its database says."""
        for table in self.source.tables:
            stored = self.lake.table(self.topic(table.name))
            assert stored.snapshot.manifest.parked is None, stored.snapshot.manifest.parked
            difference = compare(self.source.truth(table), stored.read(), table.key)
            assert difference is None, f"{table.name}: {difference}"


def until(condition: Callable[[], bool], what: str) -> None:
    deadline, pause = time.monotonic() + _SECONDS_MAX, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


@pytest.mark.nightly
def test_tables_are_filled_while_written_to_and_the_stream_takes_over(
    server: SourceServer, kafka_broker: str, tmp_path: Path, seed: int
) -> None:
    chance, fleet = random.Random(seed), Fleet(server, kafka_broker, tmp_path, seed)
    with fleet.connect:
        fleet.source.run(40)
        fleet.ends()
        with fleet.written_to():
            for _ in range(_KILLS):
                fleet.killed("bootstrap", commits=chance.randint(1, 25))
            rows = fleet.done("bootstrap")
        assert {row["table"].partition(".")[2] for row in rows} == {
            "marks",
            *(table.name for table in fleet.source.tables),
        }
        fleet.lake.configure(schema_changes={"create_table": "ignore"})
        with fleet.lake.running() as service:
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
            with fleet.written_to():
                name = f"{fleet.source.database}.everything"
                fleet.killed("rebuild", name, commits=3)
            (row,) = fleet.done("rebuild", name)
            assert (row["state"], row["verified"]) == ("filled", "equal")
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
            # Most of its rows were there before the connector, so the topic never had them.
            (row,) = fleet.rows("rebuild", name, "--from", "topic")
            assert (row["state"], row["verified"]) == ("different", "different"), row
            fleet.equal()
            fleet.done("rebuild", name, "--give-up")
            fleet.source.create_late()
            fleet.source.run(40)
            fleet.ends()
            late = f"{fleet.source.database}.late"
            with fleet.written_to():
                fleet.killed("bootstrap", "--tables", late, commits=2)
                (row,) = fleet.done("bootstrap", "--tables", late)
            assert row["state"] == "filled", "the service must not make it"
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
        history = fleet.lake.table(fleet.topic("everything")).history()
        operations = [entry.info.operation for entry in history]
        assert (operations.count("SWAP"), operations.count("VERIFY SHADOW")) == (2, 1)
