"""Divides located changes into deltas, in the order of their addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.model.names import GROUP, ROW

# Larger upserts write several deltas, each encoded, and later decoded, by a thread of its own; they
# are cut between base files where they can, since a compaction of some files reads only theirs.
CHANGES_PER_DELTA = 1 << 17
_GROUP_BITS = 23


def pieces(located: pa.Table) -> list[Callable[[], pa.Table]]:
    """Divide changes, in the order of their addresses, into deltas of `CHANGES_PER_DELTA` changes
    or more: between file groups, or within a file group that has many.
    """
    group, row = (located.column(name).to_numpy() for name in (GROUP, ROW))
    order = address_order(group, row)
    starts = np.flatnonzero(np.diff(group[order], prepend=-1)).tolist()
    cuts = [0]
    for start, end in pairwise([*starts, len(order)]):
        if start - cuts[-1] >= CHANGES_PER_DELTA:
            cuts.append(start)
        count = (end - start) // CHANGES_PER_DELTA
        if count > 1:
            cuts += [] if cuts[-1] == start else [start]
            cuts += [start + (end - start) * part // count for part in range(1, count)]
    return [
        partial(located.take, pa.array(order[start:end]))
        for start, end in pairwise([*cuts, len(order)])
    ]


def address_order(group: Integers, row: Integers) -> Integers:
    """Return the order by group and row; by a single number if both fit into one."""
    number = group - group.min()
    if number.max() >> _GROUP_BITS or row.max() >> (63 - _GROUP_BITS):
        return np.lexsort((row, group))
    return np.argsort(number << (63 - _GROUP_BITS) | row)
