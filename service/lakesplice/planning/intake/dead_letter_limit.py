"""When so many of a table's records can't be decoded that it must not continue.

A wrong setting at the connector makes a dead letter of every record. The table would move past all
of them and stay empty or unchanged, and look healthy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.model.change import Op
from lakesplice.planning.intake.insert_only import NOT_AN_INSERT
from lakesplice.planning.intake.refused_records import PARTIAL_INSERT

# Dead letters that the table's own settings ask for.
_WANTED = frozenset((NOT_AN_INSERT, PARTIAL_INSERT))
_DEAD = "dead:"
_CHANGES = tuple(op.name.lower() for op in Op)


@dataclass(frozen=True, slots=True)
class DeadLetterLimit:
    """The share of a batch's records of one table, 0 to 1, that may be dead letters, and how many
    there must be, those that are open already included. A share of 1 allows all.
    """

    share_max: float
    count_min: int = 1


NO_LIMIT = DeadLetterLimit(1.0)


@dataclass(frozen=True, slots=True)
class DeadLetterExcess:
    """How many of a batch's records are dead letters, and the commonest reason."""

    dead: int
    records: int
    reason: str


def excess(
    counts: Mapping[str, int], open_dead_letters: int, limit: DeadLetterLimit, *, is_empty: bool
) -> DeadLetterExcess | None:
    """Return what makes a batch have too many dead letters, or None if it hasn't.

    `counts` are those of `PartitionReport`, summed. `open_dead_letters` are in the lake already. Of
    a table that never took a change (`is_empty`) one is enough where the batch has no change.
    """
    reasons = Counter(
        {name.removeprefix(_DEAD): n for name, n in counts.items() if name.startswith(_DEAD)}
    )
    for wanted in _WANTED:
        reasons.pop(wanted, None)
    dead, changes = reasons.total(), sum(counts.get(op, 0) for op in _CHANGES)
    records = dead + changes
    if not dead or dead <= limit.share_max * records:
        return None
    if dead + open_dead_letters < limit.count_min and not (is_empty and not changes):
        return None
    return DeadLetterExcess(dead, records, reasons.most_common(1)[0][0])
