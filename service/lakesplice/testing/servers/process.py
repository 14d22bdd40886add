"""Servers as processes on this machine: started, polled until they answer, stopped or killed."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from lakesplice.errors import SourceUnavailable

HOST = "127.0.0.1"
_POLL_SECONDS = 0.1
_STOP_SECONDS = 30.0
_LOG_BYTES_SHOWN = 4_000


def java_command() -> str:
    """Return the command of the Java that PySpark would use: that of JAVA_HOME or the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


class LocalServer(ABC):
    """A server as a context manager: it is ready inside the block and ended after it; its data is
    kept.

    The process has its own session, so that Ctrl-C in a terminal reaches only the caller. The
    output of all starts goes to `log_path`. Only the process started here is signalled. `start`,
    `stop` and `kill` may be called repeatedly; each blocks. Not thread-safe.
    """

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start it on its data and return once it answers; does nothing if it runs.

        Raises `SourceUnavailable`, with the end of the log, if it stops or doesn't answer in time;
        then no process is left.
        """

    @property
    def pid(self) -> int | None:
        """The running process's id, or None."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether the process is alive; it may not answer yet, or no longer."""
        return self._process is not None and self._process.poll() is None

    def _run(
        self,
        command: Sequence[str | Path],
        answers: Callable[[], bool],
        seconds_max: float,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start the command in the log's folder and return once `answers` returns True; see
        `start`.
        """
        if self.is_running:
            return
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.log_path.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(variables or {})},
                start_new_session=True,
            )
        try:
            self._await(answers, seconds_max)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop the process cleanly, by force if it takes too long; does nothing if none runs."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End the process at once, as a crash would; does nothing if none runs."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def _await(self, answers: Callable[[], bool], seconds_max: float) -> None:
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            if not self.is_running:
                raise self.failed(f"{self.name} stopped while starting")
            if answers():
                return
            time.sleep(_POLL_SECONDS)
        raise self.failed(f"{self.name} did not answer within {seconds_max} s")

    def failed(self, what: str) -> SourceUnavailable:
        """Return the error with this text and the end of the log."""
        log = self.log_path.read_bytes()[-_LOG_BYTES_SHOWN:].decode(errors="replace").strip()
        return SourceUnavailable(
            f"{what}; the end of its log is below; see the whole log for the cause",
            log_path=str(self.log_path),
            log_end=log,
        )


def free_port(wanted: int = 0) -> int:
    """Return a port on which no process listens now: the one wanted, if that is free."""
    for port in (wanted, 0):
        with suppress(OSError), socket.socket() as probe:
            # Else a port counts as taken for a minute after its last server.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise SourceUnavailable("no port is free", host=HOST)
