"""The servers of `demo --serve`: a database, a broker, a connector, and the service as a process.

Each is a process of its own that listens on 127.0.0.1 alone.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pymysql
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from lakesplice.apps.demo.claims import claimed_port
from lakesplice.apps.demo.folders import DemoFolders, prepare_served
from lakesplice.errors import ConfigurationError
from lakesplice.spark.jars import KAFKA_BROKER, JarSet, ensure_jars, folder_of
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.servers import mariadb
from lakesplice.testing.servers.connect import DEBEZIUM, LocalConnect
from lakesplice.testing.servers.process import HOST, LocalServer, java_command

_Server = TypeVar("_Server", bound=LocalServer)

CONNECTOR: Final = "shop"
# Only these are the same each time; if one is taken, a free one is used instead.
_DATABASE_PORT, _KAFKA_PORT, _CONNECT_PORT, _PAGE_PORT = 13306, 19092, 18083, 9464
_SERVICE_SECONDS_MAX, _PROBE_SECONDS, _DATABASE_SECONDS_MAX = 600.0, 5.0, 30.0
_READY: Final = 200
_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"
_PROGRAM: Final = "from lakesplice.apps.cli import main; main()"
_FIRST_ROWS: Final = (
    "create database shop",
    "create table shop.customers (id int primary key, name varchar(60), city varchar(60))",
    "create table shop.orders (id int primary key auto_increment, customer_id int not null,"
    " status varchar(20) not null, total decimal(10,2),"
    " placed_at timestamp not null default current_timestamp)",
    "create table shop.signals (id varchar(42) primary key, type varchar(32) not null,"
    " data varchar(2048))",
    "insert into shop.customers values (1, 'Ada', 'London'), (2, 'Grace', 'New York'),"
    " (3, 'Edsger', 'Rotterdam')",
    "insert into shop.orders (customer_id, status, total)"
    " values (1, 'new', 19.90), (2, 'paid', 120.00), (3, 'sent', 7.50), (1, 'sent', 42.00)",
)


@dataclass(frozen=True)
class Addresses:
    """Where everything is. `processes` are the names and ids of what runs; `client` is a program
    that opens the database.
    """

    page: str
    database: str
    user: str
    password: str
    kafka: str
    connect: str
    lake: str
    config: str
    client: str
    processes: dict[str, int]


class ServiceProcess(LocalServer):
    """`lakesplice run` with a configuration; it is ready once its page says so."""

    def __init__(self, config: Path, page: str, log_path: Path) -> None:
        super().__init__("the service", log_path)
        self._config = config
        self._page = page
        self._pool = PoolManager(retries=False, timeout=_PROBE_SECONDS)

    def start(self) -> None:
        """See `LocalServer.start`."""
        command = [sys.executable, "-c", _PROGRAM, "run", "--config", str(self._config)]
        self._run(command, self._is_ready, _SERVICE_SECONDS_MAX)

    def _is_ready(self) -> bool:
        try:
            answer = self._pool.request("GET", f"{self._page}readyz")
        except HTTPError:
            return False
        return answer.status == _READY


class DemoServers:
    """All of them. `tell` is called before each step that takes long, `check` between two steps; if
    `check` raises, what was started is left to `stop`.
    """

    def __init__(
        self, places: DemoFolders, tell: Callable[[str], None], check: Callable[[], None]
    ) -> None:
        self._places = places
        self._tell = tell
        self._check = check
        self._stack = ExitStack()
        self._client = places.folder / "mariadb-client"
        self.running: list[LocalServer] = []

    def start(self) -> Addresses:
        """Start one after the other, in an emptied folder, and return where each is; blocks."""
        if not mariadb.runs_here():
            raise ConfigurationError(
                "the demo's MariaDB is a program for Linux on x86-64; on this machine follow"
                " docs/tutorial.md with a database, a connector and a broker of your own"
            )
        places = self._places
        wanted = (_DATABASE_PORT, _KAFKA_PORT, _CONNECT_PORT, _PAGE_PORT)
        database_port, kafka_port, connect_port, page_port = (
            claimed_port(port, self._stack) for port in wanted
        )
        settings = prepare_served(
            places,
            kafka_port=kafka_port,
            page_port=page_port,
            connect_url=f"http://{HOST}:{connect_port}",
            database=f"{mariadb.USER}@{HOST}:{database_port}",
        )
        cache = settings.spark.jars_folder
        database = self._start_database(cache, database_port)
        broker_jars = self._jars(KAFKA_BROKER, cache)
        self._tell("starting a Kafka broker")
        broker = self._started(
            LocalBroker(broker_jars, places.broker, kafka_port, java=java_command())
        )
        connect = self._start_connect(cache, database, broker, connect_port)
        self._tell("starting the service: Spark, ingest, compactor and page")
        page = f"http://{HOST}:{page_port}/"
        self._started(ServiceProcess(places.config, page, places.folder / "service.log"))
        return Addresses(
            page=page,
            database=f"{database.host}:{database.port}",
            user=mariadb.USER,
            password=mariadb.PASSWORD,
            kafka=broker.bootstrap_servers,
            connect=connect.url,
            lake=str(places.lake),
            config=str(places.config),
            client=str(self._client),
            processes={one.name: one.pid or 0 for one in self.running},
        )

    def stop(self) -> None:
        """Stop all that was started, the last one first; blocks."""
        self._stack.close()

    def kill(self) -> None:
        """End all of them at once."""
        for server in self.running:
            server.kill()

    def _start_database(self, cache: Path | None, port: int) -> mariadb.LocalMariaDB:
        (archive,) = self._jars(mariadb.MARIADB, cache)
        self._tell("starting MariaDB, with a database that is called shop")
        programs = mariadb.unpacked(archive)
        server = self._started(mariadb.LocalMariaDB(programs, self._places.database, port))
        _write_client(self._client, programs, server)
        with pymysql.connect(
            host=server.host,
            port=server.port,
            user=mariadb.USER,
            password=mariadb.PASSWORD,
            connect_timeout=int(_DATABASE_SECONDS_MAX),
            autocommit=True,
        ) as connection:
            for statement in _FIRST_ROWS:
                connection.cursor().execute(statement)
        return server

    def _start_connect(
        self, cache: Path | None, database: mariadb.LocalMariaDB, broker: LocalBroker, port: int
    ) -> LocalConnect:
        jars = self._jars(DEBEZIUM, cache)
        self._tell("starting Kafka Connect, with Debezium's connector for this database")
        return self._started(
            LocalConnect(
                jars,
                self._places.connect,
                broker.bootstrap_servers,
                {CONNECTOR: _connector(database)},
                java=java_command(),
                port=port,
            )
        )

    def _jars(self, which: JarSet, cache: Path | None) -> list[Path]:
        self._check()
        if not folder_of(which, cache).is_dir():
            self._tell(f"fetching {which.name} from Maven's central repository, once")
        jars = ensure_jars(which, cache, java=java_command())
        self._check()
        return jars

    def _started(self, server: _Server) -> _Server:
        self._stack.callback(server.stop)
        self.running.append(server)
        server.start()
        self._check()
        return server


def _connector(database: mariadb.LocalMariaDB) -> dict[str, str]:
    """Debezium's connector with the settings that docs/connector.md lists, for all databases."""
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": database.host,
        "database.port": str(database.port),
        "database.user": mariadb.USER,
        "database.password": mariadb.PASSWORD,
        "database.server.id": "5401",
        "topic.prefix": CONNECTOR,
        "heartbeat.interval.ms": "5000",
        # Whoever inserts a row there lets the connector take a snapshot of a table.
        "signal.data.collection": "shop.signals",
        "key.converter": _CONVERTER,
        "key.converter.schemas.enable": "true",
        "value.converter": _CONVERTER,
        "value.converter.schemas.enable": "true",
        "value.converter.replace.null.with.default": "false",
        "decimal.handling.mode": "precise",
        "bigint.unsigned.handling.mode": "precise",
        "enable.time.adjuster": "false",
        "binlog.buffer.size": "10000",
        # The topic of schema changes is read from its beginning, however old it is.
        "topic.creation.groups": "schema",
        "topic.creation.schema.include": CONNECTOR,
        "topic.creation.schema.partitions": "1",
        "topic.creation.schema.cleanup.policy": "delete",
        "topic.creation.schema.retention.ms": "-1",
    }


def _write_client(path: Path, programs: Path, server: mariadb.LocalMariaDB) -> None:
    """Write a script that opens the database; its arguments go on to MariaDB's own client."""
    client = shlex.quote(str(programs / "bin" / "mariadb"))
    path.write_text(
        "#!/bin/sh\n"
        f"exec {client} --no-defaults --host={server.host} --port={server.port}"
        f' --user={mariadb.USER} --password={mariadb.PASSWORD} "$@"\n'
    )
    path.chmod(0o755)
