"""Which test calls which function: a pytest plugin that records it, and what it recorded.

Recorded are functions, not lines: a trace function that asks for no lines costs little. What a test
does in other processes isn't seen.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import pytest

from mutants.sites import Mutant

OUTPUT = "MUTANTS_CONTEXTS"
"""The environment variable that names the file to write."""

Tests = dict[str, float]
"""Tests, without their parameters, and the seconds that each lasts with all of them."""


@dataclass
class Contexts:
    """The tests that call each function, by `path::qualified name`."""

    functions: dict[str, list[str]]
    seconds: Tests

    @classmethod
    def from_file(cls, path: Path) -> Contexts:
        """Read what `Recorder` wrote."""
        read = json.loads(path.read_text(encoding="utf-8"))
        return cls(read["functions"], read["seconds"])

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that call the mutant's function; outside of functions, those that call
        any function of its module. The cheapest test of each file comes first, then the second
        cheapest of each.
        """
        if mutant.function:
            found = set(self.functions.get(f"{mutant.path}::{mutant.function}", ()))
        else:
            found = {
                test
                for name, tests in self.functions.items()
                if name.startswith(f"{mutant.path}::")
                for test in tests
            }
        return in_turns(found, self.seconds)


class Always(Contexts):
    """The same tests for every mutant, at no known cost."""

    def __init__(self, tests: list[str]) -> None:
        super().__init__({}, {})
        self._tests = tests

    def tests_of(self, mutant: Mutant) -> list[str]:  # noqa: ARG002 - whatever it is
        """Return the tests."""
        return self._tests


def in_turns(tests: Iterable[str], seconds: Tests) -> list[str]:
    """Order tests so that every file has its turn early, with its cheapest test first."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (seconds.get(test, 0.0), test)):
        files[test.split("::")[0]].append(test)
    turns = [
        (at, seconds.get(test, 0.0), test) for f in files.values() for at, test in enumerate(f)
    ]
    return [test for _, _, test in sorted(turns)]


@dataclass(eq=False)  # pytest keeps plugins in sets
class Recorder:
    """Notes the functions of a package that run while each test runs."""

    root: Path
    output: Path
    called: set[CodeType] = field(default_factory=set)
    functions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: set[str] = field(default_factory=set)

    def trace(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Note the function that is called; ask for none of its lines."""
        self.called.add(frame.f_code)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace a test with its fixtures."""
        self.called = set()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            test = item.nodeid.split("[")[0]
            package = f"{self.root / 'service'}{os.sep}"
            # A copy, since a thread that outlives its test may call something just now.
            for code in list(self.called):
                if code.co_filename.startswith(package):
                    path = Path(code.co_filename).relative_to(self.root).as_posix()
                    self.functions[f"{path}::{code.co_qualname}"].add(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test lasts, and whether it fails without a mutant."""
        test = report.nodeid.split("[")[0]
        self.seconds[test] += report.duration
        if not report.passed:
            self.failed.add(test)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted, without tests that say nothing of a mutant."""
        functions = {
            name: sorted(tests - self.failed) for name, tests in sorted(self.functions.items())
        }
        text = json.dumps({"functions": functions, "seconds": self.seconds})
        self.output.write_text(text, encoding="utf-8")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Record if asked to. A failing example isn't shrunk: that a test fails is enough."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants", hypothesis.settings(phases=phases, database=None, print_blob=False)
    )
    hypothesis.settings.load_profile("mutants")
    if output := os.environ.get(OUTPUT):
        config.pluginmanager.register(Recorder(config.rootpath, Path(output)))
