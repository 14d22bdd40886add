"""A real Trino with its Delta Lake connector, as a process, and its answers as Arrow."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import urllib3
from urllib3.exceptions import HTTPError

from lakesplice.testing.servers.process import HOST, LocalServer, free_port
from tests.support import machine
from tests.support.maven_archives import MavenArchive, unpacked

CATALOG = "delta"
_JAVA = 24
_REVISION = "476"
_ARCHIVE = MavenArchive(
    "io.trino",
    "trino-server",
    _REVISION,
    "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
    # Of 50 connectors one is needed: 300 MB of 900.
    kept=("lib", "plugin/delta-lake"),
)
_START_SECONDS_MAX, _ANSWER_SECONDS_MAX = 120.0, 120.0
_JVM = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    "-Djdk.attach.allowAttachSelf=true",
)
_HEADERS = {
    "X-Trino-User": "test",
    "X-Trino-Catalog": CATALOG,
    "X-Trino-Time-Zone": "UTC",
    # Otherwise moments have milliseconds in answers, whatever the type.
    "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
}
_TRIAL = (
    "create schema if not exists trial",
    "create table if not exists trial.trial (n integer)",
    "select * from trial.trial",
)
_OK = 200


class TrinoError(Exception):
    """A statement failed; the text is Trino's."""


class LocalTrino(LocalServer):
    """One node whose catalog `delta` keeps what it registers in a folder. It reads tables on this
    machine under `file://`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._port = free_port()
        self._url = f"http://{HOST}:{self._port}"
        self._registered: dict[Path, str] = {}
        self._pool = urllib3.PoolManager(retries=False, timeout=_ANSWER_SECONDS_MAX)
        super().__init__("Trino", self._folder / "trino.log")

    def start(self) -> None:
        """See `LocalServer.start`; fetches Trino (800 MB) on the first call."""
        java, application = machine.java_of(_JAVA), unpacked(_ARCHIVE)
        catalogs = self._folder / "catalogs"
        catalogs.mkdir(parents=True, exist_ok=True)
        (catalogs / f"{CATALOG}.properties").write_text(self._catalog())
        config = self._folder / "config.properties"
        config.write_text(self._config(application, catalogs))
        names = ("node.environment=test", f"node.data-dir={self._folder}", f"config={config}")
        classes = os.pathsep.join(map(str, sorted((application / "lib").glob("*.jar"))))
        command = [java, *_JVM, *(f"-D{name}" for name in names), "-cp", classes]
        self._run([*command, "io.trino.server.TrinoServer"], self._is_ready, _START_SECONDS_MAX)

    def run(self, statement: str) -> pa.Table:
        """Run a statement and return its rows, none of a statement without any; `TrinoError`."""
        page = self._asked("POST", f"{self._url}/v1/statement", statement)
        columns, rows = None, []
        while True:
            if "error" in page:
                raise TrinoError(page["error"]["message"])
            columns = page.get("columns", columns)
            rows += page.get("data", [])
            if "nextUri" not in page:
                break
            page = self._asked("GET", page["nextUri"])
        return _arrow(columns or [], rows)

    def registered(self, path: Path) -> str:
        """The name of the table in a folder, which is registered on the first call."""
        if path not in self._registered:
            schema, table = "found", f"table_{len(self._registered)}"
            self.run(f"create schema if not exists {schema}")
            self.run(
                f"call system.register_table(schema_name => '{schema}', table_name => '{table}',"
                f" table_location => '{address(path)}')"
            )
            self._registered[path] = f"{schema}.{table}"
        return self._registered[path]

    def read(self, path: Path, version: int) -> pa.Table:
        """The version of the table in a folder, as Trino reads it."""
        return self.run(f"select * from {self.registered(path)} for version as of {version}")

    def _asked(self, method: str, address: str, body: str | None = None) -> Any:
        answer = self._pool.request(method, address, body=body and body.encode(), headers=_HEADERS)
        if answer.status != _OK:
            raise self.failed(f"Trino answered {answer.status}: {answer.data[:500]!r}")
        return answer.json()

    def _is_ready(self) -> bool:
        try:
            about = self._pool.request("GET", f"{self._url}/v1/info", timeout=5.0)
            if about.status != _OK or json.loads(about.data)["starting"]:
                return False
            # A node that has started isn't yet one that reads tables.
            for statement in _TRIAL:
                self.run(statement)
        except (HTTPError, TrinoError):
            return False
        return True

    def _config(self, application: Path, catalogs: Path) -> str:
        return _properties(
            {
                "coordinator": "true",
                "node-scheduler.include-coordinator": "true",
                "http-server.http.port": str(self._port),
                "discovery.uri": self._url,
                "node.bind-ip": HOST,
                "node.internal-address": HOST,
                "plugin.dir": str(application / "plugin"),
                "catalog.config-dir": str(catalogs),
                "task.concurrency": "2",
            }
        )

    def _catalog(self) -> str:
        return _properties(
            {
                "connector.name": "delta_lake",
                "hive.metastore": "file",
                "hive.metastore.catalog.dir": f"file://{self._folder / 'metastore'}",
                "fs.hadoop.enabled": "true",
                "delta.register-table-procedure.enabled": "true",
            }
        )


def in_milliseconds(table: pa.Table, partitioned_by: Sequence[str] = ()) -> pa.Table:
    """A table with moments as Trino's connector has them: it rounds those in files to milliseconds,
    and cuts those of partitions.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            round_ = pc.floor_temporal if field.name in partitioned_by else pc.round_temporal
            moments = round_(table.column(at), unit="millisecond")
            table = table.set_column(at, field, moments)
    return table


def address(path: Path) -> str:
    """The address of a folder, as Trino knows it."""
    return f"file://{path}"


def _properties(values: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


_KINDS: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "boolean": (pa.bool_(), bool),
    "tinyint": (pa.int8(), int),
    "smallint": (pa.int16(), int),
    "integer": (pa.int32(), int),
    "bigint": (pa.int64(), int),
    "real": (pa.float32(), float),
    "double": (pa.float64(), float),
    "varchar": (pa.string(), str),
    "varbinary": (pa.binary(), base64.b64decode),
    "date": (pa.date32(), dt.date.fromisoformat),
}


def _arrow(columns: list[dict[str, Any]], rows: list[list[Any]]) -> pa.Table:
    arrays = []
    for at, column in enumerate(columns):
        kind, read = _kind(column["type"])
        values = [None if row[at] is None else read(row[at]) for row in rows]
        arrays.append(pa.array(values, kind))
    return pa.Table.from_arrays(arrays, names=[column["name"] for column in columns])


def _kind(type_: str) -> tuple[pa.DataType, Callable[[Any], Any]]:
    if found := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", type_):
        return pa.decimal128(int(found[1]), int(found[2])), Decimal
    if re.fullmatch(r"timestamp\(\d\) with time zone", type_):
        return pa.timestamp("us", "UTC"), _moment
    return _KINDS[type_.partition("(")[0]]


def _moment(text: str) -> dt.datetime:
    moment, _, zone = text.rpartition(" ")
    assert zone == "UTC", text
    return dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)
