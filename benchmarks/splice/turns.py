"""Contenders measured in turn, each in a process of its own that waits while others work."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
_ANSWER_SECONDS_MAX, _CLOSE_SECONDS_MAX = 3600.0, 60.0


class ContenderProcess:
    """A contender's process, until it is closed; it prepares itself in the background."""

    def __init__(self, name: str, command: Sequence[str], log: Path, folder: Path) -> None:
        self._name, self._log = name, log
        with log.open("w") as sink:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink,
                text=True, cwd=folder,
            )  # fmt: skip

    def close(self) -> None:
        """End it, by force if it takes too long."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_CLOSE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ready(self) -> None:
        """Wait until it is prepared."""
        self._answer()

    def ask(self, **request: int) -> Figures:
        """Return the answer to a request; blocks."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Figures:
        assert self._process.stdout is not None
        late = threading.Timer(_ANSWER_SECONDS_MAX, self._process.kill)
        late.start()
        line = self._process.stdout.readline()
        late.cancel()
        if not line:
            raise RuntimeError(f"{self._name} ended:\n{self._log.read_text()[-4000:]}")
        found: Figures = json.loads(line)
        return found


def in_turn(
    contenders: Mapping[str, ContenderProcess],
    cells: Sequence[Mapping[str, Any]],
    repeats: int,
    keep: Callable[[Mapping[str, list[Figures]]], None],
) -> None:
    """Measure every cell by every contender, `repeats` rounds in alternating order, and hand what
    was found so far to `keep` after each cell.
    """
    found: dict[str, list[Figures]] = {name: [] for name in contenders}
    for at, cell in enumerate(cells):
        runs: dict[str, list[Figures]] = {name: [] for name in contenders}
        for turn in range(repeats):
            for name in [*contenders][:: 1 if turn % 2 else -1]:
                runs[name].append(contenders[name].ask(run=at))
        for name, contender in contenders.items():
            right = contender.ask(check=at)["right"]
            found[name].append({"cell": cell["name"], "runs": runs[name], "right": right})
            seconds = ", ".join(f"{run['whole']:.2f}" for run in runs[name])
            print(f"   {cell['name']} {name}: {seconds} {right}", flush=True)
        keep(found)
