"""Lanes of tests side by side: whole services, servers without a service, and everything else.

Two services at a time on two cores wait for each other for longer than their tests last, so only
the workers of the first lane run the files in `SERVICES`. The other workers yield the processor to
them. They share the rest so that few of them start a broker and a database, or a Spark with Delta,
of their own. A worker that has run out of its own files helps with those of others, the short ones
first. The end of a run shows each folder's seconds and its budget, and the longest files.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.terminal import TerminalReporter
from xdist.scheduler.loadscope import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

SERVICES = ("tests/e2e/", "tests/crash/test_kills.py")
"""Files whose tests start the whole service: one at a time."""

TOGETHER = "tests/e2e/together/"
"""Files whose tests share what the first of them waits for, so one worker runs them all."""

SERVERS = ("tests/integration/",)
"""Files whose tests start a broker, a database or another server."""

REST_FIRST = ("tests/conformance/", "tests/splice/", "tests/crash/", "tests/property/")
"""What a lane of the rest begins with: a long file at the end would leave one core idle."""

BUDGET_SECONDS = {
    "tests/e2e": 740,
    "tests/unit": 500,
    "tests/integration": 440,
    "tests/crash": 320,
    "tests/conformance": 230,
    "tests/property": 230,
    "tests/splice": 170,
    "tests/fuzz": 10,
}
"""Seconds that the tests of a folder may last together, on two cores with both lanes running."""


FILES_SHOWN = 20
"""How many of the files that take longest the end of a run shows."""
NICENESS = 10
REPORTS_MIN = 1000
"""Below so many reports a run is somebody's own, of a few files: nothing is summed up."""


class Lane(Enum):
    """What a worker runs first."""

    SERVICES = 0
    SERVERS = 1
    REST = 2


def lane_of(worker: str, workers: int) -> Lane:
    """The lane of the worker (`gw1`) of so many. A third of them, rounded up, runs services; the
    others are by turns of the rest and of servers, from the last one back.
    """
    number = int(worker.removeprefix("gw"))
    if not -(-workers // 3) <= number < workers:
        return Lane.SERVICES
    return Lane.REST if (workers - number) % 2 else Lane.SERVERS


def files_in_order(files: Sequence[str], lane: Lane) -> list[str]:
    """The files that a worker of the lane may run, in the order in which it takes them."""
    services = [file for file in files if file.startswith(SERVICES)]
    servers = [file for file in files if file.startswith(SERVERS)]
    rest = sorted((file for file in files if not file.startswith((*SERVICES, *SERVERS))), key=_rank)
    match lane:
        case Lane.SERVICES:
            # Short files last in the other lanes are what two can share without one waiting.
            return [*services, *reversed(servers), *reversed(rest)]
        case Lane.SERVERS:
            return [*servers, *reversed(rest)]
        case Lane.REST:
            return [*rest, *reversed(servers)]


def scope_of(nodeid: str) -> str:
    """The tests that one worker runs in a row: those of a file, or of files that go together."""
    return TOGETHER if nodeid.startswith(TOGETHER) else _file(nodeid)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Hands out files, to each worker those of its lane first.

    A worker for whom nothing is left stops while the others go on; one that replaces a worker that
    died runs services.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next_for(node)
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and self._next_for(node) is None:
            if not node.shutting_down:
                node.shutdown()
            return
        super()._reschedule(node)

    def _next_for(self, node: WorkerController) -> str | None:
        lane = lane_of(node.gateway.id, self.numnodes)
        return next(iter(files_in_order([*self.workqueue], lane)), None)


def _rank(scope: str) -> int:
    return next(
        (n for n, folder in enumerate(REST_FIRST) if scope.startswith(folder)), len(REST_FIRST)
    )


def yield_to_services() -> None:
    """Lower the priority of this process if it is a worker of another lane.

    Where Linux groups processes by session, niceness counts within a session alone, and services
    have sessions of their own; so the worker gets one too, which is niced as a whole.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker and lane_of(worker, workers) is not Lane.SERVICES:
        os.nice(NICENESS)
        with suppress(OSError):
            os.setsid()
            Path("/proc/self/autogroup").write_text(str(NICENESS))


def write_sums(terminalreporter: TerminalReporter) -> None:
    """Seconds of each folder beside its budget, of each worker, and of the longest files."""
    reports = [
        report
        for kept in terminalreporter.stats.values()
        for report in kept
        if isinstance(report, pytest.TestReport)
    ]
    if len(reports) < REPORTS_MIN:
        return
    folders, workers = seconds_of(reports, _folder), defaultdict[str, float](float)
    for report in reports:
        workers[getattr(report, "worker_id", "one process")] += report.duration
    terminalreporter.section("seconds per folder, and its budget")
    for folder, seconds in sorted(folders.items(), key=lambda found: -found[1]):
        budget = BUDGET_SECONDS.get(folder, 0)
        over = "  OVER ITS BUDGET" if seconds > budget else ""
        terminalreporter.write_line(f"{seconds:7.0f} of {budget:4d}  {folder}{over}")
    lanes = ", ".join(f"{worker} {seconds / 60:.1f}" for worker, seconds in sorted(workers.items()))
    terminalreporter.write_line(f"minutes per worker: {lanes}")
    files = sorted(seconds_of(reports, _file).items(), key=lambda found: -found[1])
    terminalreporter.section(f"seconds of the slowest {FILES_SHOWN} files")
    for file, seconds in files[:FILES_SHOWN]:
        terminalreporter.write_line(f"{seconds:7.0f}  {file}")


def seconds_of(
    reports: Iterable[pytest.TestReport], place: Callable[[str], str]
) -> dict[str, float]:
    """Seconds of set-up, test and tear-down by the place of a test, as its id tells it."""
    seconds = defaultdict[str, float](float)
    for report in reports:
        seconds[place(report.nodeid)] += report.duration
    return seconds


def _folder(nodeid: str) -> str:
    """The first folder below `tests`."""
    return "/".join(nodeid.split("/")[:2])


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]
