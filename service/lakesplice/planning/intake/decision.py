"""Decides the fate of each change of a batch. Both `append`, which writes the result, and
`explain-key`, which shows it, use this decision.

    a change at or below the fence   is dropped
    a change of an erased row        is dropped, unless it is above the position of the erasure
    several changes of one key       become one; in an insert-only table all but the first are
                                     duplicates
    a change of a key in the index   changes that row; it has no effect if the row is newer
    a change of another key          becomes a new row, unless it is at or below the purge floor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from lakesplice.formats.rowindex.run import Run
from lakesplice.model.arrays import Integers, KeyHash, KeyHashes, Mask
from lakesplice.model.change import at_or_below
from lakesplice.model.names import KEY_HIGH, KEY_LOW, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.erased_keys import ErasedKeys
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.insert_only import first_change_per_key
from lakesplice.planning.keys.erased_changes import erased_changes
from lakesplice.planning.rows.fold import fold
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.planning.rows.partial_fold import without_values_below


@dataclass(frozen=True)
class DecisionRules:
    """What decides about changes: the table's schema and live file groups, whether it is
    insert-only, and the purge floor and the fence of the topic that the changes come from.
    `erased` are the table's erased keys, None if no change can be of one of them.
    """

    schema: TableSchema
    groups: Integers
    insert_only: bool = False
    floor: Position = BEFORE_ALL
    fence: Position = BEFORE_ALL
    erased: ErasedKeys | None = None


@dataclass(frozen=True)
class Decision:
    """The result: `folded` has one change per key, in the order of the keys' hashes.

    `known` marks changes of rows that the table has, whose addresses are `group` and `row`; `new`
    marks changes that become rows; the others are at or below the purge floor. `below_fence` counts
    the changes at or below the fence, `erased` those of erased rows, `above_fence` the others.
    """

    folded: pa.Table
    group: Integers
    row: Integers
    known: Mask
    new: Mask
    below_fence: int
    above_fence: int
    erased: int = 0


class Fate(StrEnum):
    """What the decision is for one change."""

    BELOW_FENCE = "below-fence"
    ERASED = "erased"
    FOLDED = "folded"
    DUPLICATE = "duplicate"
    BELOW_FLOOR = "below-purge-floor"
    INSERTED = "inserted"
    OF_KNOWN_ROW = "of-known-row"


def decide(
    changes: pa.Table, rules: DecisionRules, open_runs: Callable[[], Sequence[Run]]
) -> Decision:
    """Decide about changes in `changes_schema(rules.schema)`, in any order.

    `open_runs` returns the runs of the row index, oldest first; it is called only if a change is
    above the fence. Raises `CorruptFileError` for a damaged run, and what `open_runs` raises.
    """
    above_fence = without_values_below(_above(changes, rules.fence), rules.schema, rules.fence)
    below_fence = changes.num_rows - above_fence.num_rows
    above_fence, erased = _not_erased(above_fence, rules.erased)
    if not above_fence.num_rows:
        nothing, none = np.empty(0, np.int64), np.empty(0, np.bool_)
        return Decision(
            folded=above_fence,
            group=nothing,
            row=nothing,
            known=none,
            new=none,
            below_fence=below_fence,
            above_fence=0,
            erased=erased,
        )
    folded = (
        first_change_per_key(above_fence) if rules.insert_only else fold(above_fence, rules.schema)
    )
    keys = KeyHashes(folded[KEY_HIGH].to_numpy(), folded[KEY_LOW].to_numpy())
    group, row = locate(open_runs(), keys, rules.groups)
    known, below = group != UNKNOWN, at_or_below(folded, rules.floor)
    new = ~known & ~below
    if rules.schema.partitioned_by:
        # The index may still have an older address of a purged row, where the row no longer is.
        known &= ~below
    return Decision(
        folded=folded,
        group=group,
        row=row,
        known=known,
        new=new,
        below_fence=below_fence,
        above_fence=above_fence.num_rows,
        erased=erased,
    )


def fates(
    changes: pa.Table, decision: Decision, rules: DecisionRules
) -> list[tuple[Fate, Position]]:
    """Return the fate of each change, and a position: the fence or floor that it is below, the
    change that it was folded into or duplicates, else its own. Of an erased row's changes only that
    is known.

    If several changes have the position of the one that stands for their key, the first counts as
    it.
    """
    outcome = _outcomes(decision, rules)
    fenced = at_or_below(changes, rules.fence)
    erased = ~fenced & _erased(changes, rules.erased)
    seen: set[KeyHash] = set()
    decided = []
    for key, position, is_below_fence, is_erased in zip(
        _keys(changes), _positions(changes), fenced.tolist(), erased.tolist(), strict=True
    ):
        if is_below_fence:
            decided.append((Fate.BELOW_FENCE, rules.fence))
            continue
        if is_erased:
            decided.append((Fate.ERASED, position))
            continue
        fate, winner = outcome[key]
        if position == winner and key not in seen:
            seen.add(key)
            winner = rules.floor if fate is Fate.BELOW_FLOOR else winner
        elif fate is not Fate.DUPLICATE:
            fate = Fate.DUPLICATE if rules.insert_only else Fate.FOLDED
        decided.append((fate, winner))
    return decided


def _outcomes(decision: Decision, rules: DecisionRules) -> dict[KeyHash, tuple[Fate, Position]]:
    """The fate of each key's folded change, with its position."""
    known = Fate.DUPLICATE if rules.insert_only else Fate.OF_KNOWN_ROW
    folded = decision.folded
    marks = zip(decision.known.tolist(), decision.new.tolist(), strict=True)
    return {
        key: (known if is_known else Fate.INSERTED if is_new else Fate.BELOW_FLOOR, position)
        for key, position, (is_known, is_new) in zip(
            _keys(folded), _positions(folded), marks, strict=True
        )
    }


def _keys(changes: pa.Table) -> list[KeyHash]:
    columns = (changes[name].to_pylist() for name in (KEY_HIGH, KEY_LOW))
    return [KeyHash(*halves) for halves in zip(*columns, strict=True)]


def _positions(changes: pa.Table) -> list[Position]:
    columns = (changes[name].to_pylist() for name in (POSITION_FILE, POSITION_OFFSET))
    return [Position(*pair) for pair in zip(*columns, strict=True)]


def _above(changes: pa.Table, fence: Position) -> pa.Table:
    """Return the changes above a position."""
    if fence == BEFORE_ALL:
        return changes
    at_or_below_it = at_or_below(changes, fence)
    return changes.filter(pa.array(~at_or_below_it)) if at_or_below_it.any() else changes


def _erased(changes: pa.Table, erased: ErasedKeys | None) -> Mask:
    return np.zeros(len(changes), np.bool_) if erased is None else erased_changes(changes, erased)


def _not_erased(changes: pa.Table, erased: ErasedKeys | None) -> tuple[pa.Table, int]:
    """Return the changes without those of erased rows, and the number of these."""
    gone = _erased(changes, erased)
    if not gone.any():
        return changes, 0
    return changes.filter(pa.array(~gone)), int(np.count_nonzero(gone))
