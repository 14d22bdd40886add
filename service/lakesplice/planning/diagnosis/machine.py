"""Judges the machine that the driver runs on: Java, memory, room on disk, and executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakesplice.planning.diagnosis.finding import Area, Finding, counted, size

_AREA = Area("machine")
_JAVA_MIN = 17
_GIB = 1 << 30
# The JVM's memory outside its heap, that of a Python worker per task, and the driver's own Python.
_HEAP_FACTOR, _WORKER_BYTES, _DRIVER_BYTES = 1.25, 300 << 20, 500 << 20
_ROOM_PROBLEM, _ROOM_WARNING = _GIB // 2, 5 * _GIB


@dataclass(frozen=True, slots=True)
class JavaFacts:
    """The Java that Spark would start; `version` is empty if there is none; `where` says where it
    was searched, `error` what happened.
    """

    version: str
    where: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Bytes that this process and its children may use in all, and what needs them: the heap of the
    driver's JVM, and a worker for each of the tasks that run at once.
    """

    limit_bytes: int
    heap_bytes: int
    tasks: int


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """A folder and the free space on its disk; `use` says what the folder is for."""

    use: str
    folder: str
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """A process of Spark that runs tasks: its Python version, and a package that it lacks (empty:
    none).
    """

    python: str
    lacks: str = ""


def judge_archive(command: str) -> Finding:
    """Say whether Spark's classes come from an archive; `command` makes one, and is empty if there
    is one. Without it all is well, but slower.
    """
    if not command:
        return _AREA.ok("archive of classes", "there is one, so Spark starts quickly")
    seen = f"none, so each start takes some four seconds more; `{command}` makes one"
    return _AREA.ok("archive of classes", seen)


def judge_java(java: JavaFacts) -> Finding:
    """Judge whether Spark can start."""
    need = f"install a JDK or JRE of {_JAVA_MIN} or later, and put it on the PATH or name its"
    need += " folder in JAVA_HOME"
    if not java.version:
        return _AREA.problem("java", f"no Java ({java.where}): {java.error}", need)
    major = java_major(java.version)
    if major is None:
        return _AREA.warning("java", f"a Java of unknown version: {java.version}", need)
    seen = f"Java {java.version} ({java.where})"
    return _AREA.problem("java", seen, need) if major < _JAVA_MIN else _AREA.ok("java", seen)


def java_major(version: str) -> int | None:
    """Return 17 for `17.0.2`, and 8 for `1.8.0_392`; None if the text isn't a version."""
    parts = version.replace("-", ".").replace("_", ".").split(".")
    first = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    return int(first) if first.isdecimal() else None


def judge_memory(memory: MemoryFacts) -> Finding:
    """Judge whether the heap and the workers fit."""
    workers = memory.tasks * _WORKER_BYTES
    need = memory.heap_bytes * _HEAP_FACTOR + workers + _DRIVER_BYTES
    seen = (
        f"{size(memory.limit_bytes)}; a heap of {size(memory.heap_bytes)} with"
        f" {counted(memory.tasks, 'task')} at once needs some {size(need)}"
    )
    remedy = "give the process more memory, or lower spark.driver_memory or the tasks (spark.master"
    if memory.limit_bytes < memory.heap_bytes:
        return _AREA.problem("memory", seen, f"{remedy}: local[2])")
    if memory.limit_bytes < need:
        return _AREA.warning("memory", seen, f"{remedy}: local[2])")
    return _AREA.ok("memory", seen)


def judge_room(room: RoomFacts) -> Finding:
    """Judge whether a disk has enough free space to start."""
    check = f"disk for {room.use}"
    seen = f"{size(room.free_bytes)} free at {room.folder}"
    remedy = "free some space, or choose a folder on another disk"
    if room.free_bytes < _ROOM_PROBLEM:
        return _AREA.problem(check, seen, remedy)
    if room.free_bytes < _ROOM_WARNING:
        return _AREA.warning(check, seen, remedy)
    return _AREA.ok(check, seen)


def judge_port(port: int, is_free: bool, driver_runs: bool) -> Finding:
    """Judge whether the port of the metrics page is free."""
    if is_free or driver_runs:
        state = "free" if is_free else "in use, and a driver of the lake runs"
        return _AREA.ok("metrics port", f"{port} is {state}")
    return _AREA.warning(
        "metrics port", f"{port} is in use", "set metrics.port to a free port, or 0 for any"
    )


def judge_executors(own: ExecutorFacts, found: Sequence[ExecutorFacts]) -> Iterator[Finding]:
    """Judge executors of a cluster against the driver: they unpickle what it sends."""
    if not found:
        yield _AREA.problem(
            "executors", "no executor answered", "see that the cluster has free cores and memory"
        )
        return
    differing = sorted({one.python for one in found if _minor(one.python) != _minor(own.python)})
    if differing:
        yield _AREA.problem(
            "executors",
            f"executors have Python {', '.join(differing)}, the driver {own.python}",
            "use one image for both, or name its Python in spark.pyspark.python",
        )
    elif missing := sorted({one.lacks for one in found if one.lacks}):
        yield _AREA.problem(
            "executors",
            f"executors lack the package {', '.join(missing)}",
            "install the driver's packages for the executors: use one image for both",
        )
    else:
        yield _AREA.ok("executors", f"{counted(len(found), 'task')} ran, with Python {own.python}")


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
