"""Purging: which deleted rows may leave a table for good.

A tombstone keeps changes that come late, or again, from bringing its row back. It may go once no
change below it can come any more but as a repetition, and the table remembers up to where that is:
at or below the purge floor a change for an unknown key does nothing. So the floor stays below the
position that every partition has reached, and below what an open dead letter may still bring.
A partition that never brought a change has reached nothing, and nothing is purged until it does.
Of a table's several topics each has a floor of its own, for the rows of its shard.

In a table fed by hand nothing comes late or again: its positions are its own versions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Mask
from lakesplice.model.change import at_or_below
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import (
    COLUMN_POSITIONS,
    IS_DELETED,
    POSITION_FILE,
    POSITION_OFFSET,
    SOURCE_TS,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.sources.shards import Shard, in_shard, shard_columns

STATE = (IS_DELETED, POSITION_FILE, POSITION_OFFSET, SOURCE_TS)
# The keys of rows that stay are held in memory, and their new places are written to one run.
ROWS_MAX = 1 << 22


@dataclass(frozen=True, slots=True)
class Bound:
    """What rows of a topic have to be below to be purged."""

    topic: str
    shard: Shard
    position: Position

    def holds(self, rows: pa.Table) -> Mask:
        """Mark the rows of the topic that are below."""
        below = at_or_below(rows, Position(self.position.file, self.position.offset - 1))
        return below & in_shard(rows, self.shard) if self.shard else below


def purge_bound(manifest: Manifest, topic: str | None = None) -> Position | None:
    """Return the position that the purge floor of a topic, None standing for the only one, must
    stay below; None where there is no such.
    """
    if manifest.upserts is not None:
        return None
    source = manifest.source if topic is None else manifest.sources.get(topic)
    if source is None:
        return BEFORE_ALL
    reached = [state.position for state in source.partitions.values()]
    letters = (ref for ref in manifest.dead_letters if ref.topic in ("", source.topic))
    return min([*reached, *(ref.position for ref in letters)], default=BEFORE_ALL)


def purge_bounds(manifest: Manifest) -> tuple[Bound, ...] | None:
    """Return the bound of each topic; None where rows are below all that may come."""
    if manifest.upserts is not None:
        return None
    found = []
    for topic, source in manifest.sources.items():
        bound = purge_bound(manifest, topic)
        assert bound is not None, "only a table that is fed by hand has none"
        found.append(Bound(topic, source.shard, bound))
    return tuple(found)


def purgeable(rows: pa.Table, bounds: Sequence[Bound] | None, before_us: int) -> Mask:
    """Mark rows, given by `state_of`, that are deleted, below the bound of their topic, and deleted
    before `before_us`, in microseconds since the epoch by the source's clock. One without a time
    stays, and one that isn't deleted but not yet known whole.
    """
    old = pc.less(rows[SOURCE_TS].cast(pa.int64()), before_us)
    gone = pc.fill_null(pc.and_(rows[IS_DELETED], old), False)
    if COLUMN_POSITIONS in rows.column_names:
        gone = pc.and_(gone, rows[COLUMN_POSITIONS].is_null())
    mask: Mask = np.asarray(gone.to_numpy(), np.bool_)
    if bounds is not None and mask.any():
        below = [bound.holds(rows) for bound in bounds]
        mask = mask & np.logical_or.reduce(below, axis=0) if below else np.zeros_like(mask)
    return mask


def state_of(manifest: Manifest) -> tuple[str, ...]:
    """Return the columns that say whether a row may go."""
    positions = manifest.schema.positions
    more = () if positions is None else (positions.name,)
    return (*STATE, *more, *shard_columns(manifest.sources.values()))


def plan_purge(
    manifest: Manifest, files: Collection[tuple[BaseFile, int]], ratio_min: float
) -> Sequence[BaseFile]:
    """Return the files to rewrite, of those given with their numbers of rows that may go.

    Files for which changes wait are left for later, and files in which less than `ratio_min` of the
    rows may go; the ones in which most may go come first, as many as have `ROWS_MAX` rows.
    """
    due = [
        (count / file.rows, file)
        for file, count in files
        if count and count >= ratio_min * file.rows and not manifest.waiting_in(file)
    ]
    chosen: list[BaseFile] = []
    rows = 0
    for _, file in sorted(due, key=lambda pair: (-pair[0], pair[1].path)):
        if chosen and rows + file.rows > ROWS_MAX:
            break
        chosen.append(file)
        rows += file.rows
    return chosen
