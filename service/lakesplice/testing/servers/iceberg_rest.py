"""A real Iceberg REST catalog as a process: the server that Apache Iceberg tests its clients with.

It comes from Maven's central repository. Its HTTP part is in Iceberg's jar of tests; a few lines of
Java (`IcebergRestServer.java`) start it, which the JDK compiles at each start.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyspark
import urllib3
from pyiceberg.catalog import load_catalog
from urllib3.exceptions import HTTPError

from lakesplice.spark.jars import JarSet, Module
from lakesplice.testing.servers.process import HOST, LocalServer, free_port

_SOURCE = Path(__file__).with_name("IcebergRestServer.java")
ICEBERG_REST = JarSet(
    "iceberg-rest",
    (
        # Later versions have no jar of tests there.
        Module("org.apache.iceberg", "iceberg-core", "1.10.1", transitive=True, classifier="tests"),
        Module("org.eclipse.jetty", "jetty-servlet", "11.0.26", transitive=True),
        Module("org.xerial", "sqlite-jdbc", "3.49.1.0"),
        Module("org.slf4j", "slf4j-simple", "2.0.17"),
    ),
)
TOKEN = "let-me-in"  # noqa: S105 - the server is on this machine, and ends with its test
_START_SECONDS_MAX = 60.0
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_OK = 200


class IcebergRestServer(LocalServer):
    """The server, from the jars of `ICEBERG_REST`; the tables that it knows are in `folder` and
    outlive it. After `kill` or `stop` it starts again under the same address. `java` is that of a
    JDK.
    """

    def __init__(self, jars: Sequence[Path], folder: Path, *, java: str = "java") -> None:
        self._jars, self._java = jars, java
        self._folder = folder.absolute()
        self.port = free_port()
        self._pool = urllib3.PoolManager(retries=False, timeout=5.0)
        super().__init__("Iceberg's REST catalog", self._folder / "rest.log")

    @property
    def address(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    def properties(self, address: str = "") -> dict[str, str]:
        """The catalog's properties, as `iceberg.catalog` has them."""
        return {"type": "rest", "uri": address or self.address, "token": TOKEN}

    def empty(self) -> None:
        """Forget all tables."""
        catalog = load_catalog("emptied", **self.properties())
        for namespace in catalog.list_namespaces():
            for table in catalog.list_tables(namespace):
                catalog.drop_table(table)

    def start(self) -> None:
        """See `LocalServer.start`."""
        classes = os.pathsep.join(map(str, (*self._jars, *_hadoop())))
        program = [self._java, *_JVM, "-cp", classes, str(_SOURCE)]
        arguments = [str(self.port), str(self._folder), TOKEN]
        self._run([*program, *arguments], self._answers, _START_SECONDS_MAX)

    def _answers(self) -> bool:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            answer = self._pool.request("GET", f"{self.address}/v1/config", headers=headers)
        except HTTPError:
            return False
        return answer.status == _OK


def _hadoop() -> list[Path]:
    """Hadoop's client, which PySpark contains: the catalog writes its metadata with it."""
    return sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
