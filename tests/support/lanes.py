"""Two lanes of tests side by side: whole services in one, everything else in the other.

Two services at a time on two cores wait for each other for longer than their tests last, so only
the workers of the first lane run the files in `SERVICES`. The other workers, which yield the
processor to them, run the rest, the longest folders first. A worker of the first lane that has run
out of services helps with the rest. The end of a run shows each folder's seconds and its budget,
and the longest files.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.terminal import TerminalReporter
from xdist.scheduler.loadscope import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

SERVICES = ("tests/e2e/", "tests/crash/test_kills.py", "tests/integration/")
"""Files whose tests start a broker, a database or the whole service: one at a time."""

NO_SERVICES = tuple(
    f"tests/integration/test_{subject}.py"
    for subject in (
        "bounds",
        "chart",
        "month",
        "object_store",
        "page_in_a_browser",
        "store_contract_s3",
    )
)
"""Files of those folders that need none of these."""

REST_FIRST = (
    "tests/integration/",
    "tests/conformance/",
    "tests/splice/",
    "tests/crash/",
    "tests/property/",
)
"""What the other lane begins with: a long file at the end would leave one core idle."""

BUDGET_SECONDS = {
    "tests/e2e": 950,
    "tests/integration": 450,
    "tests/crash": 320,
    "tests/conformance": 300,
    "tests/splice": 200,
    "tests/property": 200,
    "tests/unit": 250,
    "tests/fuzz": 10,
}
"""Seconds that the tests of a folder may last together, on two cores with both lanes running."""


FILES_SHOWN = 20
"""How many of the files that take longest the end of a run shows."""
NICENESS = 10
REPORTS_MIN = 1000
"""Below so many reports a run is somebody's own, of a few files: nothing is summed up."""


def is_services(nodeid: str) -> bool:
    """Whether the test or file belongs to the lane of services."""
    return nodeid.startswith(SERVICES) and not nodeid.startswith(NO_SERVICES)


class TwoLanes(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Hands out files, those of services to the workers of the first lane alone.

    The second half of the workers is the second lane; the others, and a worker that replaces one
    that died, are the first. A worker for whom nothing is left stops while the others go on.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._others = {f"gw{n}" for n in range(self.numnodes) if is_niced(f"gw{n}", self.numnodes)}

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

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
        services = [scope for scope in self.workqueue if is_services(scope)]
        rest = sorted((scope for scope in self.workqueue if not is_services(scope)), key=_rank)
        if node.gateway.id in self._others:
            return rest[0] if rest else None
        # Short files last in the other lane are what two can share without one waiting at the end.
        return services[0] if services else rest[-1] if rest else None


def is_niced(worker: str, workers: int) -> bool:
    """Whether the worker (`gw1`) of so many belongs to the lane that yields to services."""
    return workers - workers // 2 <= int(worker.removeprefix("gw")) < workers


def _rank(scope: str) -> int:
    return next(
        (n for n, folder in enumerate(REST_FIRST) if scope.startswith(folder)), len(REST_FIRST)
    )


def yield_to_services() -> None:
    """Lower the priority of this process if it is a worker of the second lane.

    Where Linux groups processes by session, niceness counts within a session alone, and services
    have sessions of their own; so the worker gets one too, which is niced as a whole.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and is_niced(worker, int(os.environ["PYTEST_XDIST_WORKER_COUNT"])):
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
