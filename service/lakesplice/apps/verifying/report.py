"""The result of the verification of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakesplice.model.moments import EpochMs
from lakesplice.model.progress.verified import ComparisonOutcome as ComparisonOutcome
from lakesplice.model.progress.verified import LastResult
from lakesplice.table.ingest.read_rows_commit import RepairedRows


class DifferenceKind(StrEnum):
    """How a row differs: the lake lacks it (MISSING), has it in excess (SURPLUS), or has other
    values.
    """

    CHANGED = "changed"
    MISSING = "missing"
    SURPLUS = "surplus"


@dataclass(frozen=True)
class Difference:
    """A row that was proven to differ, with its key as text.

    `columns` maps each column that differs, by the source's name, to its values at the source and
    in the lake. `note` is the known cause of such a difference, or empty.
    """

    key: Mapping[str, str]
    kind: DifferenceKind
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class TableReport:
    """The result for a table; `not_compared` maps the columns that were left out to the reasons.

    `unsettled` counts undecided rows; `unexamined` counts differing rows beyond the number that is
    examined one by one. `place` is the place in the binlog at which the source was read; `version`
    and `folder` are those of the lake's table. `repair` has the rows to write over those that
    differ, if that was requested; `not_repaired` says why they can't be, and `repaired` counts
    those that were.
    """

    table: str
    outcome: ComparisonOutcome
    reason: str = ""
    source: str = ""
    rows_at_source: int = 0
    rows_in_lake: int = 0
    differences: tuple[Difference, ...] = ()
    unsettled: int = 0
    unexamined: int = 0
    not_compared: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    version: int = -1
    method: str = "sha1"
    share: float = 1.0
    seconds: float = 0.0
    folder: str = ""
    repair: RepairedRows | None = None
    not_repaired: str = ""
    repaired: int = 0

    @property
    def differs_still(self) -> int:
        """The number of rows that were proven to differ and weren't repaired."""
        return max(0, len(self.differences) - self.repaired)

    @property
    def outcome_with_repair(self) -> ComparisonOutcome:
        """The outcome if repaired rows count as equal."""
        if self.outcome is not ComparisonOutcome.DIFFERENT or self.differs_still:
            return self.outcome
        unknown = self.unsettled or self.unexamined
        return ComparisonOutcome.UNSETTLED if unknown else ComparisonOutcome.EQUAL

    @property
    def exit_code(self) -> int:
        """The command's exit code: 0 equal, or all of it repaired; 1 different, 3 unsettled or not
        compared.
        """
        codes = {ComparisonOutcome.EQUAL: 0, ComparisonOutcome.DIFFERENT: 1}
        return codes.get(self.outcome_with_repair, 3)

    def result(self, topic: str, ended_ms: EpochMs) -> LastResult:
        """Return the result as the lake stores it: repaired rows count as equal."""
        return LastResult(
            folder=self.folder,
            topic=topic,
            ended_ms=ended_ms,
            outcome=self.outcome_with_repair,
            reason=self.reason,
            rows=self.rows_at_source,
            different=self.differs_still,
            unsettled=self.unsettled + self.unexamined,
            version=self.version,
            share=self.share,
        )

    @property
    def as_arguments(self) -> dict[str, Any]:
        """The result as it stands in the table's history, as a request's arguments. It names the
        columns that were left out, so that "equal" doesn't seem to say anything about them.
        """
        left_out = {"not_compared": ", ".join(self.not_compared)} if self.not_compared else {}
        return left_out | {
            "outcome": self.outcome.value,
            "source": self.source,
            "binlog": self.place,
            "method": self.method,
            "share": self.share,
            "rows": self.rows_at_source,
            "different": len(self.differences),
            "unsettled": self.unsettled + self.unexamined,
        }


def exit_code(reports: list[TableReport]) -> int:
    """Return the exit code for several tables: "different" takes precedence over "unsettled"."""
    codes = {report.exit_code for report in reports}
    return 1 if 1 in codes else 3 if 3 in codes else 0
