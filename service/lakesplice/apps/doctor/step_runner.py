"""Steps of an examination, one after the other in a thread of their own, with a time limit.

The findings of earlier steps stay if a later one fails or hangs. A step that needs a failed one is
skipped, and a finding says so.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lakesplice.errors import LakespliceError
from lakesplice.planning.diagnosis.finding import Area, Finding, Verdict, span
from lakesplice.secrets import masked_text

# urllib3 nests causes in this form: `Max retries … (Caused by Kind("object: what went wrong"))`.
_INNERMOST = re.compile(r"\(Caused by [^(]+\(.*: ([^:]+?)['\"]?\)\)$")
# Attributes of our errors that say what went wrong and contain no value of a row.
_CAUSES = ("cause", "reason", "error", "status", "path")


@dataclass(frozen=True, slots=True)
class Step:
    """A check, or several related ones, by area and name. `needs` are the names of steps of the
    same track that must have succeeded. `ended` is called when the step will find nothing more,
    also if it failed or was skipped.
    """

    area: str
    check: str
    work: Callable[[], Iterable[Finding]]
    needs: tuple[str, ...] = ()
    ended: Callable[[], None] | None = None


class StepRunner:
    """Runs steps in a thread that doesn't keep the process from ending."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._found: list[list[Finding]] = []
        self._failed: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = time.monotonic()
        self._thread.start()

    def findings(self, seconds: float) -> list[Finding]:
        """Return what was found within `seconds` from the start; a step that hasn't ended by then
        is a finding, too. Blocks.
        """
        self._thread.join(max(0.0, self._started + seconds - time.monotonic()))
        done = list(self._found)
        found = [finding for findings in done for finding in findings]
        for at, step in enumerate(self._steps[len(done) :]):
            area = Area(step.area)
            if at == 0:
                found.append(
                    area.problem(
                        step.check,
                        f"no answer within {span(seconds)}",
                        "check that the server answers at all, or give more time with --timeout",
                    )
                )
            else:
                found.append(_left_out(step, "the one before it took too long"))
        return found

    def _run(self) -> None:
        for step in self._steps:
            self._found.append(self._done(step))
            if step.ended is not None:
                step.ended()

    def _done(self, step: Step) -> list[Finding]:
        lacking = [name for name in step.needs if name in self._failed]
        if lacking:
            self._failed.add(step.check)
            return [_left_out(step, f"{lacking[0]} has to be right first")]
        found: list[Finding] = []
        try:
            found.extend(step.work())
        except Exception as error:  # one check that fails must not hide the others
            found.append(failure(step.area, step.check, error))
        if any(one.verdict is Verdict.PROBLEM and one.check == step.check for one in found):
            self._failed.add(step.check)
        return found


def failure(area: str, check: str, error: Exception) -> Finding:
    """Return an error as a finding. A message that isn't ours may contain anything, so it is left
    out.
    """
    if not isinstance(error, LakespliceError):
        kind = type(error).__name__
        return Area(area).problem(
            check, f"the check itself failed ({kind})", "report it as a defect of Lakesplice"
        )
    what, _, remedy = error.message.partition("; ")
    causes = [short_cause(error.facts[name]) for name in _CAUSES if error.facts.get(name)]
    seen = masked_text(": ".join([what, *causes[:1]]))
    return Area(area).problem(check, seen, remedy or "see docs/operations.md")


def short_cause(cause: object) -> str:
    """Return the innermost cause from a library's error message, without its objects."""
    text = str(cause)
    inner = _INNERMOST.search(text)
    return inner[1] if inner else text


def _left_out(step: Step, why: str) -> Finding:
    return Area(step.area).unknown(step.check, f"not checked: {why}")
