"""Runs the tests that concern a mutant, against it, in a copy of the checkout.

Each run of pytest is a forked child of this process, which has the heavy packages loaded; one at a
time. The copy is what is mutated, never the checkout.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mutants.contexts import OUTPUT, Contexts
from mutants.sites import Mutant

LEFT_OUT = (".venv", ".git", ".hypothesis", "build", ".*_cache", "demo-lake", "results")
HEAVY = (
    "pytest",
    "hypothesis",
    "numpy",
    "pyarrow.parquet",
    "polars",
    "duckdb",
    "deltalake",
    "boto3",
)
TESTS = ("tests/unit", "tests/property")
"""The tests that must catch mutants: those that start no server."""

WALL_FACTOR = 6
"""A run may last this many times its processor seconds, on a machine that others use too."""
MEMORY_BYTES = 12 << 30
OPTIONS = (
    "-q",
    "-x",
    "-p",
    "mutants.contexts",
    "-p",
    "no:cacheprovider",
    "--no-header",
    "--tb=line",
)


class Verdict(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    TIMED_OUT = "caught by the time limit"
    SURVIVED = "survived"
    UNREACHED = "survived: no test calls it"
    UNRUNNABLE = "not judged: pytest could not run"

    @property
    def is_caught(self) -> bool:
        """Whether a test noticed."""
        return self in (Verdict.CAUGHT, Verdict.TIMED_OUT)


@dataclass(frozen=True)
class Result:
    """A mutant's verdict, and how many tests gave it of those that call its function."""

    mutant: Mutant
    verdict: Verdict
    tests_run: int
    tests_known: int
    seconds: float


def copied(root: Path, to: Path) -> Path:
    """Copy a checkout without what can be made again; return the copy."""
    copy = to / root.name
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    return copy


def record(copy: Path, output: Path, log: Path, tests: Sequence[str] = TESTS) -> Contexts:
    """Run the tests unmutated, which lasts minutes, and return which of them call what.

    A test that fails or is skipped is left out. Raises `RuntimeError` if none could be run.
    """
    arguments = [*OPTIONS[2:], "-q", "--hypothesis-profile", "fast", *tests]
    code = _pytest(copy, arguments, log, seconds=7200, environment={OUTPUT: str(output)})
    if code not in (0, 1):
        raise RuntimeError(f"the tests can't be run; see {log}")
    return Contexts.from_file(output)


def tried(copy: Path, mutant: Mutant, contexts: Contexts, budget: float, log: Path) -> Result:
    """Return what the tests say of a mutant; `budget`: known seconds of tests to run, at most.

    The copy is as before afterwards.
    """
    known = contexts.tests_of(mutant)
    tests, total = list[str](), 0.0
    for test in known:
        cost = contexts.seconds.get(test, 0.0)
        if total + cost <= budget or not tests:
            tests.append(test)
            total += cost
    started = time.monotonic()
    if not tests:
        return Result(mutant, Verdict.UNREACHED, 0, 0, 0.0)
    arguments = [*OPTIONS, "--hypothesis-profile", "gate", *tests]
    with _in_place(copy / mutant.path, mutant):
        code = _pytest(copy, arguments, log, seconds=60 + 4 * total)
    verdict = Verdict.TIMED_OUT if code is None else _verdict(code, log)
    return Result(mutant, verdict, len(tests), len(known), time.monotonic() - started)


def _verdict(code: int, log: Path) -> Verdict:
    """What pytest's exit code means; 4: usage, also where a mutant lets no module be imported."""
    if code == 0:
        return Verdict.SURVIVED
    said = log.read_text(errors="replace")
    unimportable = "ImportError while loading conftest" in said or "found no collectors" in said
    if code in (4, 5) and not unimportable:
        return Verdict.UNRUNNABLE
    return Verdict.CAUGHT


@contextlib.contextmanager
def _in_place(path: Path, mutant: Mutant) -> Iterator[None]:
    """The module has the fault during the block; by its times Python knows that it changed."""
    source, was = path.read_bytes(), path.stat()
    path.write_bytes(mutant.applied_to(source))
    try:
        yield
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def _pytest(
    copy: Path,
    arguments: list[str],
    log: Path,
    *,
    seconds: float,
    environment: dict[str, str] | None = None,
) -> int | None:
    """Run pytest in a forked child with a time limit; None if the limit ended it."""
    for name in HEAVY:
        importlib.import_module(name)
    child = os.fork()
    if child == 0:
        _in_the_child(copy, arguments, log, seconds, environment or {})
    ends = time.monotonic() + seconds * WALL_FACTOR
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            limits = (-signal.SIGXCPU, -signal.SIGKILL)
            return None if code in limits else code
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.05)


def _in_the_child(
    copy: Path, arguments: list[str], log: Path, seconds: float, environment: dict[str, str]
) -> None:
    code = 70
    try:
        os.setsid()
        limit = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(copy)
        path = [str(copy / "service"), str(copy), str(copy / "tools")]
        sys.path[:0] = path
        os.environ.update(environment, PYTHONPATH=os.pathsep.join(path))
        if not environment:
            sys.dont_write_bytecode = True
        import pytest

        code = int(pytest.main(arguments))
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
