"""Snapshots of a whole table: once a snapshot is read completely, rows that it doesn't contain are
deleted.

A connector that lost its place in the binlog takes a new snapshot. All its rows have one position;
rows that vanished meanwhile are not in it, and no event reports them. So when every partition is
read to the snapshot's end, a fence just below its position (`table/ingest/fence.py`) deletes older
rows. In a history table one row ends those that the snapshot lacks. A partition is read to the end
with the snapshot's last row, or, once that row was read, with any change above its position, since
the whole snapshot comes before it. Without the last row a change proves nothing: after a connector
was killed while it took a blocking snapshot, it may go on without the rest.

This doesn't hold if rows of the snapshot may be missing: a record was skipped, or a dead letter is
open; or a partition had some of them before it noticed that another server had taken over, so that
they are in an earlier epoch, since such rows have no GTIDs. A snapshot that was started again has a
higher position and replaces the first one. If it has a lower one, as after a connector broke off a
blocking snapshot and went back, neither counts: what is above the first one's position may be from
before the second. A whole snapshot closes the gaps before it; in a history
table they stay, since versions are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lakesplice.model.arrays import Integers, Marks
from lakesplice.model.change import above
from lakesplice.model.position import BEFORE_ALL, FILE_BITS, Position, below_snapshot
from lakesplice.model.progress.source_state import PartitionState, SnapshotState, SourceState
from lakesplice.planning.sources.gaps import closed_by, may_hold
from lakesplice.planning.sources.position_order import not_above_high

# Marks of changes.
OF_NONE, OF_SNAPSHOT, LAST_OF_SNAPSHOT = 0, 1, 2
_FILE_MASK = (1 << FILE_BITS) - 1


@dataclass(frozen=True, slots=True)
class NewestSnapshot:
    """The newest snapshot of which a partition had rows.

    `ended`: its last row was among them; `renewing`: the partition had older changes; `whole`: none
    of its records is known to be missing; `fell`: rows of a snapshot at a lower position came after
    it, or it came after a higher position itself.
    """

    position: Position
    ended: bool = False
    renewing: bool = False
    whole: bool = True
    fell: bool = False

    def then(self, later: NewestSnapshot) -> NewestSnapshot:
        """Return the result of two runs of records of one partition, of which the other came
        later.
        """
        if later.position > self.position:
            return replace(later, whole=later.whole and not _is_same_place(self, later))
        if later.position < self.position:
            return replace(self, fell=True)
        return NewestSnapshot(
            self.position,
            self.ended or later.ended,
            self.renewing or later.renewing,
            self.whole and later.whole,
            self.fell or later.fell,
        )


def _is_same_place(one: NewestSnapshot, other: NewestSnapshot) -> bool:
    """Whether two snapshots are at one place in the binlog, but in different epochs."""
    return one.position != other.position and one.position.parts[1:] == other.position.parts[1:]


def snapshot_met(
    file: Integers, offset: Integers, mark: Marks, before: PartitionState
) -> NewestSnapshot | None:
    """Return the newest snapshot among changes of one partition, if there are rows of one.

    `before` is the partition's state before them; if it is lossy, the snapshot isn't whole.
    """
    rows = np.flatnonzero(mark != OF_NONE)
    if not len(rows):
        return None
    at = rows[np.lexsort((offset[rows], file[rows]))[-1]]
    newest = Position(int(file[at]), int(offset[at]))
    own = (file == newest.file) & (offset == newest.offset)
    older = above(newest.file, newest.offset, file, offset)
    below, _ = not_above_high(file, offset, before.position)
    # Its rows before the partition noticed another server, in an earlier epoch.
    former = (offset == newest.offset) & ((file ^ newest.file) & _FILE_MASK == 0) & ~own
    return NewestSnapshot(
        newest,
        ended=bool(np.any(own & (mark == LAST_OF_SNAPSHOT))),
        renewing=bool(older.any()) or BEFORE_ALL < before.position < newest,
        whole=not before.lossy and not bool(np.any(former & (mark != OF_NONE))),
        fell=bool(below[rows[rows >= np.flatnonzero(own & (mark != OF_NONE))[0]]].any()),
    )


def is_lossy(before: bool, lost: int, mark: Marks) -> bool:
    """Whether records are missing since the last change that isn't from a snapshot.

    `lost` is how many became dead letters, besides the changes that `mark` has.
    """
    return lost > 0 or (before and not (mark == OF_NONE).any())


def snapshot_after(
    source: SourceState,
    states: Mapping[int, PartitionState],
    met: Mapping[int, NewestSnapshot],
    *,
    open_dead_letters: bool = False,
    keeps_versions: bool = False,
) -> tuple[SourceState, Position | None]:
    """Return the source with its newest snapshot, and the position of one that is read completely;
    None without one.

    The source's partitions are as before a batch, `states` are those of all after it; `met` are the
    snapshots that some of them met. None is complete while dead letters are open: each of them may
    be one of its rows. One below the fence is ignored, unless the table `keeps_versions`: there it
    ends rows before a later TRUNCATE does.
    """
    snapshot = _newest(source, met, BEFORE_ALL if keeps_versions else source.fence)
    if snapshot is None:
        return source, None
    ended = {at for at, seen in met.items() if seen.ended and seen.position == snapshot.position}
    above = {at for at, state in states.items() if state.position > snapshot.position}
    here = (seen for seen in met.values() if seen.position == snapshot.position)
    lossy = (
        open_dead_letters
        or any(not seen.whole for seen in here)
        or any(_is_left(snapshot.position, at, source, seen) for at, seen in met.items())
        or any(state.lossy for at, state in states.items() if at not in snapshot.passed)
        or any(may_hold(gap, snapshot.position) for gap in source.gaps)
        or _is_in_other_epoch(snapshot.position, source, met)
    )
    lossy = snapshot.lossy or lossy
    later = above if ended or snapshot.passed or lossy else set()
    snapshot = replace(snapshot, passed=snapshot.passed | ended | later, lossy=lossy)
    if not snapshot.passed >= states.keys():
        return replace(source, snapshot=snapshot), None
    done = replace(source, snapshot=None)
    return done, None if snapshot.lossy else snapshot.position


def _is_in_other_epoch(
    snapshot: Position, source: SourceState, met: Mapping[int, NewestSnapshot]
) -> bool:
    """Whether a partition had rows at the snapshot's place in the binlog, but in another epoch, now
    or as the last ones before.
    """
    places = {seen.position for seen in met.values()}
    places |= {state.position for state in source.partitions.values()}
    places |= set() if source.snapshot is None else {source.snapshot.position}
    return any(at.parts[1:] == snapshot.parts[1:] for at in places - {snapshot})


def _is_left(snapshot: Position, at: int, source: SourceState, seen: NewestSnapshot) -> bool:
    """Whether a partition shows that the connector left a snapshot and went back."""
    before = source.partitions.get(at)
    was_there = before is not None and before.position >= snapshot
    return seen.fell and (was_there or seen.position == snapshot)


def fenced_at(source: SourceState, snapshot: Position) -> SourceState:
    """Return the source with the fence below a snapshot that is read completely, which closes the
    gaps before it.
    """
    fence = max(source.fence, below_snapshot(snapshot))
    gaps = tuple(gap for gap in source.gaps if not closed_by(gap, snapshot))
    return replace(source, fence=fence, gaps=gaps)


def _newest(
    source: SourceState, met: Mapping[int, NewestSnapshot], floor: Position
) -> SnapshotState | None:
    renewing = [seen.position for seen in met.values() if seen.renewing]
    found = max(renewing, default=BEFORE_ALL)
    now = source.snapshot
    if found <= (now.position if now else BEFORE_ALL) or below_snapshot(found) <= floor:
        return now
    return SnapshotState(found)
