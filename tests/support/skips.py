"""`--no-skips-but FILE`: a test that is skipped fails, unless the file lists the reason.

Without the option, tests that a machine can't run are skipped by name. The gate gives the option,
so that a missing corpus, jar or server doesn't hide a test. A line of the file is a reason, in
which `*` stands for any text; empty lines and lines that begin with `#` are ignored.
"""

from __future__ import annotations

from collections.abc import Generator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

OPTION = "--no-skips-but"
_ACCEPTED = pytest.StashKey[tuple[str, ...]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("lakesplice").addoption(
        OPTION,
        metavar="FILE",
        default=None,
        help="a skipped test fails unless this file lists the reason (every skip is accepted)",
    )


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption(OPTION)
    if file is not None:
        path = config.invocation_params.dir / file
        try:
            config.stash[_ACCEPTED] = reasons_in(path)
        except OSError as error:
            raise pytest.UsageError(f"{OPTION}: {path} cannot be read ({error.strerror})") from None


def reasons_in(path: Path) -> tuple[str, ...]:
    """The patterns of reasons that a file lists."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse(item.config, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse(collector.config, report)
    return report


def _refuse(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    """Let the report of a skip that nobody listed say that the test failed."""
    accepted = config.stash.get(_ACCEPTED, None)
    if accepted is None or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not any(fnmatchcase(reason, pattern) for pattern in accepted):
        report.outcome = "failed"
        report.longrepr = f"skipped for a reason that {OPTION} doesn't list: {reason}"
