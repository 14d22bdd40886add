"""What each version of a table changed: one row per changed key, as it was after the version.

    new file groups   rows that the commit added
    new deltas        rows that it changed: their after-images. If changes by hand have some columns
                      only, the others are read from the table at that version

If a change moved a row to another partition, its former address and its new row are one change.
Maintenance changes no row, so it yields none; neither does a change that the table ignored, since
its row was newer: a late change, or a repeated one. So these changes, applied to the rows of any
version, give the rows of each later version. The names and values of the additional columns are
those of Delta Lake's change data feed, without images from before the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UnsupportedError
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Mask
from lakesplice.model.change import Op
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import CHANGED, GROUP, IS_DELETED, OP, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Ordering
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmap_rows, changes_column
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.overlay import overlay, state_columns
from lakesplice.planning.rows.row_images import DELETE, FEED_FIELDS, INSERT, UPDATE_AFTER
from lakesplice.planning.rows.waiting_changes import WaitingChanges
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.transitions import ADOPT, CLUSTER, PURGE, REPLACE, RESTORE, SWAP
from lakesplice.table.reading.effective_changes import took_effect
from lakesplice.table.reading.feed_files import in_order, new_deltas, new_files, rows_of_new
from lakesplice.table.reading.merged_upserts import files_of_merge, merged_rows
from lakesplice.table.reading.versions import Version, read_version

_OF_OP = {Op.CREATE: INSERT, Op.UPDATE: UPDATE_AFTER, Op.READ: UPDATE_AFTER, Op.DELETE: DELETE}


@dataclass(frozen=True)
class ChangesPart:
    """Part `index` (from 0) of `of` parts of a version's changes, divided by files; each row is in
    one.
    """

    index: int = 0
    of: int = 1

    def among(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that belong to this part."""
        return frozenset(sorted(paths)[self.index :: self.of])


WHOLE = ChangesPart()


def changes_of(
    store: Store,
    number: int,
    columns: Sequence[str],
    schema: TableSchema,
    share: ChangesPart = WHOLE,
) -> Iterator[pa.Table]:
    """Yield what a version changed: FEED_FIELDS, then `columns`, which are stored names of
    `schema`.

    Blocks. `schema` is one of the table's, of any version; columns that were added later are null.
    Of a deleted row only the key has a meaning. Parts can be read one by one, in any order; in a
    table whose rows move between partitions the first part has everything. `VersionNotFoundError`
    if the version, or the one before it, is no longer retained. `UnsupportedError` if rows
    disappeared in the version in another way than by a change.
    """
    version = read_version(store, number)
    # Rows that left were reported when they were deleted; rows that moved are as they were.
    if version.operation in (PURGE, CLUSTER):
        return
    is_first = number == 0 or version.operation == ADOPT
    before = Manifest(0) if is_first else read_version(store, number - 1).manifest
    now = version.manifest
    _require_single_changes(version, before, is_first=is_first)
    if not (now.schema.precedes(schema) or schema.precedes(now.schema)):
        raise UnsupportedError(
            "a later restore, rebuild or overwrite gave the table other columns than this version"
            " has; open this version to read its changes",
            version=number,
        )
    present = max(schema, now.schema, key=lambda one: one.version)
    fields = [schema.arrow.field(name) for name in columns]
    since = present.names_since(schema)
    now_named = [field.with_name(since.get(field.name, field.name)) for field in fields]
    if present.partitioned_by:  # a row's former and present address are in different files
        if share.index:
            return
        share = WHOLE
    feed = _Feed(store, version, before, feed_schema(now_named), present, share)
    names = feed_schema(fields).names
    moved = feed.moved()
    for found in (feed.added(moved), feed.changed(moved), feed.merged()):
        yield from (table.rename_columns(names) for table in found)


def _require_single_changes(version: Version, before: Manifest, *, is_first: bool) -> None:
    jumps = (RESTORE, REPLACE) if is_first else (RESTORE, REPLACE, SWAP)
    if version.operation in jumps or before.groups - version.manifest.groups:
        raise UnsupportedError(
            "a restore, a rebuild or an overwrite removed rows without single changes; read the"
            " table's present rows, and changes from the next version on",
            version=version.number,
        )


@dataclass(frozen=True)
class MovedRows:
    """Rows that a version moved between partitions, by key and position; `names` are these
    columns.
    """

    names: tuple[str, ...]
    found: Collection[tuple[object, ...]]

    def among(self, rows: pa.Table) -> pa.Array:
        """Mark the rows, or changes, of such rows."""
        columns = (rows.column(name).to_pylist() for name in self.names)
        marks = [one in self.found for one in zip(*columns, strict=True)] if self.found else ()
        return pa.array(marks or [False] * rows.num_rows, pa.bool_())


@dataclass(frozen=True)
class _Feed:
    store: Store
    version: Version
    before: Manifest
    layout: pa.Schema
    schema: TableSchema
    share: ChangesPart

    @property
    def columns(self) -> list[str]:
        """The columns of the table that were requested."""
        return list(self.layout.names[len(FEED_FIELDS) :])

    def moved(self) -> MovedRows | None:
        """The rows that moved to another partition; None in a table without partitions.

        Nothing else deletes a row, and adds one of its key, at one position.
        """
        schema = self.schema
        if not schema.partitioned_by:
            return None
        changes = self._changes(self._new_deltas(), ())
        gone = changes.filter(pc.equal(changes.column(OP), Op.DELETE))
        names, old = [*schema.key, POSITION_FILE, POSITION_OFFSET], self.before.groups
        places, found = _values_of_rows(gone, names), set[tuple[object, ...]]()
        for file in in_order(self.version.manifest.files) if gone.num_rows else ():
            rows = rows_of_new(file, old)
            if rows is not None:
                with open_base(self.store, file, schema) as reader:
                    for at, (first, last) in enumerate(reader.row_groups):
                        new = reader.read(at, names).filter(pa.array(rows[first:last]))
                        found |= places & _values_of_rows(new, names)
        return MovedRows(tuple(names), found)

    def added(self, moved: MovedRows | None) -> Iterator[pa.Table]:
        """The rows of new file groups, except for those that the same version deletes at once."""
        ours, old = self._paths_of_part(), self.before.groups
        for file in in_order(self.version.manifest.files):
            rows = rows_of_new(file, old) if file.path in ours else None
            if rows is None:
                continue
            rows = self._not_changed(file, rows)
            with open_base(self.store, file, self.schema) as reader:
                for at, (first, last) in enumerate(reader.row_groups):
                    mine = rows[first:last]
                    if mine.any():
                        more = () if moved is None else moved.names
                        names = dict.fromkeys((*self._read, IS_DELETED, *more))
                        found = reader.read(at, [*names]).filter(pa.array(mine))
                        kinds = pc.if_else(found.column(IS_DELETED), DELETE, INSERT)
                        if moved is not None:
                            kinds = pc.if_else(moved.among(found), UPDATE_AFTER, kinds)
                        yield self._as_feed(found, kinds)

    def _not_changed(self, file: BaseFile, rows: Mask) -> Mask:
        """Leave out rows for which the same version has deltas: these say what happened to them."""
        groups = frozenset(segment.group for segment in file.segments) - self.before.groups
        deltas = [delta for delta in self._new_deltas() if not groups.isdisjoint(delta.waiting)]
        if not deltas:
            return rows
        changes = read_waiting(self.store, deltas, self.schema, groups, ())
        rows = rows.copy()
        rows[WaitingChanges.of(changes).for_file(file.segments, file.path).rows] = False
        return rows

    def changed(self, moved: MovedRows | None) -> Iterator[pa.Table]:
        """The rows on which changes of new deltas had an effect."""
        ours = self._paths_of_part()
        for delta in self._new_deltas():
            if delta.file.path in ours:
                yield from self._changed_by(self._changes([delta], self._read), moved)

    def _changed_by(self, changes: pa.Table, moved: MovedRows | None) -> Iterator[pa.Table]:
        if moved is not None and moved.found:
            left = pc.and_(moved.among(changes), pc.equal(changes.column(OP), Op.DELETE))
            changes = changes.filter(pc.invert(left))
        if not changes.num_rows:
            return
        now = self.version.manifest
        groups = frozenset(np.unique(changes.column(GROUP).to_numpy()).tolist())
        by_hand = now.ordering is Ordering.COMMIT
        # If images may be partial, even a whole image may be of a row with newer columns.
        if now.schema.positions is not None or (by_hand and not self._are_whole(changes)):
            yield from self._states(changes, groups)
            return
        if not by_hand:
            took = took_effect(self.store, self.schema, self.before, now, changes)
            changes = changes.filter(pa.array(took))
        if changes.num_rows:
            yield self._as_feed(changes, _types_of(changes.column(OP)))

    def merged(self) -> Iterator[pa.Table]:
        """The rows that an upsert changed directly in base files."""
        now, before, ours = self.version.manifest, self.before, self._paths_of_part()
        for file in files_of_merge(now, before):
            if file.path not in ours:
                continue
            found = merged_rows(self.store, now, before, file, self.schema, self._read)
            for rows, were_deleted in found:
                kinds = pc.if_else(pa.array(were_deleted), INSERT, UPDATE_AFTER)
                yield self._as_feed(rows, pc.if_else(rows.column(IS_DELETED), DELETE, kinds))

    def _paths_of_part(self) -> frozenset[str]:
        return self.share.among(new_files(self.version.manifest, self.before))

    def _new_deltas(self) -> list[DeltaRef]:
        return new_deltas(self.version.manifest, self.before)

    def _changes(self, deltas: Sequence[DeltaRef], columns: Sequence[str]) -> pa.Table:
        groups = frozenset(group for delta in deltas for group in delta.waiting)
        return read_waiting(self.store, deltas, self.schema, groups, columns)

    def _are_whole(self, changes: pa.Table) -> bool:
        """Whether changes by hand have a value for each requested column."""
        given = changes.filter(pc.not_equal(changes.column(OP), Op.DELETE))
        sets = bitmap_rows(given.column(CHANGED).combine_chunks(), bitmap_bytes(self.schema))
        asked = (c for c in self.schema.columns if c.name in self.columns)
        others = (column for column in asked if column.name not in self.schema.key)
        return all(changes_column(*sets, column.id).all() for column in others)

    def _states(self, changes: pa.Table, groups: frozenset[int]) -> Iterator[pa.Table]:
        """The rows at the addresses of changes, as of the version."""
        now, schema = self.version.manifest, self.schema
        new = WaitingChanges.of(changes)
        waiting = WaitingChanges.of(
            read_waiting(self.store, now.deltas, schema, groups, self._read)
        )
        needed = state_columns(schema, now.ordering)
        names = tuple(dict.fromkeys((*self._read, IS_DELETED, *needed)))
        for file in in_order(now.files):
            if groups.isdisjoint(segment.group for segment in file.segments):
                continue
            mine, placed = (
                new.for_file(file.segments, file.path),
                waiting.for_file(file.segments, file.path),
            )
            with open_base(self.store, file, schema) as reader:
                for at, (first, last) in enumerate(reader.row_groups):
                    asked = mine.within(first, last)
                    if not len(asked.rows):
                        continue
                    part, rows = placed.within(first, last), reader.read(at, names)
                    state = rows.select([*needed]).take(pa.array(part.addressed))
                    edits = overlay(part, state, schema, file.path, now.ordering)
                    after = apply_edits(rows, edits).take(pa.array(asked.addressed))
                    ends = np.append(np.flatnonzero(np.diff(asked.rows)), len(asked.rows) - 1)
                    ops = asked.changes.column(OP).take(pa.array(asked.order[ends]))
                    kinds = pc.if_else(after.column(IS_DELETED), DELETE, _types_of(ops))
                    yield self._as_feed(after, kinds)

    @property
    def _read(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.schema.key, *self.columns)))

    def _as_feed(self, rows: pa.Table, kinds: pa.ChunkedArray) -> pa.Table:
        count, version = rows.num_rows, self.version
        time = pa.scalar(version.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
        arrays = [
            kinds,
            pa.repeat(pa.scalar(version.number, pa.int64()), count),
            pa.repeat(time, count),
            *(rows.column(name) for name in self.columns),
        ]
        return pa.table(arrays, names=self.layout.names).cast(self.layout)


def feed_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    """Return the layout of changes with these columns, which are nullable, since a deleted row
    lacks them.
    """
    return pa.schema([*FEED_FIELDS, *(field.with_nullable(True) for field in fields)])


def _values_of_rows(rows: pa.Table, names: Sequence[str]) -> set[tuple[object, ...]]:
    return set(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def _types_of(ops: pa.ChunkedArray) -> pa.ChunkedArray:
    names = pa.array([_OF_OP[op] for op in sorted(Op)])
    return names.take(pc.cast(ops, pa.int64()).combine_chunks())
