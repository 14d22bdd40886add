"""Records that can't be read: where they are missing among those that are read.

Offsets without a record are those of transaction markers, which miss nothing, and of records that
the broker's compaction removed, which may have been changes; the difference doesn't show. What they
mean for the changes behind them says `planning/sources/met_gtids.py`. A dead letter isn't missing:
it is kept, and can be applied later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.sources.gaps import read_until


@dataclass(frozen=True, slots=True)
class MissingRecords:
    """Places where records are missing, counted up to each of the records taken together.

    `before` has per record the number of such places before it, and at its end the number in all.
    """

    before: Integers

    @classmethod
    def among(
        cls, offsets: Integers, state: PartitionState, gaps: Sequence[Gap] = ()
    ) -> MissingRecords:
        """Find them among records at these offsets, which a partition in this state takes next.

        Nothing is missing among records that were read before, but for those in `gaps`.
        """
        start = int(read_until(state))
        missing = np.zeros(len(offsets) + 1, np.bool_)
        if len(offsets):
            ends = np.concatenate(([state.next_offset], offsets[:-1] + 1))
            missing[:-1] = offsets > np.maximum(ends, start)
            for gap in gaps:
                last = start if gap.end is None else gap.end
                missing[:-1] |= np.minimum(offsets, last) > np.maximum(ends, gap.start)
        return cls(np.cumsum(missing))

    def before_changes(self, rows: Integers) -> Mask:
        """Mark the changes, whose records have these ascending indexes, before each of which
        records are missing behind the change before it.
        """
        found: Mask = np.diff(self.before[rows], prepend=0) > 0
        return found

    def behind(self, rows: Integers, limit: int) -> bool:
        """Whether records are missing between the last of these changes and the record `limit`."""
        return bool(self.before[limit] > (self.before[rows[-1]] if len(rows) else 0))
