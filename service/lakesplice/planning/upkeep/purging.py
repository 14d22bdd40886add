"""Purging: which deleted rows may be removed from a table for good.

A tombstone prevents that late or repeated changes revive its row. It may be removed once every
change below it that can still come is a repetition; the table then records up to which position
that holds: at or below the purge floor a change of an unknown key has no effect. So the floor stays
below the position that every partition has reached, and below what an open dead letter may contain.
A partition that never had a change has reached no position, and nothing is purged until it has one.
If a table has several topics, each has its own floor, for the rows of its shard.

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
from lakesplice.model.moments import EpochUs
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
# The keys of rows that stay are in memory, and their new addresses are written to one run.
ROWS_MAX = 1 << 22


@dataclass(frozen=True, slots=True)
class PurgeBound:
    """The position that rows of a topic have to be below to be purged."""

    topic: str
    shard: Shard
    position: Position

    def holds(self, rows: pa.Table) -> Mask:
        """Mark the rows of the topic that are below it."""
        below = at_or_below(rows, Position(self.position.file, self.position.offset - 1))
        return below & in_shard(rows, self.shard) if self.shard else below


def purge_bound(manifest: Manifest, topic: str | None = None) -> Position | None:
    """Return the position that the purge floor of a topic, by default the only one, must stay
    below; None if there is none.
    """
    if manifest.is_fed_by_hand:
        return None
    source = manifest.source if topic is None else manifest.sources.get(topic)
    if source is None:
        return BEFORE_ALL
    reached = [state.position for state in source.partitions.values()]
    letters = (ref.position for ref in manifest.letters_of(source.topic))
    return min([*reached, *letters], default=BEFORE_ALL)


def purge_bounds(manifest: Manifest) -> tuple[PurgeBound, ...] | None:
    """Return the bound of each topic; None if all rows are below everything that may come."""
    if manifest.is_fed_by_hand:
        return None
    found = []
    for topic, source in manifest.sources.items():
        bound = purge_bound(manifest, topic)
        assert bound is not None, "only a table that is fed by hand has none"
        found.append(PurgeBound(topic, source.shard, bound))
    return tuple(found)


def purgeable(rows: pa.Table, bounds: Sequence[PurgeBound] | None, before_us: EpochUs) -> Mask:
    """Mark rows, with the columns of `state_of`, that are deleted, below the bound of their topic,
    and deleted before `before_us`, in microseconds since 1970 by the source's clock. A row without
    a time stays, and so does a row that isn't deleted but has unknown columns.
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
    """Return the columns that decide whether a row may be purged."""
    positions = manifest.schema.positions
    more = () if positions is None else (positions.name,)
    return (*STATE, *more, *shard_columns(manifest.sources.values()))


def plan_purge(
    manifest: Manifest, files: Collection[tuple[BaseFile, int]], ratio_min: float
) -> Sequence[BaseFile]:
    """Return the files to rewrite; `purgeable` says how many rows of each may be removed.

    Files for which changes wait are left for later, and so are files in which less than `ratio_min`
    of the rows may be removed. The files with the most such rows come first, as many as have
    `ROWS_MAX` rows.
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
