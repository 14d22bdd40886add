"""The demo as a process, and what is done to it: as its user, its operator, and its bad luck."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import pymysql
import urllib3
import yaml
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from benchmarks.faults import processes
from benchmarks.faults.disks import Disks
from benchmarks.repeating import repeating
from benchmarks.service import COMMAND
from lakesplice import Table
from lakesplice.errors import LakespliceError
from lakesplice.testing.servers.process import HOST, free_port

PREFIX = "shop"
SERVICE = "the service"
_STEP_SECONDS, _REQUEST_SECONDS, _COMMAND_SECONDS_MAX = 0.25, 5.0, 300.0
_END_SECONDS_MAX, _START_SECONDS_MAX = 90.0, 600.0
_FIRST_ID = 1_000_000
_SHOWN_MAX = 4_000

Row = dict[str, Any]
Which = Callable[[str], bool]


class Demo:
    """The running demo; as a context manager it ends with the block, with all that it started."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder.parent / f"{folder.name}.log").open("wb")
        command = [*COMMAND, "demo", "--serve", "--json", "--folder", str(folder)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
        )
        self._http = urllib3.PoolManager(retries=False, timeout=_REQUEST_SECONDS)
        self._own: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[list[str], str]] = {}
        self._ids = itertools.count(_FIRST_ID)
        self._frozen: list[int] = []
        self.disks = Disks()
        self.second_port = free_port()
        self.kept: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = Path(self._log.name).read_text()[-_SHOWN_MAX:]
            raise RuntimeError(f"the demo didn't start:\n{said}")
        self.at: dict[str, Any] = json.loads(line)
        self.lake, self.config = Path(self.at["lake"]), Path(self.at["config"])
        for name, pid in self.at["processes"].items():
            arguments = Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
            self._commands[name] = arguments, str(Path(f"/proc/{pid}/cwd").readlink())
        return self

    def __exit__(self, *_: object) -> None:
        self.disks.close()
        self.thaw()
        for process in self._own.values():
            process.terminate()
        for process in self._own.values():
            process.wait(_END_SECONDS_MAX)
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_END_SECONDS_MAX)
        self._log.close()

    # As a user of the database

    def sql(self, *statements: str) -> None:
        """Execute statements in the database."""
        host, _, port = self.at["database"].partition(":")
        with pymysql.connect(
            host=host,
            port=int(port),
            user=self.at["user"],
            password=self.at["password"],
            autocommit=True,
        ) as connection:
            for statement in statements:
                connection.cursor().execute(statement)

    def insert(self, table: str) -> int:
        """Insert a row with a new `id` and defaults, and return the `id`."""
        new = next(self._ids)
        self.sql(f"insert into {table} (id) values ({new})")
        return new

    def changing(self, table: str) -> AbstractContextManager[None]:
        """Insert a row into the table every second while the block runs."""
        return repeating(lambda: self.insert(table), 1.0)

    def has(self, table: str, wanted: int) -> bool:
        """Whether the real-time view of a table has the row."""
        try:
            found = Table.open(self.table(table)).read(columns=["id"])
        except LakespliceError:
            return False
        return wanted in found.column("id").to_pylist()

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.lake.joinpath(*name.split("."))

    def snapshot(self, table: str) -> None:
        """Signal the connector to read the whole table again."""
        data = json.dumps({"data-collections": [table], "type": "incremental"})
        self.sql(
            f"insert into shop.signals values ('{next(self._ids)}', 'execute-snapshot', '{data}')"
        )

    # As an operator

    @property
    def pages(self) -> tuple[str, str]:
        """The addresses of the service's page, and of the second service's."""
        return str(self.at["page"]), f"http://{HOST}:{self.second_port}/"

    def command(self, *arguments: str | Path, ends: tuple[int, ...] = (0,)) -> str:
        """Run a command of Lakesplice with the demo's configuration; return its output.

        `ends` are the exit codes that it may end with.
        """
        done = subprocess.run(
            [*COMMAND, *map(str, arguments), "--config", str(self.config)],
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS_MAX,
            env={**os.environ, "MYSQL_PWD": self.at["password"]},
        )
        if done.returncode not in ends:
            raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr}")
        return done.stdout + done.stderr

    def configure(self, section: str, values: dict[str, Any]) -> None:
        """Set a section of the service's configuration, for its next start."""
        settings = yaml.safe_load(self.config.read_text())
        self.config.write_text(yaml.safe_dump({**settings, section: values}))

    def section(self, name: str) -> dict[str, Any]:
        """A section of the service's configuration."""
        found: dict[str, Any] = yaml.safe_load(self.config.read_text()).get(name, {})
        return found

    def restart_service(self) -> None:
        """Stop the service in order, start it, and wait until it works."""
        self.end(SERVICE)
        self.start(SERVICE)
        self.until_driven()

    def until_driven(self) -> None:
        """Wait until the page says that the service works."""
        self.until(
            lambda: bool(self.ask("lake").get("drives")), "the service drives", _START_SECONDS_MAX
        )

    def row(self, table: str) -> Row:
        """What the page says of a table; empty if the page or the table isn't there."""
        rows = self.ask("tables").get("tables", [])
        return next((row for row in rows if row["table"] == table), {})

    def ask(self, what: str) -> dict[str, Any]:
        """What the page's API answers; empty if it doesn't."""
        return self._asked(f"{self.at['page']}api/v1/{what}")

    def ask_second(self, what: str) -> dict[str, Any]:
        """What the page of the second service answers."""
        return self._asked(f"{self.pages[1]}api/v1/{what}")

    def _asked(self, address: str) -> dict[str, Any]:
        try:
            answer = self._http.request("GET", address)
        except urllib3.exceptions.HTTPError:
            return {}
        found: dict[str, Any] = answer.json() if answer.status == 200 else {}
        return found

    def connector(self, method: str, path: str, body: object = None) -> Any:
        """Ask Kafka Connect about the connector."""
        answer = self._http.request(
            method, f"{self.at['connect']}/connectors/{PREFIX}{path}", json=body
        )
        if answer.status >= 400:
            raise RuntimeError(f"Connect: {answer.data.decode()}")
        return answer.json() if answer.data else None

    def setting(self, name: str, value: str) -> None:
        """Give the connector another setting, which restarts it."""
        config = self.connector("GET", "")["config"]
        self.connector("PUT", "/config", {**config, name: value})
        self.until(lambda: self._task_state() == "RUNNING", "the connector runs again")

    def _task_state(self) -> str:
        tasks = self.connector("GET", "/status")["tasks"]
        return str(tasks[0]["state"]) if tasks else ""

    # As bad luck

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal to a process of the demo, and wait until it has ended."""
        pid = self.pid(name)
        os.kill(pid, number)
        own = self._own.pop(name, None)
        if own:
            own.wait(_END_SECONDS_MAX)
        else:
            self.until(lambda: not processes.is_alive(pid), f"{name} ends", _END_SECONDS_MAX)
        while self._frozen:
            processes.signalled(self._frozen.pop(), signal.SIGKILL)

    def start(self, name: str, *before: str, folder_for_temporaries: Path | None = None) -> None:
        """Start a process that has ended, by the command that it had. `before` replaces what the
        command has before Lakesplice's own arguments.
        """
        arguments, folder = self._commands[name]
        if before:
            arguments = [*before, *arguments[len(COMMAND) :]]
        temporary = folder_for_temporaries or Path(tempfile.gettempdir())
        self._own[name] = subprocess.Popen(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )

    def arguments(self, name: str) -> list[str]:
        """The command of a process of the demo."""
        return self._commands[name][0]

    def pid(self, name: str) -> int:
        """The id of a process of the demo."""
        own = self._own.get(name)
        return own.pid if own else int(self.at["processes"][name])

    def freeze(self, name: str, which: Which = lambda _: True) -> None:
        """Stop a process, or those of its descendants that `which` holds for, as if they hung."""
        pids = [self.pid(name), *processes.descendants(self.pid(name))]
        self._frozen = [pid for pid in pids if which(processes.command_of(pid))]
        for pid in self._frozen:
            processes.signalled(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let frozen processes continue."""
        while self._frozen:
            processes.signalled(self._frozen.pop(), signal.SIGCONT)

    def add_service(self, name: str) -> None:
        """Prepare a second service of the lake; `start` starts it."""
        settings = yaml.safe_load(self.config.read_text())
        config = self.config.with_name("second.yaml")
        config.write_text(yaml.safe_dump({**settings, "metrics": {"port": self.second_port}}))
        arguments, folder = self._commands[SERVICE]
        self._commands[name] = [*arguments[:-1], str(config)], folder

    def send(
        self, topic: str, key: bytes | None, value: bytes, count: int = 1, ahead_seconds: int = 0
    ) -> None:
        """Write a record into a topic so many times; `ahead_seconds` from now by its own time."""
        producer = KafkaProducer(bootstrap_servers=self.at["kafka"])
        moment_ms = int(time.time() + ahead_seconds) * 1000
        for _ in range(count):
            sent = producer.send(topic, value, key, partition=0, timestamp_ms=moment_ms)
        sent.get(_REQUEST_SECONDS)
        producer.close()

    def partitions_with_records(self, topic: str, least: int) -> list[int]:
        """The partitions of a topic that has three; waits until they have so many records."""
        places = [TopicPartition(topic, at) for at in range(3)]
        consumer = KafkaConsumer(bootstrap_servers=self.at["kafka"])
        self.until(
            lambda: sum(consumer.end_offsets(places).values()) >= least, f"{topic} has records"
        )
        ends = consumer.end_offsets(places)
        consumer.close()
        return [place.partition for place in places if ends[place]]

    def delete_records(self, topic: str) -> None:
        """Let the broker delete all records of a topic, as its retention would."""
        admin = KafkaAdminClient(bootstrap_servers=self.at["kafka"])
        admin.delete_records({TopicPartition(topic, at): -1 for at in range(3)})
        admin.close()

    def until(self, holds: Callable[[], bool], what: str, seconds: float = 300.0) -> float:
        """Wait until it holds; return how long that took."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"not within {seconds:.0f} s: {what}")
            time.sleep(_STEP_SECONDS)
        return time.monotonic() - began
