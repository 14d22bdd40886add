"""Real Kafka brokers on this machine, for tests and for the demo: each is a KRaft node in a JVM.

Rules kept here: every listener is on 127.0.0.1; only the process started here is signalled; the
data folder survives `stop` and `kill`, so that `start` continues where the broker was.
"""

from __future__ import annotations

import os
import socket
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path
from uuid import uuid4

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from lakesplice.testing.servers.process import HOST, LocalServer

_PROBE_MILLISECONDS = 2_000
_FORMAT_SECONDS = 60.0
_NODE_ID = 1
_CLUSTER = "cluster.id="

# Chosen for little memory and a quick start, not for speed over hours; warnings and errors go to
# the log.
_JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)


class LocalBroker(LocalServer):
    """A cluster of one node, or a further broker of the cluster of the node that it `joins`.

    `jars` is the classpath (`ensure_jars(KAFKA_BROKER)`); `data_dir` is made if missing and belongs
    to one broker at a time; `port` 0 takes a free one and keeps it for the object's life.
    `settings` are further broker properties, which win over the ones set here.
    """

    def __init__(
        self,
        jars: list[Path],
        data_dir: Path,
        port: int = 0,
        *,
        settings: dict[str, str] | None = None,
        joins: LocalBroker | None = None,
        java: str = "java",
        start_seconds_max: float = 90.0,
    ) -> None:
        self._jars = jars
        self._data_dir = data_dir.absolute()
        self._port = port
        self._controller_port = 0
        self._settings = settings or {}
        self._joins = joins
        self.node_id: int = _NODE_ID if joins is None else joins.node_id + 1
        self._java = java
        self._seconds_max = start_seconds_max
        super().__init__("the broker", self._data_dir / "broker.log")

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:<port>`; the port is 0 until the first `start`, and doesn't change
        afterwards.
        """
        return f"{HOST}:{self._port}"

    def start(self) -> None:
        """See `LocalServer.start`."""
        if self.is_running:
            return
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._choose_ports()
        properties = self._data_dir / "server.properties"
        properties.write_text(self._properties())
        if not self._identity.exists():
            self._format(properties)
        command = self._command("kafka.Kafka", str(properties))
        self._run(command, lambda: self._port_is_open() and self._answers(), self._seconds_max)

    @property
    def cluster_id(self) -> str:
        """What all nodes of the cluster call it; it is chosen at the first `start`."""
        lines = self._identity.read_text().splitlines()
        return next(line for line in lines if line.startswith(_CLUSTER)).removeprefix(_CLUSTER)

    @property
    def _identity(self) -> Path:
        return self._data_dir / "log" / "meta.properties"

    @property
    def controllers(self) -> str:
        """The cluster's controllers, as its nodes name them."""
        if self._joins is not None:
            return self._joins.controllers
        return f"{self.node_id}@{HOST}:{self._controller_port}"

    def _choose_ports(self) -> None:
        """Choose two different free ports; both sockets stay bound until both ports are known."""
        wanted = [self._port, self._controller_port]
        if all(wanted):
            return
        with socket.socket() as first, socket.socket() as second:
            for probe in (first, second):
                probe.bind((HOST, 0))
            free = [probe.getsockname()[1] for probe in (first, second)]
        self._port, self._controller_port = (
            want or spare for want, spare in zip(wanted, free, strict=True)
        )

    def _properties(self) -> str:
        """The broker's properties as a file's text: no replicas, no delays."""
        listeners = f"PLAINTEXT://{self.bootstrap_servers}"
        if self._joins is None:
            listeners += f",CONTROLLER://{HOST}:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller" if self._joins is None else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": self.controllers,
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
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
        """Format the data folder for a broker, once."""
        new = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        cluster_id = new if self._joins is None else self._joins.cluster_id
        arguments = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        command = self._command(*arguments, f"--cluster-id={cluster_id}", "-c", str(properties))
        with self.log_path.open("ab") as log:
            try:
                done = subprocess.run(
                    command,
                    cwd=self._data_dir,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=_FORMAT_SECONDS,
                )
                status = done.returncode
            except subprocess.TimeoutExpired:
                status = -1
        if status:
            raise self.failed("the broker's data folder could not be formatted")

    def _command(self, *arguments: str) -> list[str]:
        classpath = os.pathsep.join(str(jar) for jar in self._jars)
        return [self._java, *_JVM_OPTIONS, "-cp", classpath, *arguments]

    def _port_is_open(self) -> bool:
        """Try the socket before Kafka's client, whose retries would take longer."""
        with socket.socket() as probe:
            probe.settimeout(_PROBE_MILLISECONDS / 1000)
            return probe.connect_ex((HOST, self._port)) == 0

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
            brokers = admin.describe_cluster()["brokers"]
            return any(broker["broker_id"] == self.node_id for broker in brokers)
        except KafkaError:
            return False
        finally:
            admin.close()
