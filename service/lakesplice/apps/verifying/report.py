"""What a verification found of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a comparison ended.

    UNSETTLED: rows differ of which it isn't known whether their changes are only on their way.
    NOT_COMPARED: nothing was compared; the report says why.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"
    NOT_COMPARED = "not compared"


class Kind(StrEnum):
    """How a row differs: MISSING and SURPLUS are of the lake."""

    CHANGED = "changed"
    MISSING = "missing"
    SURPLUS = "surplus"


@dataclass(frozen=True)
class Difference:
    """A row that was proven to differ, by its key's texts.

    `columns` are those that differ, by the source's names, each with its values at the source and
    in the lake. `note` says what is known to cause such a difference, empty if nothing is.
    """

    key: Mapping[str, str]
    kind: Kind
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class TableReport:
    """What was found of a table: `not_compared` has the columns that were left out, and why.

    `unsettled` counts rows, `unexamined` those that differ beyond the number that is looked at
    singly. `place` is where in the binlog the comparison stands, `version` and `folder` are the
    lake's.
    """

    table: str
    outcome: Outcome
    reason: str = ""
    source: str = ""
    rows_at_source: int = 0
    rows_in_lake: int = 0
    differences: tuple[Difference, ...] = ()
    unsettled: int = 0
    unexamined: int = 0
    not_compared: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    place: str = ""
    version: int = -1
    method: str = "md5"
    share: float = 1.0
    seconds: float = 0.0
    folder: str = ""

    @property
    def exit_code(self) -> int:
        """0 equal, 1 different, 3 unsettled or not compared."""
        return {Outcome.EQUAL: 0, Outcome.DIFFERENT: 1}.get(self.outcome, 3)

    @property
    def as_arguments(self) -> dict[str, Any]:
        """What the table's history says of it, as a request's arguments."""
        return {
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
    """Return the code for several tables: a difference counts more than what isn't settled."""
    codes = {report.exit_code for report in reports}
    return 1 if 1 in codes else 3 if 3 in codes else 0
