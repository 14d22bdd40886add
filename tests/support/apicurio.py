"""A real schema registry: Apicurio's, in memory, as a process of this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

import pytest
import urllib3

from lakesplice.spark.jars import JarSet, Module
from lakesplice.testing.servers.process import java_command
from tests.support.maven_archives import MavenArchive, unpacked

_REVISION = "2.6.13.Final"
_NAME = "apicurio-registry-app"
_ARCHIVE = MavenArchive(
    "io.apicurio",
    _NAME,
    _REVISION,
    "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba",
    classifier="all",
)
CONVERTER = JarSet(
    "apicurio-converter",
    (Module("io.apicurio", "apicurio-registry-utils-converter", _REVISION, transitive=True),),
    "322c0c2edb7577683e13c7300cd6c965d4c79f3754e99ce450d60ef61735e953",
)
_READY = b"Listening on"
_START_SECONDS_MAX, _ANSWER_SECONDS_MAX = 120.0, 60.0


class Apicurio:
    """A registry that runs within the block; `compatible` and `own` are its two interfaces."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        application = unpacked(_ARCHIVE)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [
            java_command(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1",
            "-jar", f"{_NAME}-{_REVISION}-runner.jar",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, cwd=application, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(ready,), daemon=True)
        self._reader.start()
        if not ready.wait(_START_SECONDS_MAX) or self._process.poll() is not None:
            self.__exit__()
            pytest.skip(f"the registry didn't start: {self._said[-300:]!r}")
        self.compatible = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        self.own = f"http://127.0.0.1:{port}/apis/registry/v2"
        return self

    def converters(self) -> dict[str, str]:
        """Properties of a connector that writes Avro with this registry's schemas."""
        one = {
            "": "io.apicurio.registry.utils.converter.AvroConverter",
            ".apicurio.registry.url": self.own,
            ".apicurio.registry.auto-register": "true",
            ".apicurio.registry.headers.enabled": "false",
            ".apicurio.registry.as-confluent": "true",
            ".apicurio.registry.use-id": "contentId",
        }
        both = ("key.converter", "value.converter")
        return {f"{part}{end}": value for part in both for end, value in one.items()}

    def _read(self, ready: threading.Event) -> None:
        self._said = b""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said = self._said[-10_000:] + line
            if _READY in line:
                ready.set()
        ready.set()

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def register(self, subject: str, schema: str, **more: Any) -> int:
        """Register a schema by the compatible interface; return its number there."""
        path = f"/subjects/{subject}/versions"
        answer = urllib3.request(
            "POST",
            self.compatible + path,
            json={"schema": schema, **more},
            timeout=_ANSWER_SECONDS_MAX,
        )
        assert answer.status == 200, answer.data
        return int(answer.json()["id"])

    def numbers(self, subject: str) -> dict[str, int]:
        """Return the numbers that the registry's own interface gives a subject's newest schema."""
        path = f"/groups/default/artifacts/{subject}/meta"
        found = json.loads(
            urllib3.request("GET", self.own + path, timeout=_ANSWER_SECONDS_MAX).data
        )
        return {"content-id": found["contentId"], "global-id": found["globalId"]}
