"""How a contender is measured: a fresh table, the changes brought in, what is then seen.

Imports nothing but the standard library, since one peer lives in an environment of its own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

Task = dict[str, Any]
Phases = dict[str, float]


class Contender(Protocol):
    """One way to bring changes into a table."""

    def prepare(self) -> None:
        """Make the table, once."""
        ...

    def reset(self) -> None:
        """Bring the table back to what `prepare` made; not measured."""
        ...

    def bring_in(self, changes: Path, columns: list[str]) -> Phases:
        """Write the changes, until every reader sees them; returns seconds by phase.

        The whole is measured around it.
        """
        ...

    def seen(self, columns: list[str]) -> dict[str, str]:
        """Return what a reader of the table sees: the sum of each column, as text."""
        ...


def serve(
    task: Task, contender: Contender, requests: Iterable[str], answer: Callable[[Task], None]
) -> None:
    """Prepare and warm up, answer that, then each request, a line of JSON, as it comes.

    `{"run": n}` measures the task's n-th cell once and is answered by its seconds, `{"check": n}`
    by whether a reader now sees what it should. So several contenders, a process each, can be
    measured in turn: whatever else the machine does meets all of them.
    """
    contender.prepare()
    _run(contender, task["cells"][0])
    answer({"ready": True})
    for line in requests:
        request = json.loads(line)
        if "run" in request:
            answer(_run(contender, task["cells"][request["run"]]))
        else:
            cell = task["cells"][request["check"]]
            answer({"right": _is(contender.seen(cell["names"]), cell["sums"])})


def serve_parent(make: Callable[[Task], Contender]) -> None:
    """Serve, as the contender that the first argument describes, who started this process."""
    task: Task = json.loads(sys.argv[1])
    # What Spark and others print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(found: Task) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    serve(task, make(task), sys.stdin, answer)


def _run(contender: Contender, cell: Task) -> Phases:
    contender.reset()
    os.sync()
    gc.collect()
    started = time.monotonic()
    phases = contender.bring_in(Path(cell["changes"]), cell["names"])
    return {**phases, "whole": time.monotonic() - started}


def timed(phases: Phases, name: str, act: Callable[[], object]) -> None:
    """Run `act` and note its seconds."""
    started = time.monotonic()
    act()
    phases[name] = time.monotonic() - started


def _is(seen: dict[str, str], expected: dict[str, str]) -> bool:
    """Whether the sums are equal as numbers; copying promises none."""
    return not seen or {n: float(v) for n, v in seen.items()} == {
        name: float(value) for name, value in expected.items()
    }
