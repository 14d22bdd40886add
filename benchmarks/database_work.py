"""A database whose tables are filled and compared while a benchmark measures the service.

The database is a real MariaDB with its connector. `lakesplice bootstrap` fills one table of it
after the other, and `lakesplice verify` compares one over and over: two processes with the lake and
the topics of the service, and with their default settings unless a bound is given.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import yaml
from kafka import KafkaConsumer, TopicPartition

from benchmarks.repeating import repeating
from benchmarks.service import COMMAND, configuration
from benchmarks.verify import DATABASE, fill
from lakesplice.config import Settings
from lakesplice.errors import SourceUnavailable
from lakesplice.spark.jars import ensure_jars
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.system import SystemClock
from lakesplice.testing.servers.connect import DEBEZIUM, LocalConnect
from lakesplice.testing.servers.mariadb import MARIADB, PASSWORD, USER, LocalMariaDB, unpacked
from lakesplice.testing.servers.process import HOST, java_command

_PREFIX = "load"
PATTERN = rf"{_PREFIX}\.{DATABASE}\..*"
_COMPARED = "t00"
_SECONDS_MAX, _POLL_SECONDS = 600.0, 0.5
_LOWEST_PRIORITY = 19  # a niceness


class DatabaseWork:
    """Runs the two commands beside what is measured."""

    def __init__(
        self, folder: Path, address: DatabaseAddress, names: list[str], rows_per_second: int
    ) -> None:
        self._folder, self._address, self._names = folder, address, names
        self._rows_per_second = rows_per_second

    @contextmanager
    def running(self, settings: Settings) -> Iterator[dict[str, float]]:
        """Fill and compare tables of this lake while the block runs; what they did is in the dict
        after it.
        """
        config = self._folder / "commands.yaml"
        given = configuration(settings)
        address = f"mysql://{USER}@{self._address.host}:{self._address.port}"
        given |= {"doctor": {"database": address}}
        bound = []
        if self._rows_per_second:
            given |= {"verify": {"rows_per_second": self._rows_per_second}}
            bound = ["--rows-per-second", str(self._rows_per_second)]
        config.write_text(yaml.safe_dump(given))
        self._done(config, "bootstrap", "--tables", f"{DATABASE}.{_COMPARED}")
        compared = itertools.count()

        def compare() -> None:
            self._done(config, "verify", f"{DATABASE}.{_COMPARED}")
            next(compared)

        found: dict[str, float] = {}
        begun = time.monotonic()
        with self._process(config, "bootstrap", "--tables", f"{DATABASE}.*", *bound) as filling:
            with repeating(compare, 0.0):
                yield found
            found["seconds"] = round(time.monotonic() - begun, 1)
            found["filling"] = filling.poll() is None
        lake = Path(settings.lake.root)
        filled = [name for name in self._names if (lake / DATABASE / name / "_delta_log").exists()]
        found.update(tables_filled=len(filled) - 1, tables_compared=next(compared))

    @contextmanager
    def _process(self, config: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command while the block runs, its output in a log of its name."""
        given = [*COMMAND, *command, "--config", str(config)]
        environment = {**os.environ, "MYSQL_PWD": PASSWORD}
        with (self._folder / f"{command[0]}.log").open("ab") as log:
            process = subprocess.Popen(given, stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def _done(self, config: Path, *command: str) -> None:
        with self._process(config, *command) as process:
            code = process.wait(_SECONDS_MAX)
        if code:
            log = (self._folder / f"{command[0]}.log").read_text()
            raise RuntimeError(f"{command} ended with {code}:\n{log[-4_000:]}")


@contextmanager
def database_work(
    folder: Path, servers: str, tables: int, rows: int, rows_per_second: int
) -> Iterator[DatabaseWork]:
    """Start the database, with so many tables of so many rows, and its connector. Each command may
    read so many `rows_per_second`; 0 is no bound, or the default of `verify`. A row of each
    table changes every second, but for the one that is compared: the service, which doesn't run all
    the time, couldn't settle that difference. Both servers, which would have machines of their own,
    get the lowest priority.
    """
    folder.mkdir()
    names = [f"t{number:02d}" for number in range(tables)]
    (archive,) = ensure_jars(MARIADB)
    with LocalMariaDB(unpacked(archive), folder / "db") as server:
        address = DatabaseAddress(server.host, server.port, USER, "", PASSWORD)
        with SourceConnection(address, SystemClock()) as connection:
            fill(connection, rows, names)
            connect = LocalConnect(
                ensure_jars(DEBEZIUM),
                folder / "connect",
                servers,
                {_PREFIX: _connector(server.port)},
                java=java_command(),
            )
            with connect, ExitStack() as running:
                ask = connection._execute  # noqa: SLF001  # a benchmark writes, the product never does

                def change(tables: list[str]) -> None:
                    for name in tables:
                        ask(f"update {DATABASE}.{name} set c2 = c2 + 1 where id = 1")

                change(names)  # each topic needs a record
                running.enter_context(repeating(lambda: change(names[1:]), 1.0))
                _await_topics(servers, {f"{_PREFIX}.{DATABASE}.{name}" for name in names}, connect)
                for one in (server, connect):
                    _give_way(one.pid or 0)
                yield DatabaseWork(folder, address, names, rows_per_second)


def _give_way(process: int) -> None:
    """Give a server the lowest priority, and also the group that Linux makes of its session: among
    groups the niceness of processes has no effect.
    """
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, int(thread.name), _LOWEST_PRIORITY)
    with suppress(OSError):  # Linux makes no groups here
        Path(f"/proc/{process}/autogroup").write_text(str(_LOWEST_PRIORITY))


def _connector(port: int) -> Mapping[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": HOST,
        "database.port": str(port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.server.id": "5400",
        "database.include.list": DATABASE,
        "topic.prefix": _PREFIX,
        "topic.creation.default.partitions": "1",
        "snapshot.mode": "no_data",
        "key.converter": converter,
        "value.converter": converter,
        "value.converter.replace.null.with.default": "false",
    }


def _await_topics(servers: str, topics: set[str], connect: LocalConnect) -> None:
    """Wait until each topic has a record."""
    ends = time.monotonic() + _SECONDS_MAX
    consumer = KafkaConsumer(bootstrap_servers=servers)
    try:
        while True:
            there = [TopicPartition(topic, 0) for topic in topics & consumer.topics()]
            if sum(end > 0 for end in consumer.end_offsets(there).values()) == len(topics):
                return
            failure = connect.failure()
            if failure is not None or time.monotonic() > ends:
                raise SourceUnavailable("the connector wrote no record", failure=str(failure))
            time.sleep(_POLL_SECONDS)
    finally:
        consumer.close()
