"""Purge: base files are rewritten without rows that were deleted long ago.

The remaining rows get new file groups, so a new index run has their addresses. As the newest run it
decides, and a row's older entry is never used again. So the run must not have former addresses of
rows that moved to another partition: a deleted row has an entry only if the index had the same one.
A change that waits for a row of a purged file would lose the row, so only files for which nothing
waits are purged, and the commit is valid only if that is still so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.formats.rowindex import Entries, encode_run
from lakesplice.model.address import GROUP_BITS, BaseFile, Segment
from lakesplice.model.arrays import KeyHashes, Mask, Unsigned
from lakesplice.model.manifest import Manifest, RunRef
from lakesplice.model.names import IS_DELETED, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.planning.rows.index_merge import concatenated, sorted_entries, take
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import locate
from lakesplice.planning.sources.shards import in_shard
from lakesplice.planning.upkeep.purging import Bound, plan_purge, purge_bounds, purgeable, state_of
from lakesplice.table.files.base_files import addresses, create_base_of, open_base, put_file
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.protocol.intents import Purge
from lakesplice.table.protocol.layout import base_path, partition_folder, run_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Store, watched


@dataclass(frozen=True, slots=True)
class PurgeRules:
    """Rows that were deleted before `before_us`, in microseconds since 1970, may be removed, from
    files of which they are at least the share `ratio_min`.
    """

    before_us: int
    ratio_min: float = 0.0


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
    files = find_purgeable(store, manifest, rules, progress=progress)
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
    store: Store, manifest: Manifest, rules: PurgeRules, *, progress: Progress = UNWATCHED
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
                masks = (
                    purgeable(reader.read(at, state), bounds, rules.before_us)
                    for at in range(len(reader.row_groups))
                )
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
    for path in paths:
        keeping = _Keeping(store, manifest, manifest.files[path], rules.before_us)
        group = entropy.bits(GROUP_BITS)
        new = keeping.write(group, entropy)
        if new is not None:
            outputs.append(new)
            pieces.append(keeping.entries(group, manifest))
        gone += keeping.gone
        for topic, highest in keeping.highest.items():
            floors[topic] = max(highest, floors.get(topic, highest))
    return Purge(
        generation=generation,
        inputs=tuple(paths),
        outputs=tuple(outputs),
        run=_run(store, pieces, entropy),
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


class _Keeping:
    """The remaining rows of one file; memory holds a mark and a key hash per row."""

    def __init__(self, store: Store, manifest: Manifest, file: BaseFile, before_us: int) -> None:
        self._store, self._file, self._schema = store, file, manifest.schema
        self._away: list[Mask] = []
        self._hashes: list[tuple[Unsigned, Unsigned]] = []
        self._deleted: list[Mask] = []
        self.highest: dict[str, Position] = {}
        bounds = purge_bounds(manifest)
        with open_base(store, file, manifest.schema) as reader:
            for at in range(len(reader.row_groups)):
                state = reader.read(at, state_of(manifest))
                self._away.append(purgeable(state, bounds, before_us))
                self._note(state.filter(pa.array(self._away[-1])), bounds or ())
        self.gone = sum(int(np.count_nonzero(mask)) for mask in self._away)

    def write(self, group: int, entropy: Entropy) -> NewFile | None:
        """Write the remaining rows as a new file group; None if there are none."""
        left = self._file.rows - self.gone
        if not left:
            return None
        partition = self._file.partition
        folder = partition_folder(self._schema.partitioned_by, partition)
        path, segment = base_path(group, 0, entropy, folder), Segment(group, left)
        rows = self._rows()
        return create_base_of(self._store, path, segment, rows, self._schema, partition)

    def entries(self, group: int, manifest: Manifest) -> Entries:
        """Return the addresses of the rows that were written, except for rows that had moved
        away.
        """
        keys = KeyHashes(*(np.concatenate(part) for part in zip(*self._hashes, strict=True)))
        count = len(keys.high)
        found = Entries(*keys, np.full(count, group, np.int64), np.arange(count))
        deleted = np.concatenate(self._deleted)
        if not self._schema.partitioned_by or not deleted.any():
            return found
        live = np.array(sorted(manifest.groups), np.int64)
        runs = RunCache().open_runs(self._store, manifest.runs)
        known = locate(runs, keys, live)
        remaining = np.flatnonzero(~np.concatenate(self._away))
        here = addresses(self._file, remaining)
        return take(found, ~deleted | ((known.group == here.group) & (known.row == here.row)))

    def _rows(self) -> Iterator[pa.Table]:
        with open_base(self._store, self._file, self._schema) as reader:
            for at, away in enumerate(self._away):
                table = reader.read(at)
                if away.any():
                    table = table.filter(pa.array(~away))
                self._hashes.append(key_hash(table, self._schema))
                deleted = table.column(IS_DELETED).combine_chunks()
                self._deleted.append(deleted.fill_null(False).to_numpy(zero_copy_only=False))
                yield table

    def _note(self, state: pa.Table, bounds: Sequence[Bound]) -> None:
        order = [(POSITION_FILE, "descending"), (POSITION_OFFSET, "descending")]
        rows = state.sort_by(order)
        for bound in bounds if rows.num_rows else ():
            own = np.flatnonzero(in_shard(rows, bound.shard))
            if len(own):
                file, offset = (rows[name][int(own[0])].as_py() for name, _ in order)
                position = Position(file, offset)
                self.highest[bound.topic] = max(position, self.highest.get(bound.topic, position))


def _run(store: Store, pieces: Sequence[Entries], entropy: Entropy) -> RunRef | None:
    if not pieces:
        return None
    entries, _ = sorted_entries(concatenated(pieces))
    if not len(entries.high):
        return None
    return RunRef(put_file(store, run_path(entropy), encode_run(*entries)), len(entries.high))
