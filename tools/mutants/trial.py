"""Runs the tests that concern a mutant, against it, in a copy of the checkout.

Each run of pytest is a forked child of this process, which has the heavy packages loaded; one at a
time. The copy is what is mutated, never the checkout.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
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
RED_MAX = 3
"""A mutant is not judged if more tests than these fail without it."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
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
    SURVIVED_SOME = "survived the tests that there was time for"
    UNREACHED = "survived: no test calls it"
    UNRUNNABLE = "not judged: pytest could not run"
    RED = "not judged: the tests fail without it"

    @property
    def is_caught(self) -> bool:
        """Whether a test noticed."""
        return self in (Verdict.CAUGHT, Verdict.TIMED_OUT)


@dataclass(frozen=True)
class Result:
    """A mutant's verdict, and how many tests gave it of those that call its function; `red` are
    tests that fail without it, too, and therefore count for nothing.
    """

    mutant: Mutant
    verdict: Verdict
    tests_run: int
    tests_known: int
    seconds: float
    red: tuple[str, ...] = ()


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

    A test that fails counts if the tests up to it pass without the mutant; else it is left out, and
    the mutant is tried again. The copy is as before afterwards.
    """
    known = contexts.tests_of(mutant)
    started = time.monotonic()

    def result(verdict: Verdict, tests: int, red: Sequence[str]) -> Result:
        return Result(mutant, verdict, tests, len(known), time.monotonic() - started, tuple(red))

    red = list[str]()
    while len(red) <= RED_MAX:
        tests = _affordable([test for test in known if test not in red], contexts, budget)
        if not tests:
            return result(Verdict.RED if red else Verdict.UNREACHED, 0, red)
        with _in_place(copy / mutant.path, mutant):
            verdict = _run(copy, tests, contexts, log)
        if verdict is Verdict.SURVIVED and len(tests) + len(red) < len(known):
            verdict = Verdict.SURVIVED_SOME
        if not verdict.is_caught:
            return result(verdict, len(tests), red)
        needed = _up_to_the_failure(tests, log) if verdict is Verdict.CAUGHT else tests
        if _run(copy, needed, contexts, log.with_suffix(".without")) is Verdict.SURVIVED:
            return result(verdict, len(tests), red)
        red.append(needed[-1])
    return result(Verdict.RED, 0, red)


def _affordable(tests: Sequence[str], contexts: Contexts, budget: float) -> list[str]:
    """The tests that together last no longer than the budget, one at least if there is one."""
    chosen, total = list[str](), 0.0
    for test in tests:
        cost = contexts.seconds.get(test, 0.0)
        if total + cost <= budget or not chosen:
            chosen.append(test)
            total += cost
    return chosen


def _run(copy: Path, tests: Sequence[str], contexts: Contexts, log: Path) -> Verdict:
    arguments = [*OPTIONS, "--hypothesis-profile", "gate", *tests]
    total = sum(contexts.seconds.get(test, 0.0) for test in tests)
    code = _pytest(copy, arguments, log, seconds=60 + 4 * total)
    return Verdict.TIMED_OUT if code is None else _verdict(code, log)


def _up_to_the_failure(tests: Sequence[str], log: Path) -> Sequence[str]:
    """Those tests that ran, of which the last failed; all, if none could be run."""
    failed = _FAILED.search(log.read_text(errors="replace"))
    name = failed[1].split("[")[0] if failed else ""
    return tests[: tests.index(name) + 1] if name in tests else tests


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
