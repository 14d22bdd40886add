"""A Spark standalone cluster on this machine that shares only the lake with the driver.

Master and workers are separate processes of the pip package, with their own home and temporary
folders. The executors' Python comes as an archive, which has our dependencies but not our package.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import threading
import time
import venv
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyspark

_HOST = "127.0.0.1"
_START_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.1
_MASTER, _WORKER = (
    f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker")
)
_EXECUTOR = "CoarseGrainedExecutorBackend"
_PASSED_ON = ("PATH", "JAVA_HOME", "JDK_JAVA_OPTIONS", "LANG")
_DAEMON_MEMORY = "256m"


@dataclass(frozen=True)
class Member:
    """A process of the cluster, which leads its own session, and its log file."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> re.Match[str] | None:
        """Return the first match in the log."""
        return re.search(pattern, self.log.read_text(errors="replace"))


class Cluster:
    """A master and workers of one core each, as a context manager; inside the block all are
    registered.
    """

    def __init__(self, folder: Path, workers: int = 2, *, secret: str = "") -> None:
        """With a `secret`, all members, drivers and executors authenticate each other and
        encrypt.
        """
        self._folder = folder
        self._security = _security(secret) if secret else {}
        self._count = workers
        self._stack = ExitStack()
        self.workers: list[Member] = []
        self.url = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            ui = ["--host", _HOST, "--webui-port", "0"]
            master = self._launch(stack, "master", [_MASTER, "--port", "0", *ui])
            self.url = await_said(master, r"Starting Spark master at (spark://\S+)")[1]
            self.workers = [
                self._launch(stack, f"worker{number}", [_WORKER, *ui, *self._worker(number)])
                for number in range(self._count)
            ]
            for worker in self.workers:
                await_said(worker, r"Successfully registered with master")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def section(self, **options: str) -> dict[str, Any]:
        """The section `spark` of a configuration that runs tasks here."""
        ours = {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.executor.memory": "512m",
            "spark.archives": f"{environment(self._folder)}#environment",
            "spark.pyspark.python": "./environment/bin/python",
        }
        return {"master": self.url, "options": ours | self._security | options}

    def executors(self, worker: Member) -> list[int]:
        """Return the process ids of the executors that a worker runs."""
        columns = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(worker.process.pid)]
        listing = subprocess.run(columns, capture_output=True, text=True, check=False).stdout
        rows = (line.split(maxsplit=1) for line in listing.splitlines())
        return [int(pid) for pid, args in rows if _EXECUTOR in args]

    def join(self, stack: ExitStack, url: str) -> Member:
        """Start a worker that has this cluster's secret and registers with another cluster's
        master.
        """
        self.url = url
        return self._launch(stack, "stranger", [_WORKER, "--webui-port", "0", *self._worker(0)])

    def _worker(self, number: int) -> list[str]:
        folder = self._folder / f"worker{number}" / "work"
        return ["--cores", "1", "--memory", "1g", "--work-dir", str(folder), self.url]

    def _launch(self, stack: ExitStack, name: str, command: list[str]) -> Member:
        home = self._folder / name
        (home / "tmp").mkdir(parents=True)
        spark = Path(pyspark.__file__).parent
        variables = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_DIRS": str(home / "tmp"),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": f"-Djava.io.tmpdir={home / 'tmp'} -XX:+UseSerialGC",
        }
        properties = home / "spark.properties"
        properties.touch(mode=0o600)
        properties.write_text("".join(f"{key} {value}\n" for key, value in self._security.items()))
        log = home / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [
                    str(spark / "bin" / "spark-class"),
                    command[0],
                    *("--properties-file", str(properties)),
                    *command[1:],
                ],
                cwd=home,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        member = Member(process, log)
        stack.callback(_end, member)
        return member


def _security(secret: str) -> dict[str, str]:
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true",
    }


def await_said(member: Member, pattern: str) -> re.Match[str]:
    """Wait until a member's log matches the pattern."""
    ends, pause = time.monotonic() + _START_SECONDS_MAX, threading.Event()
    while (found := member.said(pattern)) is None:
        alive = member.process.poll() is None and time.monotonic() < ends
        assert alive, f"no {pattern!r}: {member.log.read_text(errors='replace')[-3_000:]}"
        pause.wait(_POLL_SECONDS)
    return found


def foreign_python(folder: Path) -> Path:
    """Return the Python of a new environment that has all packages installed here except this
    one.
    """
    made = folder / "environment"
    if not made.exists():
        venv.EnvBuilder(symlinks=True).create(made)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = made / "lib" / version / "site-packages"
        # A folder that a .pth file names is searched, but its own .pth files, which name editable
        # packages, are not read.
        (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return made / "bin" / "python"


def environment(folder: Path) -> Path:
    """Return an archive of `foreign_python`, as executors on other machines would get one."""
    archive = folder / "environment.tar.gz"
    if not archive.exists():
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(foreign_python(folder).parents[1], arcname=".")
    return archive


def _end(member: Member) -> None:
    """End the member's session, with all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(member.process.pid, signal.SIGKILL)
    member.process.wait()
