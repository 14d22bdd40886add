"""How a contender is measured: a fresh table, the changes brought in, what is then seen.

Imports nothing but the standard library, since one peer lives in an environment of its own.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable
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


def measure(task: Task, contender: Contender) -> None:
    """Measure all cells of a task and write the figures to its `out` after each."""
    contender.prepare()
    found: list[dict[str, Any]] = []
    warm = task["cells"][0]
    contender.reset()
    contender.bring_in(Path(warm["changes"]), warm["names"])
    for cell in task["cells"]:
        runs = []
        for _ in range(task["repeats"]):
            contender.reset()
            os.sync()
            gc.collect()
            started = time.monotonic()
            phases = contender.bring_in(Path(cell["changes"]), cell["names"])
            runs.append({**phases, "whole": time.monotonic() - started})
        seen = contender.seen(cell["names"])
        found.append({"cell": cell["name"], "runs": runs, "right": _is(seen, cell["sums"])})
        Path(task["out"]).write_text(json.dumps(found))
        print(cell["name"], runs[-1], found[-1]["right"], flush=True)


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
