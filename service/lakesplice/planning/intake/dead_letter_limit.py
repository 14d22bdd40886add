"""Decides when too many of a table's records can't be decoded, so that the table has to be parked.

With a wrong setting at the connector every record becomes a dead letter. The table would pass all
of them, stay empty or unchanged, and look healthy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.model.change import Op
from lakesplice.model.parking import DeadLetterLimit
from lakesplice.planning.intake.insert_only import NOT_AN_INSERT
from lakesplice.planning.intake.refused_records import PARTIAL_INSERT

# Dead letters that follow from the table's own settings.
_WANTED = frozenset((NOT_AN_INSERT, PARTIAL_INSERT))
_DEAD = "dead:"
_CHANGES = tuple(op.name.lower() for op in Op)


@dataclass(frozen=True, slots=True)
class DeadLetterExcess:
    """How many of a batch's records are dead letters, and the most frequent reason."""

    dead: int
    records: int
    reason: str


def excess(
    counts: Mapping[str, int], open_dead_letters: int, limit: DeadLetterLimit, *, is_empty: bool
) -> DeadLetterExcess | None:
    """Return the excess if a batch has too many dead letters, else None.

    `counts` are the sums of those of `PartitionReport`. `open_dead_letters` are in the lake
    already. For a table that never got a change (`is_empty`) one is enough, if the batch has no
    change either.
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
