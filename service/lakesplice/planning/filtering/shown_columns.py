"""What a reader needs of rows and of changes to show some columns: less than a compaction needs.

A compaction encodes only values that a change set, so it needs the sets of changed columns, and the
digests that prove them. A reader of few columns takes all of them from the change's image, which is
always right. To replace a value by an equal one costs it less than to read digests: these are
random, and as large as a long number.

A row's position is needed only if a change may be at or below it. Changes are mostly above every
row of a row group, and then the bounds in the file's footer prove it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from lakesplice.model.change import above
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import Ordering, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.overlay import state_columns
from lakesplice.planning.rows.waiting_changes import OrderedChanges, integer_column

# Replacing the values of this many columns costs about what reading the digests costs
# (benchmarks/realtime_read.py).
IMAGES_MAX = 4
_PROOF = frozenset((BEFORE_DIGEST, ROW_DIGEST, CHANGED))
_POSITION = frozenset((POSITION_FILE, POSITION_OFFSET))


@dataclass(frozen=True)
class ReaderNeeds:
    """`state` are the columns of a row that decide what changes do to it, and `state_above` those
    that do if all changes are above it. `left_out` are the columns of changes that aren't needed.
    """

    state: tuple[str, ...]
    state_above: tuple[str, ...]
    left_out: frozenset[str]

    def state_for(self, part: OrderedChanges, highest: Position | None) -> tuple[str, ...]:
        """The columns of rows that are needed for changes, if no row is above `highest`."""
        return self.state_above if highest is not None and is_above(part, highest) else self.state


def reader_needs(schema: TableSchema, ordering: Ordering, columns: Collection[str]) -> ReaderNeeds:
    """Return what is needed to show `columns`, given by their stored names."""
    state = state_columns(schema, ordering)
    wanted = frozenset(columns)
    if schema.positions is not None:
        return ReaderNeeds(state, state, frozenset())
    left_out = frozenset([SOURCE_TS]) - wanted
    images = sum(name in wanted for name in schema.names if name not in schema.key)
    if ordering is not Ordering.COMMIT and images <= IMAGES_MAX and ROW_DIGEST not in wanted:
        state = tuple(name for name in state if name != ROW_DIGEST)
        left_out |= _PROOF
    return ReaderNeeds(state, tuple(n for n in state if n not in _POSITION), left_out)


def is_above(part: OrderedChanges, position: Position) -> bool:
    """Whether every change is above a position."""
    file = integer_column(part.changes, POSITION_FILE)[part.order]
    offset = integer_column(part.changes, POSITION_OFFSET)[part.order]
    return bool(np.all(above(file, offset, position.file, position.offset)))
