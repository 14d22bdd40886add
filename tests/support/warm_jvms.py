"""JVMs of Spark that services of tests use in turn: the start of one costs more than most tests do.

PySpark connects to a JVM that runs already if two variables say where. Such a service starts its
session in the JVM and ends it there, as in one of its own. One that ends well leaves the JVM to the
next; whatever happens to another one happens to its JVM, too, which nobody uses again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyspark

from lakesplice.spark.jars import SPARK_KAFKA
from lakesplice.spark.jvm import properties_text
from lakesplice.spark.session import session_properties
from tests.support import machine

MASTER, MEMORY = "local[2]", "1g"
"""With these, and logs as JSON, a service may use such a JVM."""
# What sessions leave behind in a JVM adds up.
_USES_MAX = 15
_START_SECONDS_MAX, _END_SECONDS_MAX = 240.0, 10.0
_POLL_SECONDS = 0.05
_LENGTH = struct.Struct("!i")
_idle: list[WarmJvm] = []
_wanted = [True]


class WarmJvm:
    """One JVM, in a session of its own; it ends with this process. Blocks until it has started."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lakesplice-jvm-"))
        self._uses, self._copied = 0, 0
        self._log = self._folder / "jvm.log"
        address = self._folder / "address"
        properties = self._folder / "spark.properties"
        jars = machine.jars(SPARK_KAFKA)
        chosen = session_properties(MASTER, MEMORY, jars, {}, log_format="json")
        properties.write_text(properties_text({"spark.master": MASTER, **chosen}))
        home = Path(pyspark.__file__).parent
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [home / "bin" / "spark-submit", "--properties-file", properties, "pyspark-shell"],
                env={
                    **variables,
                    "SPARK_HOME": str(home),
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address),
                },
                # It ends once this is closed.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        atexit.register(self._end)
        self.variables = self._await(address)

    @property
    def pid(self) -> int:
        """The process's id, which is its session's and its group's, too."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Signal its whole group, if it is there."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """End it at once, by SIGKILL."""
        self.signal(signal.SIGKILL)
        self._process.wait()

    def give_back(self, log: Path) -> None:
        """Append what it wrote for this service to `log`; let the next one have it, if it lives."""
        written = self._log.read_bytes()
        with log.open("ab") as whole:
            whole.write(written[self._copied :])
        self._copied = len(written)
        self._uses += 1
        if self._process.poll() is None and self._uses < _USES_MAX:
            _idle.append(self)
        else:
            self._end()

    def _end(self) -> None:
        """End it in order, so that Spark's folders go, too."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS_MAX)
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _await(self, address: Path) -> dict[str, str]:
        """What a service needs to know of it."""
        deadline, pause = time.monotonic() + _START_SECONDS_MAX, threading.Event()
        # It appears whole: the JVM writes another file, and renames that.
        while not address.exists():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, "the JVM didn't start"
            pause.wait(_POLL_SECONDS)
        port, length, secret = _read(address.read_bytes())
        assert len(secret) == length
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret.decode()}


def use(wanted: bool) -> None:
    """Whether services of this process use such JVMs from here on; they do if nobody says."""
    _wanted[0] = wanted


def take(variables: Mapping[str, str]) -> WarmJvm | None:
    """One that nobody uses; the first time, or if all are in use, one that starts now, with these
    variables. None if none is to be used.
    """
    if not _wanted[0]:
        return None
    return _idle.pop() if _idle else WarmJvm(variables)


def _read(data: bytes) -> tuple[int, int, bytes]:
    (port,), (length,) = _LENGTH.unpack_from(data), _LENGTH.unpack_from(data, _LENGTH.size)
    return port, length, data[2 * _LENGTH.size :]
