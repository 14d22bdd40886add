"""Which mutants are tried: drawn from a seed, newest code more often, every kind as often."""

from __future__ import annotations

import math
import random
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from mutants.sites import Mutant, mutants_of

PACKAGE = "service/lakesplice"
PLACES = (
    "planning",
    "table",
    "splicing",
    "formats",
    "model/progress",
    "storage/source",
    "apps/bootstrap",
    "apps/erasing",
    "apps/verifying",
    "apps/service/batching",
    "apps/service/upkeep",
    "apps/service/loop.py",
    "apps/service/shadow_feed.py",
    "apps/service/threads.py",
)
"""Where a fault would lose or damage data, below the package."""

NEWEST_WEIGHT = 4.0
"""How much more often a line of the newest commit is drawn than one of the first."""


def all_mutants(root: Path, places: Iterable[str] = PLACES) -> list[Mutant]:
    """Return every mutant of the modules in some places, in the order of their paths."""
    found: list[Mutant] = []
    for place in places:
        at = root / PACKAGE / place
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            found += mutants_of(path.relative_to(root).as_posix(), path.read_bytes())
    return found


def written_since(mutants: list[Mutant], commit: str, root: Path) -> list[Mutant]:
    """Return the mutants of lines that a later commit than this one wrote, or none yet.

    Raises `ValueError` if the history has no such commit.
    """
    later = LineAges(root).later_than(commit)
    return [mutant for mutant in mutants if later(mutant)]


def drawn(mutants: list[Mutant], count: int, seed: int, root: Path) -> list[Mutant]:
    """Return `count` mutants, no two at the same bytes of a module, in the order of the draw.

    The same seed, code and history draw the same ones, and of a larger count those of a smaller
    one come first: a run that is stopped has tried a fair sample.
    """
    ages = LineAges(root)
    kinds: dict[str, float] = defaultdict(float)
    weights = [1 + NEWEST_WEIGHT * ages.newness(mutant) for mutant in mutants]
    for mutant, weight in zip(mutants, weights, strict=True):
        kinds[mutant.kind] += weight
    chance = random.Random(seed)  # noqa: S311 - the same mutants every time
    # A draw without replacement: the least of exponential variables with these rates.
    keyed = [
        (-math.log(1 - chance.random()) * kinds[mutant.kind] / weight, at)
        for at, (mutant, weight) in enumerate(zip(mutants, weights, strict=True))
    ]
    chosen: dict[tuple[str, int, int], Mutant] = {}
    for _, at in sorted(keyed):
        if len(chosen) == count:
            break
        mutant = mutants[at]
        chosen.setdefault((mutant.path, mutant.start, mutant.end), mutant)
    return list(chosen.values())


# Without `--root`, git shortens the name of the first commit.
_BLAME = ("blame", "--root", "-l", "-s", "--")


class LineAges:
    """Lines' commits by `git blame`, as shares of the history: 0 the first, 1 the newest."""

    def __init__(self, root: Path) -> None:
        self._root = root
        commits = _git(root, "rev-list", "--reverse", "HEAD").split()
        self._newness = {name: at / len(commits) for at, name in enumerate(commits, 1)}
        self._lines: dict[str, list[str]] = {}

    def newness(self, mutant: Mutant) -> float:
        """How new the line is; one that is not committed is the newest."""
        return self._newness.get(self._commit_of(mutant), 1.0)

    def later_than(self, commit: str) -> Callable[[Mutant], bool]:
        """Return whether a commit that isn't in the history of `commit` wrote a mutant's line."""
        earlier = set(_git(self._root, "rev-list", commit).split())
        if not earlier:
            raise ValueError(f"there is no commit {commit}; name one of `git log`")
        return lambda mutant: self._commit_of(mutant) not in earlier

    def _commit_of(self, mutant: Mutant) -> str:
        """The commit that wrote the mutant's line; nothing where git knows no such line."""
        if mutant.path not in self._lines:
            blamed = _git(self._root, *_BLAME, mutant.path)
            self._lines[mutant.path] = [line.split()[0] for line in blamed.splitlines()]
        lines = self._lines[mutant.path]
        return lines[mutant.line - 1] if mutant.line <= len(lines) else ""


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing, where this is no repository."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""
