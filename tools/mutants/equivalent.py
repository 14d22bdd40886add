"""Mutants that somebody has found to change nothing: they are left out of a draw, with the reason.

`equivalent.toml` lists them by the lines that they change, so an entry ends with the code that it
is about. A draw says how many it left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mutants.sites import Mutant

LIST = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Change:
    """What a mutant does to the lines that it touches, without regard to white space."""

    path: str
    function: str
    was: str
    becomes: str

    @classmethod
    def of(cls, mutant: Mutant, source: bytes) -> Change:
        """Describe a mutant of a module by the module's source."""
        start = source.rfind(b"\n", 0, mutant.start) + 1
        end = source.find(b"\n", mutant.end)
        rest = source[mutant.end : len(source) if end < 0 else end]
        was = source[start : mutant.end] + rest
        becomes = source[start : mutant.start] + mutant.text.encode() + rest
        lines = _one_line(was.decode()), _one_line(becomes.decode())
        return cls(mutant.path, mutant.function, *lines)


def known_equivalents(path: Path = LIST) -> dict[Change, str]:
    """Return the listed changes and why each of them changes nothing."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
    return {
        Change(one["path"], one["function"], _one_line(one["was"]), _one_line(one["becomes"])): one[
            "why"
        ]
        for one in listed
    }


def without_equivalents(
    mutants: Iterable[Mutant], root: Path, known: dict[Change, str]
) -> tuple[list[Mutant], list[Mutant]]:
    """Divide mutants into those that may change something and those that are listed."""
    paths = {change.path for change in known}
    sources: dict[str, bytes] = {}
    kept, left_out = list[Mutant](), list[Mutant]()
    for mutant in mutants:
        if mutant.path in paths:
            source = sources.setdefault(mutant.path, (root / mutant.path).read_bytes())
            if Change.of(mutant, source) in known:
                left_out.append(mutant)
                continue
        kept.append(mutant)
    return kept, left_out


def _one_line(text: str) -> str:
    return " ".join(text.split())
