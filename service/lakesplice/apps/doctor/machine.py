"""Facts about this machine: its Java, memory, disks and ports."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lakesplice.config import Settings
from lakesplice.planning.diagnosis.finding import Finding
from lakesplice.planning.diagnosis.machine import (
    ExecutorFacts,
    JavaFacts,
    MemoryFacts,
    RoomFacts,
    judge_executors,
    judge_java,
    judge_memory,
    judge_room,
)
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars
from lakesplice.spark.session import build_session, executor_versions, version_here

_JAVA_SECONDS = 20.0
_VERSION = re.compile(r'version "([^"]+)"')
_LOCAL_TASKS = re.compile(r"local\[(\d+|\*)[,\]]")
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNITS = {"m": 20, "g": 30}
_JAVA_TEMPORARIES = "/tmp"  # noqa: S108  what Java has on Linux


def java() -> Iterator[Finding]:
    """Look for the Java that Spark's launcher would start. Blocks for at most some seconds."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java") or ""
    where = f"JAVA_HOME={home}" if home else "from the PATH"
    yield judge_java(_java_facts(found, where))


def _java_facts(program: str, where: str) -> JavaFacts:
    if not program:
        return JavaFacts("", where, "there is no program `java`")
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return JavaFacts("", where, getattr(error, "strerror", None) or "it doesn't answer")
    version = _VERSION.search(done.stderr + done.stdout)
    if version is None:
        return JavaFacts("", where, f"`java -version` ended with {done.returncode}")
    return JavaFacts(version[1], where)


def memory(settings: Settings) -> Iterator[Finding]:
    """Compare the available memory with what the settings need; nothing if the system doesn't
    report it.
    """
    limit = _memory_limit()
    if limit is not None:
        heap = settings.spark.driver_memory
        heap_bytes = int(heap[:-1]) << _UNITS[heap[-1]]
        yield judge_memory(MemoryFacts(limit, heap_bytes, _tasks_here(settings.spark.master)))


def _memory_limit() -> int | None:
    found = []
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _LIMITS:
        with suppress(ValueError, OSError):
            found.append(int(file.read_text()))
    return min(found, default=None)


def _tasks_here(master: str) -> int:
    """How many tasks run at once on this machine; 0 if a cluster runs them."""
    if master == "local":
        return 1
    matched = _LOCAL_TASKS.match(master)
    if matched is None:
        return 0
    return len(os.sched_getaffinity(0)) if matched[1] == "*" else int(matched[1])


def rooms(settings: Settings, lake: Path | None) -> Iterator[Finding]:
    """Look at the free space of each folder that the service writes to: the lake (None: it isn't on
    a disk), this process's temporary files, and Spark's local folders. Folders that are one, or
    that don't exist yet beside another one, are looked at once.
    """
    wanted = [("the lake", lake)] if lake is not None else []
    wanted += [("temporary files", Path(tempfile.gettempdir()))]
    wanted += [("Spark's scratch", folder) for folder in _local_folders(settings)]
    uses: dict[Path, list[str]] = {}
    for use, folder in wanted:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        uses.setdefault(there, []).append(use)
    for there, found in uses.items():
        free = shutil.disk_usage(there).free
        yield judge_room(RoomFacts(" and ".join(found), str(there), free))


def _local_folders(settings: Settings) -> list[Path]:
    """Where Spark's driver writes shuffles and spills: SPARK_LOCAL_DIRS, then `spark.local.dir`,
    then Java's own folder for temporary files, which isn't TMPDIR.
    """
    named = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark.options.get("spark.local.dir")
    return [Path(folder.strip()) for folder in (named or _JAVA_TEMPORARIES).split(",")]


def port_is_free(settings: Settings) -> bool:
    """Whether the metrics page could be served."""
    kind = socket.AF_INET6 if ":" in settings.metrics.host else socket.AF_INET
    with socket.socket(kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.metrics.host, settings.metrics.port))
        except OSError:
            return False
    return True


def executors(settings: Settings) -> Iterator[Finding]:
    """Start a session on the cluster and run a small job on its executors. Blocks until there are
    some and they answer.
    """
    spark = settings.spark
    jars = ensure_jars(SPARK_KAFKA, spark.jars_folder)
    session = build_session(spark.master, spark.driver_memory, jars, spark.options)
    try:
        found = [ExecutorFacts(*versions) for versions in executor_versions(session)]
    finally:
        session.stop()
    yield from judge_executors(ExecutorFacts(*version_here()), found)
