"""What a connector sends again of the time before a TRUNCATE, once another server took over.

A fence is a position (`table/ingest/fence.py`), and each partition recognises another server by
itself (`epochs.py`). So a TRUNCATE that is sent again would stand in the new epoch, above rows that
were inserted after it and that other partitions haven't read again yet; and an older change that is
sent again would stand above the TRUNCATE's first place.

GTIDs say more. Numbers of one stream are in the order of commits, and metadata locks order a
TRUNCATE and all changes of its table. So in an epoch behind the TRUNCATE's, what has no higher
number is older, or is the TRUNCATE itself: it has no effect. Within one epoch positions say what is
older.

Of other streams those numbers are older that the TRUNCATE's partition had met before, or any
partition before the TRUNCATE's epoch. If another partition has met higher ones, the streams
alternate, and nothing is known of this TRUNCATE.

A stream may begin again from 1, as after RESET MASTER. So a change also has to be as old by its
time at the source. What isn't proven is judged by its position, as everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.moments import EpochUs
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState, SourceState
from lakesplice.planning.sources.gtids import GtidStreams, higher_numbers

_NO_TIME = int(np.iinfo(np.int64).max)
CLOCKS_US = 60_000_000
"""How far the clocks of two servers may differ. As long may a TRUNCATE wait for its lock: its time
is when it began.
"""


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE or DROP that a partition read: its position, GTID and time, and the GTIDs that the
    partition had met before.
    """

    position: Position
    stream: str
    number: int
    moment: EpochUs
    met: Mapping[str, int]


def sent_again(
    emptied: Emptied, file: Integers, offset: Integers, gtid: pa.StringArray, moments: pa.Array
) -> Mask:
    """Mark the changes that are from before a TRUNCATE, or the TRUNCATE itself, and stand above it.

    `file` and `offset` are their positions, `moments` their times at the source. It holds once an
    epoch began after the TRUNCATE (`is_behind`).
    """
    none = np.zeros(len(file), np.bool_)
    place, times = emptied.position, pc.fill_null(moments.cast(pa.int64()), _NO_TIME).to_numpy()
    older = above(file, offset, place.file, place.offset)
    older &= times <= emptied.moment + CLOCKS_US
    if not older.any():
        return none
    streams = GtidStreams.of(gtid, {})
    if streams.from_sets:
        return none
    highest = np.array([emptied.gtids.get(name, -1) for name in streams.names] + [-1], np.int64)
    return older & (streams.stream >= 0) & (streams.number <= highest[streams.stream])


def truncations(
    fences: Fences, file: Integers, met: Sequence[Mapping[str, int]]
) -> tuple[Truncation, ...]:
    """Return those TRUNCATEs and DROPs whose GTID and time are known. `file` has the upper halves
    of their positions, `met` the GTIDs that their partition had met before each.
    """
    streams = GtidStreams.of(fences.gtid, {})
    times = fences.source_ts.cast(pa.int64()).to_pylist()
    found = []
    for at, moment in enumerate(times):
        name = None if streams.from_sets else streams.at(at)
        if name is not None and moment is not None:
            position = Position(int(file[at]), int(fences.position_offset[at]))
            found.append(Truncation(position, *name, EpochUs(moment), met[at]))
    return tuple(found)


def emptied_after(
    source: SourceState, states: Mapping[int, PartitionState], read: Iterable[Truncation]
) -> Emptied | None:
    """Return what is known once these TRUNCATEs were read. `states` are those of partitions behind
    them. A repeat of one that is known changes nothing.
    """
    met: dict[str, int] = {}
    for state in {**source.partitions, **states}.values():
        met = higher_numbers(met, state.gtids)
    found = source.emptied
    for one in sorted(read, key=lambda truncation: truncation.position):
        known = {} if found is None else found.gtids
        if one.number <= known.get(one.stream, -1):
            continue
        older = _older(one, source)
        if any(older.get(name, -1) < number for name, number in met.items() if name != one.stream):
            continue
        moment = one.moment if found is None else max(one.moment, found.moment)
        position = one.position if found is None else max(one.position, found.position)
        found = Emptied(position, higher_numbers(known, older), moment)
    return found


def _older(read: Truncation, source: SourceState) -> dict[str, int]:
    """Return per stream the highest number that is older than a TRUNCATE, which it includes."""
    own = {read.stream: read.number}
    if any(read.number <= state.gtids.get(read.stream, -1) for state in source.partitions.values()):
        return own  # others may have been met since
    number = read.position.file >> FILE_BITS
    epoch = next((epoch for epoch in source.epochs if epoch.number == number), Epoch(0))
    return {**higher_numbers(epoch.before, read.met), **own}


def is_behind(emptied: Emptied, epochs: Iterable[Epoch]) -> bool:
    """Whether an epoch began after the one in which a TRUNCATE stands."""
    return any(epoch.number > _epoch(emptied) for epoch in epochs)


def _epoch(emptied: Emptied) -> int:
    return emptied.position.file >> FILE_BITS
