"""What becomes of the changes of a batch, decided once: `append` writes it, `explain-key` tells it.

below the fence           dropped
of one key                folded into one change; where rows never change, all but the first
                          are duplicates
of a key in the index     a change of its row, which has an effect unless the row is newer
of a key that isn't       a new row, unless it is at or below the purge floor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from lakesplice.formats.rowindex.run import Run
from lakesplice.model.arrays import Integers, KeyHashes, Mask
from lakesplice.model.change import at_or_below
from lakesplice.model.names import KEY_HIGH, KEY_LOW, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.insert_only import first_of_each
from lakesplice.planning.rows.fold import fold
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.planning.rows.partial_fold import raised


@dataclass(frozen=True)
class DecisionRules:
    """What a table says of changes: its schema and live file groups, whether its rows never change,
    and of the topic whose changes these are the purge floor and the fence.
    """

    schema: TableSchema
    groups: Integers
    insert_only: bool = False
    floor: Position = BEFORE_ALL
    fence: Position = BEFORE_ALL


@dataclass(frozen=True)
class Decision:
    """What becomes of changes: `folded` has one change per key, in the order of the keys' hashes.

    `known` marks those of rows that the table has, which are at `group` and `row`, and `new` those
    that become rows; the others are at or below the purge floor. `late` counts the changes at or
    below the fence, `living` the others.
    """

    folded: pa.Table
    group: Integers
    row: Integers
    known: Mask
    new: Mask
    late: int
    living: int


class Fate(StrEnum):
    """What a decision made of a change."""

    BELOW_FENCE = "below-fence"
    FOLDED = "folded"
    DUPLICATE = "duplicate"
    BELOW_FLOOR = "below-purge-floor"
    INSERTED = "inserted"
    OF_KNOWN_ROW = "of-known-row"


def decide(
    changes: pa.Table, rules: DecisionRules, open_runs: Callable[[], Sequence[Run]]
) -> Decision:
    """Decide about changes in `changes_schema(rules.schema)`, in any order.

    `open_runs` is called if any is above the fence, and returns the runs of the row index, oldest
    first. Raises `CorruptFileError` for a damaged run, and what `open_runs` raises.
    """
    living = raised(_above(changes, rules.fence), rules.schema, rules.fence)
    late = changes.num_rows - living.num_rows
    if not living.num_rows:
        nothing, none = np.empty(0, np.int64), np.empty(0, np.bool_)
        return Decision(living, nothing, nothing, none, none, late=late, living=0)
    folded = first_of_each(living) if rules.insert_only else fold(living, rules.schema)
    keys = KeyHashes(folded[KEY_HIGH].to_numpy(), folded[KEY_LOW].to_numpy())
    group, row = locate(open_runs(), keys, rules.groups)
    known, below = group != UNKNOWN, at_or_below(folded, rules.floor)
    new = ~known & ~below
    if rules.schema.partitioned_by:
        # The index may still have an older place of a purged row, where the row no longer is.
        known &= ~below
    return Decision(folded, group, row, known, new, late=late, living=living.num_rows)


def fates(
    changes: pa.Table, decision: Decision, rules: DecisionRules
) -> list[tuple[Fate, Position]]:
    """Return what a decision made of each of its changes, and a position: of the fence or the floor
    that it is below, of the change that it was folded into or is a duplicate of, else its own.

    Of changes at the position of the one that stands for their key, the first given is that one.
    """
    outcome = _outcomes(decision, rules)
    fenced = at_or_below(changes, rules.fence).tolist()
    seen: set[tuple[int, int]] = set()
    found = []
    for key, position, late in zip(_keys(changes), _positions(changes), fenced, strict=True):
        if late:
            found.append((Fate.BELOW_FENCE, rules.fence))
            continue
        fate, winner = outcome[key]
        if position == winner and key not in seen:
            seen.add(key)
            winner = rules.floor if fate is Fate.BELOW_FLOOR else winner
        elif fate is not Fate.DUPLICATE:
            fate = Fate.DUPLICATE if rules.insert_only else Fate.FOLDED
        found.append((fate, winner))
    return found


def _outcomes(
    decision: Decision, rules: DecisionRules
) -> dict[tuple[int, int], tuple[Fate, Position]]:
    """What becomes of each key's one change, with its position."""
    known = Fate.DUPLICATE if rules.insert_only else Fate.OF_KNOWN_ROW
    folded = decision.folded
    marks = zip(decision.known.tolist(), decision.new.tolist(), strict=True)
    return {
        key: (known if is_known else Fate.INSERTED if is_new else Fate.BELOW_FLOOR, position)
        for key, position, (is_known, is_new) in zip(
            _keys(folded), _positions(folded), marks, strict=True
        )
    }


def _keys(changes: pa.Table) -> list[tuple[int, int]]:
    columns = (changes[name].to_pylist() for name in (KEY_HIGH, KEY_LOW))
    return list(zip(*columns, strict=True))


def _positions(changes: pa.Table) -> list[Position]:
    columns = (changes[name].to_pylist() for name in (POSITION_FILE, POSITION_OFFSET))
    return [Position(*pair) for pair in zip(*columns, strict=True)]


def _above(changes: pa.Table, fence: Position) -> pa.Table:
    """Return the changes that stand above a position."""
    if fence == BEFORE_ALL:
        return changes
    low = at_or_below(changes, fence)
    return changes.filter(pa.array(~low)) if low.any() else changes
