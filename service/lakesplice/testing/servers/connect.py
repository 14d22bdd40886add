"""Real Debezium connectors on this machine: Kafka Connect, standalone, one JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from lakesplice.spark.jars import JarSet, Module
from lakesplice.testing.servers.process import HOST, LocalServer, free_port

CONNECT = tuple(
    Module("org.apache.kafka", name, "4.1.2", transitive=True)
    for name in ("connect-runtime", "connect-json", "connect-transforms")
)
DEBEZIUM = JarSet(
    "debezium",
    (
        *CONNECT,
        Module("io.debezium", "debezium-connector-mariadb", "3.5.0.Final", transitive=True),
        Module("org.slf4j", "slf4j-simple", "1.7.36", transitive=True),
    ),
    "af4556fdf6ca86ba46fe77514532a48197436734927fe30df88154783b6c1e92",
)
_START_SECONDS_MAX, _PROBE_SECONDS = 300.0, 5.0
_JVM_OPTIONS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)


class LocalConnect(LocalServer):
    """A worker with its connectors; it is ready when all their tasks run.

    `jars` is the classpath (`ensure_jars(DEBEZIUM)`). `connectors` has each connector's properties
    by its name, `worker` the worker's; they take precedence over those set here. `port` 0 takes a
    free one. Offsets and schema
    histories are kept in `data_dir`. So `start` after `kill` repeats the events since the offsets
    were last stored, as in production. If a kill left an incomplete record in a history, it is
    dropped, since the connector couldn't start with it. Its statement comes after the stored
    offsets, so it is read again.
    """

    def __init__(
        self,
        jars: list[Path],
        data_dir: Path,
        bootstrap_servers: str,
        connectors: Mapping[str, Mapping[str, str]],
        *,
        worker: Mapping[str, str] | None = None,
        java: str = "java",
        port: int = 0,
    ) -> None:
        self._jars = jars
        self._data_dir = data_dir.absolute()
        self._bootstrap_servers = bootstrap_servers
        self._connectors = connectors
        self._worker = worker or {}
        self._java = java
        self._port = port or free_port()
        super().__init__("Kafka Connect", self._data_dir / "connect.log")

    @property
    def url(self) -> str:
        """The address of the worker's REST interface."""
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        """See `LocalServer.start`."""
        self._data_dir.mkdir(parents=True, exist_ok=True)
        for name in self._connectors:
            _drop_torn_end(self._history(name))
        worker = _written(self._data_dir / "worker.properties", self._worker_properties())
        sources = [
            str(_written(self._data_dir / f"{name}.properties", self._source_properties(name)))
            for name in self._connectors
        ]
        classpath = os.pathsep.join(str(jar) for jar in self._jars)
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = [self._java, *_JVM_OPTIONS, "-cp", classpath, main, str(worker), *sources]
        self._run(command, self._tasks_run, _START_SECONDS_MAX)

    def failure(self) -> str | None:
        """Return why a connector's task failed; None while all run."""
        failed = [task for name in self._connectors for task in self._tasks(name, "FAILED")]
        return str(failed[0].get("trace", "no trace")) if failed else None

    def kept(self, name: str) -> tuple[str, int]:
        """Return the binlog's file and position from which the connector would continue after a
        kill; the binlog's start while none is stored.
        """
        places = [kept["offset"] for kept in self._answer_about(name, "offsets").get("offsets", [])]
        return max(((at["file"], int(at["pos"])) for at in places), default=("", 0))

    def _tasks_run(self) -> bool:
        return all(self._tasks(name, "RUNNING") for name in self._connectors)

    def _tasks(self, name: str, state: str) -> list[dict[str, Any]]:
        """Return the tasks of a connector that are in this state; none while the server doesn't
        answer.
        """
        tasks = self._answer_about(name, "status").get("tasks", [])
        return [task for task in tasks if task["state"] == state]

    def _answer_about(self, name: str, what: str) -> dict[str, Any]:
        address = f"http://{HOST}:{self._port}/connectors/{name}/{what}"
        try:
            with urlopen(address, timeout=_PROBE_SECONDS) as answer:
                found: dict[str, Any] = json.load(answer)
        except (URLError, OSError, ValueError):
            return {}
        return found

    def _worker_properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self._bootstrap_servers,
            "listeners": f"http://{HOST}:{self._port}",
            "plugin.discovery": "service_load",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "offset.storage.file.filename": str(self._data_dir / "offsets"),
            "offset.flush.interval.ms": "3000",
            "producer.max.request.size": str(64 << 20),
            "producer.buffer.memory": str(96 << 20),
            **self._worker,
        }

    def _history(self, name: str) -> Path:
        return self._data_dir / f"{name}.history"

    def _source_properties(self, name: str) -> dict[str, str]:
        return {
            "name": name,
            "tasks.max": "1",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self._history(name)),
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.max.message.bytes": str(64 << 20),
            **self._connectors[name],
        }


def _drop_torn_end(path: Path) -> None:
    if path.exists():
        lines = path.read_bytes()
        path.write_bytes(lines[: lines.rfind(b"\n") + 1])


def _written(path: Path, properties: Mapping[str, str]) -> Path:
    lines = (
        f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in properties.items()
    )
    path.write_text("".join(lines))
    return path
