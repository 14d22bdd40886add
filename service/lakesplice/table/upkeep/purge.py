"""Purge: base files are rewritten without rows that were deleted long ago.

The remaining rows get new file groups, so a new index run has their addresses. As the newest run it
decides, and a row's older entry is never used again. So the run must not have former addresses of
rows that moved to another partition: a deleted row has an entry only if the index had the same one.
A change that waits for a row of a purged file would lose the row, so only files for which nothing
waits are purged, and the commit is valid only if that is still so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.address import GROUP_BITS, BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs, EpochUs, earlier, epoch_us
from lakesplice.model.names import POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.planning.sources.shards import in_shard
from lakesplice.planning.upkeep.purging import (
    PurgeBound,
    plan_purge,
    purge_bounds,
    purgeable,
    state_of,
)
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.index_runs import write_entries
from lakesplice.table.protocol.intents import Purge
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Store, watched
from lakesplice.table.upkeep.remaining_rows import RemainingRows


@dataclass(frozen=True, slots=True)
class PurgeRules:
    """Rows that were deleted before `before_us`, in microseconds since 1970, may be removed, from
    files of which they are at least the share `ratio_min`.
    """

    before_us: EpochUs
    ratio_min: float = 0.0

    @classmethod
    def older_than(cls, seconds: float, now: EpochMs, ratio_min: float = 0.0) -> PurgeRules:
        """Return the rules for rows that were deleted so many seconds ago and earlier."""
        return cls(epoch_us(earlier(now, seconds)), ratio_min)


def purge(
    store: Store,
    manifest: Manifest,
    rules: PurgeRules,
    planned_on: int,
    generation: int,
    entropy: Entropy,
    *,
    progress: Progress = UNWATCHED,
) -> Purge | None:
    """Write the result of a purge of some of the table's files; None if there is nothing to purge.

    `manifest` is that of the version `planned_on`. Blocks; errors as in `purge_files`.
    """
    progress.expect(sum(file.bytes for file in manifest.files.values()))
    files = find_purgeable(store, manifest, rules, progress)
    if not files:
        return None
    paths = [file.path for file in files]
    return purge_files(
        store=store,
        manifest=manifest,
        paths=paths,
        rules=rules,
        planned_on=planned_on,
        generation=generation,
        entropy=entropy,
    )


def find_purgeable(
    store: Store, manifest: Manifest, rules: PurgeRules, progress: Progress
) -> Sequence[BaseFile]:
    """Return the files to purge next; empty if there is nothing to purge.

    Blocks: reads the state of every row of files for which nothing waits.
    """
    bounds, state = purge_bounds(manifest), state_of(manifest)
    found = []
    files = (manifest.files[path] for path in sorted(manifest.files))
    for file in watched(files, progress):
        if not manifest.waiting_in(file):
            with open_base(store, file, manifest.schema) as reader:
                parts = reader.read_each(state)
                masks = (purgeable(rows, bounds, rules.before_us) for rows in parts)
                found.append((file, sum(int(np.count_nonzero(mask)) for mask in masks)))
    return plan_purge(manifest, found, rules.ratio_min)


def purge_files(
    store: Store,
    manifest: Manifest,
    paths: Sequence[str],
    rules: PurgeRules,
    planned_on: int,
    generation: int,
    entropy: Entropy,
) -> Purge:
    """Rewrite the files without the rows that may be removed, and write the index run of those that
    remain.

    `manifest` is that of the version `planned_on`. Memory holds a row group and 32 bytes per
    remaining row. Blocks; `CorruptFileError`, `StorageError`. Nothing names the new files until the
    intent is committed.
    """
    outputs, pieces, gone = [], [], 0
    floors: dict[str, Position] = {}
    bounds, state = purge_bounds(manifest), state_of(manifest)
    for path in paths:
        keeping = RemainingRows(
            store,
            manifest,
            manifest.files[path],
            state,
            lambda rows: purgeable(rows, bounds, rules.before_us),
        )
        group = entropy.bits(GROUP_BITS)
        new = keeping.write(group, entropy)
        if new is not None:
            outputs.append(new)
            pieces.append(keeping.entries(group, manifest))
        gone += keeping.left_out.num_rows
        for topic, highest in _highest(keeping.left_out, bounds or ()).items():
            floors[topic] = max(highest, floors.get(topic, highest))
    return Purge(
        generation=generation,
        inputs=tuple(paths),
        outputs=tuple(outputs),
        run=write_entries(store, pieces, entropy),
        floors=floors,
        planned_on=planned_on,
        counts={
            "files": len(paths),
            "rows": gone,
            "bytes_read": sum(manifest.files[path].bytes for path in paths),
            "bytes_written": sum(new.base.bytes for new in outputs),
        },
        schema_version=manifest.schema.version,
    )


def _highest(rows: pa.Table, bounds: Sequence[PurgeBound]) -> dict[str, Position]:
    """Return, for each topic with such rows, the highest position of its rows."""
    found: dict[str, Position] = {}
    order = [(POSITION_FILE, "descending"), (POSITION_OFFSET, "descending")]
    rows = rows.sort_by(order)
    for bound in bounds if rows.num_rows else ():
        own = np.flatnonzero(in_shard(rows, bound.shard))
        if len(own):
            file, offset = (rows[name][int(own[0])].as_py() for name, _ in order)
            found[bound.topic] = Position(file, offset)
    return found
