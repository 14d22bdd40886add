"""A real source database and its connectors.

The database is a container if a container engine answers, otherwise a process; the connectors are a
JVM of this machine in both cases, as Spark is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from kafka import KafkaConsumer, TopicPartition

from lakesplice.testing.servers.connect import DEBEZIUM, LocalConnect
from lakesplice.testing.servers.mariadb import (
    MARIADB,
    PASSWORD,
    USER,
    LocalMariaDB,
    runs_here,
    unpacked,
)
from lakesplice.testing.servers.process import java_command
from tests.support import machine
from tests.support.apicurio import CONVERTER

_IMAGE = "mariadb:11.4"
_BINLOG = (
    "--server-id=1 --log-bin=binlog --binlog-format=ROW --binlog-row-image=FULL"
    " --binlog-row-metadata=FULL --gtid-strict-mode=1 --binlog-legacy-event-pos=1"
    " --character-set-server=utf8mb4"
    " --default-time-zone=+00:00 --max-allowed-packet=64M"
)


@dataclass(frozen=True)
class SourceServer:
    """Where the database listens, and who may do everything there."""

    host: str
    port: int
    user: str
    password: str

    def connect(self) -> pymysql.Connection[Any]:
        """A connection of one's own, in UTC."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            charset="utf8mb4",
            max_allowed_packet=64 << 20,
            init_command="set time_zone='+00:00'",
        )


def source_server(folder: Path) -> Iterator[SourceServer]:
    """A running MariaDB with a row binlog; a skip by name where none can be had."""
    if machine.container_engine_answers():
        yield from _containered()
        return
    if not runs_here():
        pytest.skip(
            "no MariaDB: its archive is for Linux on x86-64, and no engine runs a container"
        )
    (archive,) = machine.jars(MARIADB)
    with LocalMariaDB(unpacked(archive), folder) as server:
        yield SourceServer(server.host, server.port, USER, PASSWORD)


def _containered() -> Iterator[SourceServer]:
    from testcontainers.community.mysql import MySqlContainer

    container = MySqlContainer(_IMAGE, username="root", root_password=PASSWORD, password=PASSWORD)
    with container.with_command(_BINLOG):
        host, port = container.get_container_host_ip(), int(container.get_exposed_port(3306))
        yield SourceServer(host, port, "root", PASSWORD)


def debezium(
    folder: Path, bootstrap_servers: str, connectors: Mapping[str, Mapping[str, str]]
) -> LocalConnect:
    """Connectors that the test starts, kills and starts again; a skip without their jars.

    They may write Avro (`Apicurio.converters`).
    """
    jars = [*machine.jars(DEBEZIUM), *machine.jars(CONVERTER)]
    return LocalConnect(jars, folder, bootstrap_servers, connectors, java=java_command())


def connector(
    server: SourceServer, database: str, prefix: str, number: int, **properties: str
) -> dict[str, str]:
    """The properties of a connector of one database; `number` is its own among all."""
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.server.id": str(5400 + number),
        "database.include.list": database,
        "topic.prefix": prefix,
        "bigint.unsigned.handling.mode": "precise",
        # Else NULL becomes the column's default.
        "value.converter.replace.null.with.default": "false",
        # Else the connector makes the year 2001 of the year 1.
        "enable.time.adjuster": "false",
        **properties,
    }


def await_record(
    kafka: str, topic: str, token: str, connect: LocalConnect, seconds_max: float
) -> None:
    """Wait until a topic has a record with the token; fail once the connector has failed."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=kafka,
        auto_offset_reset="earliest",
        consumer_timeout_ms=1_000,
    )
    deadline = time.monotonic() + seconds_max
    try:
        while not any(token.encode() in (record.value or b"") for record in consumer):
            failure = connect.failure()
            assert failure is None, failure
            assert time.monotonic() < deadline, f"no {token} in {topic}"
    finally:
        consumer.close()


def table_topic_ends(kafka: str, prefix: str) -> dict[tuple[str, int], int]:
    """Where the topics of tables end that begin with a prefix; partitions without records are left
    out.
    """
    consumer = KafkaConsumer(bootstrap_servers=kafka)
    try:
        names = [n for n in consumer.topics() if n.startswith(prefix) and n.count(".") == 2]
        places = [TopicPartition(n, at) for n in names for at in consumer.partitions_for_topic(n)]
        ends = consumer.end_offsets(places)
    finally:
        consumer.close()
    return {(place.topic, place.partition): end for place, end in ends.items() if end}
