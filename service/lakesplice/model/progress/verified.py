"""The result of comparing a table with its source's database, as it is stored and shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakesplice.model.moments import EpochMs


class ComparisonOutcome(StrEnum):
    """How a comparison ended.

    UNSETTLED: rows differ, but their changes may only not have arrived yet. NOT_COMPARED: nothing
    was compared; the report says why.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class LastResult:
    """The result of the last comparison of a table with a topic's database, and the time of its
    end.

    `folder` is the table's in the lake. `different` counts rows that were proven to differ,
    `unsettled` those for which it is unknown; `share` is the part of the rows that was compared.
    """

    folder: str
    topic: str
    ended_ms: EpochMs
    outcome: ComparisonOutcome
    reason: str = ""
    rows: int = 0
    different: int = 0
    unsettled: int = 0
    version: int = -1
    share: float = 1.0
