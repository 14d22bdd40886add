"""A finding: what one check saw, how serious it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

NAMED_MAX = 3


class Verdict(StrEnum):
    """How serious a finding is.

    `PROBLEM`: Lakesplice won't work, or tables will differ from their source. `WARNING`: that may
    happen. `UNKNOWN`: it couldn't be checked, and `remedy` says what is missing.
    """

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check of an area saw. `remedy` says what to do; it is empty if all is well, or another
    finding has it.

    Neither contains a secret or a value of a row.
    """

    area: str
    check: str
    verdict: Verdict
    seen: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """Makes the findings of one area."""

    name: str

    def ok(self, check: str, seen: str) -> Finding:
        """All is well."""
        return Finding(self.name, check, Verdict.OK, seen)

    def unknown(self, check: str, seen: str, remedy: str = "") -> Finding:
        """It couldn't be checked."""
        return Finding(self.name, check, Verdict.UNKNOWN, seen, remedy)

    def warning(self, check: str, seen: str, remedy: str) -> Finding:
        """It may do harm."""
        return Finding(self.name, check, Verdict.WARNING, seen, remedy)

    def problem(self, check: str, seen: str, remedy: str) -> Finding:
        """It does harm."""
        return Finding(self.name, check, Verdict.PROBLEM, seen, remedy)


def first_names(names: Iterable[str]) -> str:
    """Return the first of some names in order, and how many more there are: `a, b, c, 2 more`."""
    known = sorted(names)
    more = len(known) - NAMED_MAX
    return ", ".join([*known[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])])


def counted(count: int, thing: str) -> str:
    """Return a number with its noun, such as `1 topic` or `1,200 topics`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def span(seconds: float) -> str:
    """Return a time in one unit, such as `3 days` or `90 min`."""
    for size, unit in ((86_400, "day"), (3_600, "hour")):
        if seconds >= 2 * size or seconds == size:
            number = round(seconds / size, 1)
            return f"{number:g} {unit}{'' if number == 1 else 's'}"
    return f"{round(seconds / 60)} min" if seconds >= 120 else f"{seconds:.3g} s"


def size(count: float) -> str:
    """Return a number of bytes in a fitting unit, such as `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB" if count < 1024 else f"{count / 1024:,.1f} TiB"


def worst(findings: Sequence[Finding]) -> Verdict:
    """Return the worst verdict of some findings; `OK` if there are none."""
    order = list(Verdict)
    return max((one.verdict for one in findings), key=order.index, default=Verdict.OK)
