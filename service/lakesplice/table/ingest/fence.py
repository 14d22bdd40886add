"""Fences: no row of a source lives at or below its fence, the position of a TRUNCATE or a DROP.

The commit that raises the fence in the manifest also adds deltas that mark the rows at or below it
as deleted, at the fence's position. So both views lose these rows as they lose other deleted rows,
and rows above the fence stay. The source doesn't say when it deleted the rows, so for a purge they
count as deleted now. A change that comes later, at or below the fence, is dropped before anything
is written (`table/ingest/append.py`).

Rows of history tables are never deleted: one row ends their versions
(`planning/versions/ends_of_all_rows.py`). The intake makes it of a record in the table's own topic,
`with_ends` of DROPs that a topic of schema changes reports, `with_end_of_snapshot` of a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op, above, at_or_below, at_position, delta_schema
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.moments import EpochMs, EpochUs
from lakesplice.model.names import (
    GROUP,
    HISTORY_END,
    HISTORY_ENDS,
    HISTORY_OP,
    IS_DELETED,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
    SOURCE_TS,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.partial_fold import partial_rows
from lakesplice.planning.rows.waiting_changes import OrderedChanges, WaitingChanges
from lakesplice.planning.sources.shards import in_shard, shard_columns
from lakesplice.planning.versions.ends_of_all_rows import end_of_snapshot, ends_of_all_rows
from lakesplice.table.files.base_files import addresses, open_base, read_rows
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.ingest.append import AppendPlan, append, write_delta
from lakesplice.table.protocol.intents import Ingest
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store

ROWS_PER_DELTA = 1 << 20
_NO_VERSIONS = ("d", *HISTORY_ENDS)


def with_fence(
    store: Store, manifest: Manifest, intent: Ingest, now_ms: EpochMs, entropy: Entropy
) -> Ingest:
    """Return the ingest with deltas that delete the rows at or below its fence, its own new rows
    included. Return it unchanged unless it raises the fence of `manifest`, on which it will be
    committed.

    Blocks: reads keys, positions and waiting changes of every base file. Raises as `scan` does.
    """
    to = intent.source_to
    before = manifest.sources.get(to.topic)
    if before is None or to.fence <= before.fence:
        return intent
    deltas, counts = fence_deltas(
        store=store,
        manifest=manifest,
        source=to,
        files=intent.files,
        deltas=intent.deltas,
        now_ms=now_ms,
        entropy=entropy,
    )
    groups = frozenset(group for delta in deltas for group in delta.waiting)
    return replace(
        intent,
        deltas=(*intent.deltas, *deltas),
        addressed_groups=intent.addressed_groups | groups,
        counts={**intent.counts, **counts},
    )


def fence_deltas(
    store: Store,
    manifest: Manifest,
    source: SourceState,
    files: Sequence[NewFile],
    deltas: Sequence[DeltaRef],
    now_ms: EpochMs,
    entropy: Entropy,
) -> tuple[tuple[DeltaRef, ...], dict[str, int]]:
    """Return deltas that delete the rows of `source` at or below its fence, and their counts for
    the commit.

    The rows are those of `manifest` and of the new `files` and `deltas`. `now_ms`, in milliseconds
    since 1970, is when they count as deleted. Blocks and raises as `with_fence`. A history table
    gets none: a row says where its versions end (`planning/versions/ends_of_all_rows.py`).
    """
    if manifest.schema.keeps_versions:
        return (), {}
    known = {**manifest.files, **{new.base.path: new.base for new in files}}
    after = replace(manifest, files=known, deltas=(*manifest.deltas, *deltas))
    fixed_values = {
        OP: int(Op.DELETE),
        POSITION_FILE: source.fence.file,
        POSITION_OFFSET: source.fence.offset,
        SOURCE_TS: now_ms * 1000,
    }
    written = tuple(_deletions(store, after, source, fixed_values, entropy))
    return written, {"fenced": sum(delta.rows for delta in written)}


def lives_below(store: Store, manifest: Manifest, source: SourceState) -> bool:
    """Return whether a row of `source` lives at or below its fence; in a history table whether it
    has a version there, perhaps an ended one, above the fence before. Blocks; raises as
    `with_fence`.
    """
    if manifest.schema.keeps_versions:
        return _has_versions_below(store, manifest, source)
    files = (manifest.files[path] for path in sorted(manifest.files))
    return any(True for file in files for _ in _dead_of(store, manifest, file, source))


def _deletions(
    store: Store,
    manifest: Manifest,
    source: SourceState,
    fixed_values: Mapping[str, int],
    entropy: Entropy,
) -> Iterator[DeltaRef]:
    gathered: list[pa.Table] = []
    for path in sorted(manifest.files):
        gathered += _dead_of(store, manifest, manifest.files[path], source)
        if sum(part.num_rows for part in gathered) >= ROWS_PER_DELTA:
            yield _delta(store, manifest, gathered, fixed_values, entropy)
            gathered = []
    if gathered:
        yield _delta(store, manifest, gathered, fixed_values, entropy)


def _delta(
    store: Store,
    manifest: Manifest,
    dead: list[pa.Table],
    fixed_values: Mapping[str, int],
    entropy: Entropy,
) -> DeltaRef:
    rows = pa.concat_tables(dead).sort_by([(GROUP, "ascending"), (ROW, "ascending")])
    columns = []
    for field in delta_schema(manifest.schema):
        if field.name in rows.column_names:
            columns.append(rows.column(field.name))
        elif field.name in fixed_values:
            columns.append(
                pa.repeat(pa.scalar(fixed_values[field.name], field.type), rows.num_rows)
            )
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    located = pa.table(columns, schema=delta_schema(manifest.schema))
    return write_delta(store, located, manifest.schema, entropy)


def _dead_of(
    store: Store, manifest: Manifest, file: BaseFile, source: SourceState
) -> Iterator[pa.Table]:
    """Yield the addresses and keys of the source's rows in a file that live at or below its
    fence.
    """
    schema = manifest.schema
    groups = {segment.group for segment in file.segments}
    waiting = WaitingChanges.of(read_waiting(store, manifest.deltas, schema, groups, columns=()))
    placed = waiting.for_file(file.segments, file.path)
    positions = () if schema.positions is None else (schema.positions.name,)
    shard = list(shard_columns((source,)))
    names = (*schema.key, POSITION_FILE, POSITION_OFFSET, IS_DELETED, *positions)
    with open_base(store, file, schema) as reader:
        for row_group, (first, last) in enumerate(reader.row_groups):
            rows = reader.read(row_group, names)
            part = placed.within(first, last)
            dead = np.union1d(_dead_rows(rows, part, source.fence), _of_several(rows, part, schema))
            dead = dead[in_shard(rows.select(shard), source.shard)[dead]] if shard else dead
            if len(dead):
                group, row = addresses(file, first + dead)
                keys = rows.select(list(schema.key)).take(pa.array(dead))
                yield keys.append_column(GROUP, pa.array(group)).append_column(ROW, pa.array(row))


def _of_several(rows: pa.Table, waiting: OrderedChanges, schema: TableSchema) -> Integers:
    """Return the rows, by their place, whose values come from several changes. Whatever their
    position is, some of their values may be from before the fence.
    """
    partial = partial_rows(waiting.changes, schema)[waiting.order]
    of_rows = np.flatnonzero(partial_rows(rows, schema))
    return np.union1d(of_rows, waiting.rows[partial]).astype(np.int64)


def _dead_rows(rows: pa.Table, waiting: OrderedChanges, fence: Position) -> Integers:
    """Return the rows, by their place, that live at or below the fence, waiting changes
    included.
    """
    file, offset = (rows.column(n).to_numpy().copy() for n in (POSITION_FILE, POSITION_OFFSET))
    gone = rows.column(IS_DELETED).to_numpy().copy()
    changes = (
        waiting.changes.column(name).to_numpy()[waiting.order]
        for name in (POSITION_FILE, POSITION_OFFSET, OP)
    )
    to_file, to_offset, op = changes
    own = waiting.rows
    newer = above(to_file, to_offset, file[own], offset[own])
    # The changes of a row are in ascending order, so the newest one is assigned last.
    own = own[newer]
    file[own], offset[own] = to_file[newer], to_offset[newer]
    gone[own] = op[newer] == Op.DELETE
    low = ~above(file, offset, fence.file, fence.offset)
    dead: Integers = np.flatnonzero(low & ~gone)
    return dead


def with_ends(
    store: Store, manifest: Manifest, intent: Ingest, fences: Sequence[Fence], entropy: Entropy
) -> Ingest:
    """Return an ingest of a history table together with the rows that end all rows of its source at
    fences. Blocks; raises as `append`.
    """
    source, ends = intent.source_to, Fences.of(dict(enumerate(fences)))
    changes = ends_of_all_rows(ends, ends.position_file, manifest.schema, dict(source.shard))
    return _with_rows(store, manifest, intent, changes, entropy)


def with_end_of_snapshot(
    store: Store, manifest: Manifest, intent: Ingest, snapshot: Position, entropy: Entropy
) -> Ingest:
    """Return an ingest of a history table together with the row that ends what a snapshot at a
    position lacks. Blocks: reads positions of every base file; raises as `append`.
    """
    source, new = intent.source_to, tuple(file.base for file in intent.files)
    files = (*manifest.files.values(), *new)
    moment = _first_moment(store, files, manifest.schema, source, snapshot)
    changes = end_of_snapshot(snapshot, moment, manifest.schema, dict(source.shard))
    return _with_rows(store, manifest, intent, changes, entropy)


def _with_rows(
    store: Store, manifest: Manifest, intent: Ingest, changes: pa.Table, entropy: Entropy
) -> Ingest:
    plan = AppendPlan.of(manifest, intent.source_to.topic, insert_only=True)
    written = append(store, plan, [changes], RunCache(), entropy)
    return replace(
        intent,
        files=(*intent.files, *written.files),
        runs=(*intent.runs, *written.runs),
        counts=dict(Counter(intent.counts) + Counter(written.counts)),
    )


def _first_moment(
    store: Store,
    files: Iterable[BaseFile],
    schema: TableSchema,
    source: SourceState,
    snapshot: Position,
) -> EpochUs | None:
    """Return the time when the first row of a snapshot was read; None if its rows have no time."""
    found: list[EpochUs] = []
    names = (*(name for name, _ in source.shard), SOURCE_TS)
    for file in files:
        with open_base(store, file, schema) as reader:
            for at in range(len(reader.row_groups)):
                own = at_position(reader.read(at, (POSITION_FILE, POSITION_OFFSET)), snapshot)
                if own.any():
                    rows = reader.read(at, names)
                    own &= in_shard(rows, source.shard)
                    times = rows.column(SOURCE_TS).filter(pa.array(own)).cast(pa.int64())
                    found += [] if (first := pc.min(times).as_py()) is None else [EpochUs(first)]
    return min(found, default=None)


def _has_versions_below(store: Store, manifest: Manifest, source: SourceState) -> bool:
    """Return whether a history table has a version of `source` at or below its fence and above the
    last TRUNCATE or DROP there, and the fence that it has in the manifest. It may have ended since
    by a delete, which isn't looked for.

    Blocks: reads positions of every base file. `CorruptFileError`, `StorageError`.
    """
    before = manifest.sources[source.topic].fence
    shard = [name for name, _ in source.shard]
    names = (*shard, POSITION_FILE, POSITION_OFFSET, HISTORY_OP)
    files = (file for _, file in sorted(manifest.files.items()))
    ended, changed = before, BEFORE_ALL
    for rows in read_rows(store, files, manifest.schema, names):
        op = rows.column(HISTORY_OP).to_numpy()
        own = at_or_below(rows, source.fence) & in_shard(rows, source.shard)
        ended = max(ended, _highest(rows, own & (op == HISTORY_END)))
        changed = max(changed, _highest(rows, own & ~np.isin(op, _NO_VERSIONS)))
    return changed > ended


def _highest(rows: pa.Table, chosen: Mask) -> Position:
    file, offset = (rows.column(n).to_numpy()[chosen] for n in (POSITION_FILE, POSITION_OFFSET))
    if not len(file):
        return BEFORE_ALL
    last = file.max()
    return Position(int(last), int(offset[file == last].max()))
