"""Follows one key through the retained versions of a table: its index entry, its row, its
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.model.address import RowAddress
from lakesplice.model.change import Op
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import CHANGED, OP, POSITION_FILE, POSITION_OFFSET, SOURCE_TS
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.keys.requested_key import RequestedKey
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmap_rows, changes_column
from lakesplice.table.explaining.row_states import RowState, changes_at, row_at
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.protocol.transitions import (
    ADOPT,
    CLUSTER,
    PURGE,
    REPLACE,
    RESET,
    RESTORE,
    SWAP,
)
from lakesplice.table.reading.versions import Version, read_version
from lakesplice.table.upkeep.expiry import first_there


class Effect(StrEnum):
    """What a version did to a key's row."""

    PRESENT = "present"
    INSERTED = "inserted"
    UPDATED = "updated"
    DELETED = "deleted"
    MOVED = "moved"
    OLDER = "older"
    MERGED = "merged"
    READDRESSED = "readdressed"
    PURGED = "purged"
    RESTORED = "restored"


@dataclass(frozen=True)
class KeyChange:
    """What a version did to the row of a key.

    `position` is the change's, or the row's if no single change did it; `position_before` is the
    row's before it. `columns` are the columns that an update changed, None if unknown. `OLDER`: the
    version contains the change, which had no effect. `MERGED`: a base file has the row's changes
    from then on.
    """

    version: int
    time_ms: EpochMs
    operation: str
    effect: Effect
    position: Position | None = None
    position_before: Position | None = None
    op: str | None = None
    source_ts: datetime | None = None
    columns: tuple[str, ...] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexEntry:
    """An entry of the key in one index run. The entry of the newest run decides; if its file group
    isn't `live`, the key counts as unknown.
    """

    run: str
    address: RowAddress
    live: bool
    decides: bool


class VersionWalk:
    """Follows a key through the versions of a table and remembers what it read. Every call
    blocks.
    """

    def __init__(self, store: Store, key: RequestedKey, *, values: bool = False) -> None:
        self.key = key
        self.runs = RunCache()
        self._store = store
        self._values = values
        self._states: dict[int, RowState | None] = {}

    def versions(self, snapshot: Snapshot) -> list[Version]:
        """Return the retained versions up to the snapshot's, oldest first; at least one."""
        oldest = snapshot.manifest.retention.retained_from
        first = min(first_there(self._store, oldest), snapshot.version)
        found: list[Version] = []
        for number in range(first, snapshot.version + 1):
            try:
                found.append(read_version(self._store, number))
            except UnsupportedError:  # of another writer, from before the table was adopted
                found.clear()
        return found

    def entries(self, manifest: Manifest) -> Iterator[IndexEntry]:
        """Yield the key's entry in each run that has one, newest run first."""
        decides = True
        for ref in reversed(manifest.runs):
            (run,) = self.runs.open_runs(self._store, [ref])
            address = self.key.entry(run)
            if address is not None:
                yield IndexEntry(ref.file.path, address, address.group in manifest.groups, decides)
                decides = False

    def address(self, manifest: Manifest) -> RowAddress | None:
        """Return the key's address by the index of a version."""
        if not manifest.schema.key:
            return None
        return self.key.located(self.runs.open_runs(self._store, manifest.runs), manifest)

    def state(self, version: Version) -> RowState | None:
        """Return the key's row as of a version; None if it has none."""
        if version.number not in self._states:
            manifest = version.manifest
            address = self.address(manifest)
            columns = self._columns(manifest.schema)
            self._states[version.number] = (
                None
                if address is None
                else row_at(self._store, manifest, self.key, address, columns)
            )
        return self._states[version.number]

    def changes(self, versions: Sequence[Version]) -> Iterator[KeyChange]:
        """Yield the effects of the versions on the key's row, beginning with its state in the first
        one.
        """
        first, state = versions[0], self.state(versions[0])
        if state is not None:
            born = first.number == 0 or first.operation == ADOPT
            effect = Effect.INSERTED if born and not state.deleted else Effect.PRESENT
            yield self._row_effect(first, effect, state)
        for before, now in pairwise(versions):
            yield from self._between(before, now)

    def _between(self, before: Version, now: Version) -> Iterator[KeyChange]:
        old, new = self.address(before.manifest), self.address(now.manifest)
        if now.operation in (RESTORE, RESET, SWAP, REPLACE):
            yield from self._jumped(before, now, Effect.RESTORED)
        elif now.operation in (PURGE, CLUSTER) and old != new:
            effect = Effect.PURGED if new is None else Effect.READDRESSED
            yield from self._jumped(before, now, effect)
        else:
            yield from self._changed(before, now, old, new)

    def _jumped(self, before: Version, now: Version, effect: Effect) -> Iterator[KeyChange]:
        row_before, row_after = self.state(before), self.state(now)
        same = row_before and row_after and row_before.position == row_after.position
        if row_before is row_after or (same and effect is Effect.RESTORED):
            return
        yield self._row_effect(now, effect, row_after, row_before)

    def _changed(
        self, before: Version, now: Version, old: RowAddress | None, new: RowAddress | None
    ) -> Iterator[KeyChange]:
        changes = self._new_changes(before, now, [at for at in (old, new) if at is not None])
        has_new_entry = (
            new is not None and new != old and bool(_new_runs(before.manifest, now.manifest))
        )
        if not has_new_entry and not changes.num_rows:
            yield from self._rewritten(before, now, old, new)
            return
        row_before, row_after = self.state(before), self.state(now)
        assert row_after is not None, "a row with new changes exists"
        level = row_before.position if row_before else BEFORE_ALL
        live = row_before is not None and not row_before.deleted
        if has_new_entry:
            level = row_after.base_position
            effect = Effect.MOVED if live else Effect.INSERTED
            live = not row_after.base_deleted
            yield self._row_effect(
                now, effect if live else Effect.DELETED, row_after, row_before, level
            )
        for at in range(changes.num_rows):
            change = changes.slice(at, 1)
            position = _position(change)
            deletes = change[OP][0].as_py() == Op.DELETE
            if has_new_entry and position == level and deletes:
                continue  # the row's former address, which it left
            row_has_it = row_after.has(position) and not (row_before and row_before.has(position))
            if position <= level and not row_has_it:
                yield self._change_effect(now, Effect.OLDER, change, level)
                continue
            effect = Effect.DELETED if deletes else Effect.UPDATED if live else Effect.INSERTED
            yield self._change_effect(now, effect, change, None if level == BEFORE_ALL else level)
            level, live = max(level, position), not deletes

    def _rewritten(
        self, before: Version, now: Version, old: RowAddress | None, new: RowAddress | None
    ) -> Iterator[KeyChange]:
        """A compaction that merged the row's changes, or an upsert that wrote them into the base
        file.
        """
        if old is None or old != new or _file(before.manifest, old) == _file(now.manifest, old):
            return
        row_before, row_after = self.state(before), self.state(now)
        assert row_before is not None, "an address leads to a row"
        assert row_after is not None, "an address leads to a row"
        if row_after.position != row_before.position:
            effect = Effect.INSERTED if row_before.deleted else Effect.UPDATED
            yield self._row_effect(
                now, Effect.DELETED if row_after.deleted else effect, row_after, row_before
            )
        elif row_before.waiting.num_rows > row_after.waiting.num_rows:
            yield self._row_effect(now, Effect.MERGED, row_after, row_before)

    def _new_changes(self, before: Version, now: Version, places: Sequence[RowAddress]) -> pa.Table:
        """The changes of the row that a version added, in order of position."""
        known = {delta.file.path for delta in before.manifest.deltas}
        deltas = [delta for delta in now.manifest.deltas if delta.file.path not in known]
        schema = now.manifest.schema
        found = changes_at(self._store, deltas, schema, places, self._columns(schema))
        return found.sort_by([(POSITION_FILE, "ascending"), (POSITION_OFFSET, "ascending")])

    def _columns(self, schema: TableSchema) -> tuple[str, ...]:
        return schema.shown if self._values else ()

    def _row_effect(
        self,
        version: Version,
        effect: Effect,
        row_after: RowState | None,
        row_before: RowState | None = None,
        position: Position | None = None,
    ) -> KeyChange:
        return KeyChange(
            version.number,
            version.timestamp_ms,
            version.operation,
            effect,
            position=position or (row_after.position if row_after else None),
            position_before=row_before.position if row_before else None,
            source_ts=row_after.source_ts if row_after else None,
            values=row_after.values if row_after else {},
        )

    def _change_effect(
        self, version: Version, effect: Effect, change: pa.Table, position_before: Position | None
    ) -> KeyChange:
        schema, op = version.manifest.schema, Op(change[OP][0].as_py())
        names = self._columns(schema) if op is not Op.DELETE else ()
        return KeyChange(
            version.number,
            version.timestamp_ms,
            version.operation,
            effect,
            position=_position(change),
            position_before=position_before,
            op=op.name.lower(),
            source_ts=change[SOURCE_TS][0].as_py(),
            columns=_columns_changed(change, schema),
            values={name: change[name][0].as_py() for name in names},
        )


def _new_runs(before: Manifest, now: Manifest) -> set[str]:
    return {run.file.path for run in now.runs} - {run.file.path for run in before.runs}


def _file(manifest: Manifest, address: RowAddress) -> str:
    group = address.group
    files = manifest.files.values()
    return next(f.path for f in files if any(s.group == group for s in f.segments))


def _position(change: pa.Table) -> Position:
    return Position(change[POSITION_FILE][0].as_py(), change[POSITION_OFFSET][0].as_py())


def _columns_changed(change: pa.Table, schema: TableSchema) -> tuple[str, ...] | None:
    """The columns that an update gave other values, or may have; None if unknown."""
    sets, known = bitmap_rows(change[CHANGED].combine_chunks(), bitmap_bytes(schema))
    if not known[0]:
        return None
    shown = (c for c in schema.columns if c.name in schema.shown)
    return tuple(c.name for c in shown if changes_column(sets, known, c.id)[0])
