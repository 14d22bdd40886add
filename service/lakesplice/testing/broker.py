"""A real Kafka broker on this machine, for tests and for the demo: one KRaft node, one JVM.

Rules kept here: every listener is on 127.0.0.1; only the process started here is signalled; the
data folder survives `stop` and `kill`, so that `start` continues where the broker was.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from lakesplice.errors import SourceUnavailable

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.1
_PROBE_MILLISECONDS = 2_000
_STOP_SECONDS = 20.0
_FORMAT_SECONDS = 60.0
_LOG_BYTES_SHOWN = 2_000
_NODE_ID = 1

# Small and quick to start rather than fast for hours; warnings and errors go to the log.
_JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)


class LocalBroker:
    """A broker as a context manager: ready when entered, gone when left, its data kept.

    `jars` is the classpath (`ensure_jars(KAFKA_BROKER)`); `data_dir` is made if missing and belongs
    to one broker at a time; `port` 0 takes a free one and keeps it for the object's life.
    `settings` are further broker properties, which win over the ones set here.

    Not thread-safe. `start` and `stop` may be called again and again; each blocks.
    """

    def __init__(
        self,
        jars: list[Path],
        data_dir: Path,
        port: int = 0,
        *,
        settings: dict[str, str] | None = None,
        java: str = "java",
        start_seconds_max: float = 90.0,
    ) -> None:
        self._jars = jars
        self._data_dir = data_dir.absolute()
        self._port = port
        self._controller_port = 0
        self._settings = settings or {}
        self._java = java
        self._start_seconds_max = start_seconds_max
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:<port>`; the port is 0 until the first `start`, the same ever after."""
        return f"{_HOST}:{self._port}"

    @property
    def log_path(self) -> Path:
        """The broker's own output, of all its starts."""
        return self._data_dir / "broker.log"

    @property
    def pid(self) -> int | None:
        """The running broker's process id, or None."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether the process lives; it may not answer yet, or no longer."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker on its data and return once it answers; does nothing if it runs.

        Raises `SourceUnavailable`, with the end of the log, when it stops or doesn't answer in
        time; nothing is left running then.
        """
        if self.is_running:
            return
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._choose_ports()
        properties = self._data_dir / "server.properties"
        properties.write_text(self._properties())
        if not (self._data_dir / "log" / "meta.properties").exists():
            self._format(properties)
        with self.log_path.open("ab") as log:
            self._process = self._spawn(["kafka.Kafka", str(properties)], log.fileno())
        try:
            self._await_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop the broker cleanly, by force if it takes too long; does nothing if none runs."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End the broker at once, as a crash would; does nothing if none runs."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def _choose_ports(self) -> None:
        """Take free ports that differ; both probes stay bound until both are known."""
        wanted = [self._port, self._controller_port]
        if all(wanted):
            return
        with socket.socket() as first, socket.socket() as second:
            for probe in (first, second):
                probe.bind((_HOST, 0))
            free = [probe.getsockname()[1] for probe in (first, second)]
        self._port, self._controller_port = (
            want or spare for want, spare in zip(wanted, free, strict=True)
        )

    def _properties(self) -> str:
        """The broker's properties as a file's text: one node, everything kept once, no delays."""
        controller = f"{_HOST}:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(_NODE_ID),
            "controller.quorum.voters": f"{_NODE_ID}@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._data_dir / "log"),
            "num.partitions": "1",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # A killed broker may register again only after its old session; the default is 9 s.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "300",
            **self._settings,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _format(self, properties: Path) -> None:
        """Make the data folder a broker's, once."""
        cluster_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        arguments = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        with self.log_path.open("ab") as log:
            process = self._spawn(
                [*arguments, f"--cluster-id={cluster_id}", "-c", str(properties)], log.fileno()
            )
        try:
            status = process.wait(_FORMAT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        if status:
            raise self._failure("the broker's data folder could not be formatted")

    def _spawn(self, arguments: list[str], output: int) -> subprocess.Popen[bytes]:
        classpath = os.pathsep.join(str(jar) for jar in self._jars)
        # A session of its own: Ctrl-C in a terminal is for the caller, who then stops the broker.
        return subprocess.Popen(
            [self._java, *_JVM_OPTIONS, "-cp", classpath, *arguments],
            cwd=self._data_dir,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + self._start_seconds_max
        while time.monotonic() < deadline:
            if not self.is_running:
                raise self._failure("the broker stopped while starting")
            if self._port_is_open() and self._answers():
                return
            time.sleep(_POLL_SECONDS)
        raise self._failure(f"the broker did not answer within {self._start_seconds_max} s")

    def _port_is_open(self) -> bool:
        """Ask the socket before the client, whose own retries would take longer."""
        with socket.socket() as probe:
            probe.settimeout(_PROBE_MILLISECONDS / 1000)
            return probe.connect_ex((_HOST, self._port)) == 0

    def _answers(self) -> bool:
        try:
            admin = KafkaAdminClient(
                bootstrap_servers=self.bootstrap_servers,
                request_timeout_ms=_PROBE_MILLISECONDS,
                bootstrap_timeout_ms=_PROBE_MILLISECONDS,
            )
        except KafkaError:
            return False
        try:
            return len(admin.describe_cluster()["brokers"]) == 1
        except KafkaError:
            return False
        finally:
            admin.close()

    def _failure(self, what: str) -> SourceUnavailable:
        log = self.log_path.read_bytes()[-_LOG_BYTES_SHOWN:].decode(errors="replace").strip()
        return SourceUnavailable(
            f"{what}; its log ends below, see the whole of it for the cause",
            log_path=str(self.log_path),
            bootstrap_servers=self.bootstrap_servers,
            log_end=log,
        )
