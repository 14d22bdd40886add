"""A real database with rows that its connector never read, and a lake that is to have them."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition

from benchmarks.repeating import repeating
from lakesplice.model.names import TableName
from lakesplice.model.progress.verified import LastResult
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.last_results import last_results
from lakesplice.testing.compare import compare
from tests.support.running import Lake, RunningService, environment, take_in
from tests.support.sources import (
    SourceServer,
    await_record,
    connector,
    debezium,
    table_topic_ends,
)
from tests.support.statement_tables import tables
from tests.support.statements import Statements
from tests.support.waiting import until

_MAIN = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()"]
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SECONDS_MAX = 240.0


class Fleet:
    """A database with rows that its connector never read, and a lake that is to have them."""

    def __init__(self, server: SourceServer, kafka: str, folder: Path, seed: int) -> None:
        token = secrets.token_hex(4)
        self.server, self._kafka = server, kafka
        self.prefix = f"boot-{token}"
        self.source = Statements(f"boot_{token}", random.Random(seed), server.connect(), tables())
        self.source.create()
        self.source.run(60)
        # The stream never tells of their rows; those of one are in a file, too.
        for name in ("still", "filed"):
            self.write(f"create table {name} (id int primary key, s varchar(9), d decimal(9,3))")
            self.write(f"insert into {name} values (1, 'ü', 1.5), (2, '', -0.001), (3, null, null)")
        self.write("create table signals (id varchar(64) primary key, type text, data text)")
        self.file = folder / "filed.csv"
        self.file.write_text('id,s,d\n1,"ü",1.500\n2,"",-0.001\n3,,\n')
        self.position = ":".join(map(str, self.source.position()))
        properties = {
            "snapshot.mode": "no_data",
            "signal.data.collection": f"{self.source.database}.signals",
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
            verify={"wait": 20},
        )

    def write(self, statement: str, *, unheard: bool = False) -> None:
        """Run a statement beside the random ones; `unheard`: the binlog doesn't have it."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"use {self.source.database}")
            cursor.execute(f"set sql_log_bin = {int(not unheard)}")
            cursor.execute(statement)
            connection.commit()

    def read(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table of the lake that the random statements don't touch."""
        rows = self.lake.table(self.topic(table)).read().select(["id", "s", "d"]).to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{self.source.database}.{table}"

    def ends(self) -> dict[tuple[str, int], int]:
        """Where the topics end once every statement's events are in them."""
        await_record(
            self._kafka, self.topic("marks"), self.source.mark(), self.connect, _SECONDS_MAX
        )
        return table_topic_ends(self._kafka, f"{self.prefix}.")

    @contextmanager
    def running(self) -> Iterator[RunningService]:
        """Its connector and its service, once the tables are filled and have all that was sent."""
        with self.connect:
            self.source.run(40)
            self.ends()
            self.done("bootstrap")
            with self.lake.running() as service:
                take_in(service, self.lake, self.ends())
                yield service

    def snapshot(self, table: str) -> None:
        """Let the broker delete what a table's topic has, and the connector take a snapshot of the
        table while it is written to; wait until that is in the topic.
        """
        ends = table_topic_ends(self._kafka, self.topic(table))
        admin = KafkaAdminClient(bootstrap_servers=self._kafka)
        admin.delete_records({TopicPartition(*place): end for place, end in ends.items()})
        admin.close()
        (found,) = (one for one in self.source.tables if one.name == table)
        with self.written_to():
            self.source.snapshot([found], "blocking")
            last = '"snapshot":"last'
            await_record(self._kafka, self.topic(table), last, self.connect, _SECONDS_MAX)

    def written_to(self) -> AbstractContextManager[None]:
        """The database while statements run at it, in another thread."""
        return repeating(lambda: self.source.run(1), 0.05)

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
        before = self.commits()
        self.killed_once(lambda: self.commits() >= before + commits, *arguments)

    def killed_once(self, condition: Callable[[], bool], *arguments: str) -> bool:
        """Kill a command once a condition holds; return whether it wasn't at its end before."""
        process = self.command(*arguments)
        until(
            lambda: process.poll() is not None or condition(), "the moment of a kill", _SECONDS_MAX
        )
        is_alive = process.poll() is None
        if is_alive:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return is_alive

    def killed_at(self, stage: str, table: str, chance: random.Random) -> bool:
        """Kill a rebuild of a table as it reaches a stage, or was there and goes on; return whether
        it didn't end before.
        """
        folder = self.lake.root / self.source.database / table
        shadows, commits = folder / "_lakesplice/shadows", self.commits() + chance.randint(1, 12)
        swaps = self.swaps(table)
        conditions: dict[str, Callable[[], bool]] = {
            "planned": lambda: any(shadows.glob("*/plan.json")),
            "begun": lambda: any(shadows.glob("*/_delta_log/*.json")),
            "filled": lambda: self.commits() >= commits,
            "swapped": lambda: self.swaps(table) > swaps,
        }
        way = chance.choice((["--no-verify"], [], ["--again"]))
        name = f"{self.source.database}.{table}"
        return self.killed_once(conditions[stage], "rebuild", name, *way)

    def swaps(self, table: str) -> int:
        """How often a shadow became the table."""
        log = self.lake.root / self.source.database / table / "_delta_log"
        return sum('"SWAP"' in path.read_text() for path in log.glob("*.json"))

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

    def results(self) -> dict[str, LastResult]:
        """How the service's last comparisons ended, by table."""
        found = last_results(LocalStore(self.lake.root))
        return {TableName.from_path(one.folder).table: one for one in found}

    def verified(self, table: str, *arguments: str) -> dict[str, Any]:
        """What `lakesplice verify` says of a table, while the source goes on."""
        name = f"{self.source.database}.{table}"
        process = subprocess.Popen(
            [*_MAIN, "verify", name, *arguments, "--config", str(self.lake.config), "--json"],
            env={**environment(), "MYSQL_PWD": self.server.password},
            stdout=subprocess.PIPE,
            text=True,
        )
        until(
            lambda: bool(self.source.mark()) and process.poll() is not None,
            "the end of verify",
            _SECONDS_MAX,
        )
        out, _ = process.communicate()
        found: dict[str, Any] = json.loads(out)
        return found
