"""A table's retained versions, gone through with one key: its entry, its row, what changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.model.change import Op
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import CHANGED, OP, POSITION_FILE, POSITION_OFFSET, SOURCE_TS
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmap_rows, changes_column
from lakesplice.table.explaining.asked_key import Address, AskedKey
from lakesplice.table.explaining.row_states import RowState, changes_at, row_at
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.protocol.transitions import ADOPT, PURGE, RESET, RESTORE
from lakesplice.table.reading.changes import Version, read_version
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

    `position` is the change's, or the row's where no change did it; `stood` what the row stood at
    before. `columns` are those that an update changed, None where that isn't known. An `OLDER`
    change is in the version and has no effect; `MERGED` brought the row as it is into base files.
    """

    version: int
    time_ms: int
    operation: str
    effect: Effect
    position: Position | None = None
    stood: Position | None = None
    op: str | None = None
    source_ts: datetime | None = None
    columns: tuple[str, ...] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexEntry:
    """An entry of the key in a run of the index. The newest run that has one decides; if its file
    group isn't `live`, the key counts as unknown.
    """

    run: str
    address: Address
    live: bool
    decides: bool


class VersionWalk:
    """Goes through a table's versions with a key; remembers what it read. Every call blocks."""

    def __init__(self, store: Store, key: AskedKey, *, values: bool = False) -> None:
        self.key = key
        self.runs = RunCache()
        self._store = store
        self._values = values
        self._states: dict[int, RowState | None] = {}

    def versions(self, snapshot: Snapshot) -> list[Version]:
        """Return the retained versions up to a snapshot's, oldest first; never none."""
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
        """Yield what each run has of the key, the newest first."""
        decides = True
        for ref in reversed(manifest.runs):
            (run,) = self.runs.open_runs(self._store, [ref])
            address = self.key.entry(run)
            if address is not None:
                yield IndexEntry(ref.file.path, address, address[0] in manifest.groups, decides)
                decides = False

    def place(self, manifest: Manifest) -> Address | None:
        """Return where the index has the key in a version."""
        if not manifest.schema.key:
            return None
        return self.key.located(self.runs.open_runs(self._store, manifest.runs), manifest)

    def state(self, version: Version) -> RowState | None:
        """Return the key's row as a version has it; None if it has none."""
        if version.number not in self._states:
            manifest = version.manifest
            address = self.place(manifest)
            columns = self._columns(manifest.schema)
            self._states[version.number] = (
                None
                if address is None
                else row_at(self._store, manifest, self.key, address, columns)
            )
        return self._states[version.number]

    def changes(self, versions: Sequence[Version]) -> Iterator[KeyChange]:
        """Yield what the versions did to the key's row, from what the first one has of it on."""
        first, state = versions[0], self.state(versions[0])
        if state is not None:
            born = first.number == 0 or first.operation == ADOPT
            effect = Effect.INSERTED if born and not state.deleted else Effect.PRESENT
            yield self._seen(first, effect, state)
        for before, now in pairwise(versions):
            yield from self._between(before, now)

    def _between(self, before: Version, now: Version) -> Iterator[KeyChange]:
        old, new = self.place(before.manifest), self.place(now.manifest)
        if now.operation in (RESTORE, RESET):
            yield from self._jumped(before, now, Effect.RESTORED)
        elif now.operation == PURGE and old != new:
            effect = Effect.PURGED if new is None else Effect.READDRESSED
            yield from self._jumped(before, now, effect)
        else:
            yield from self._changed(before, now, old, new)

    def _jumped(self, before: Version, now: Version, effect: Effect) -> Iterator[KeyChange]:
        stood, stands = self.state(before), self.state(now)
        same = stood and stands and stood.position == stands.position
        if stood is stands or (same and effect is Effect.RESTORED):
            return
        yield self._seen(now, effect, stands, stood)

    def _changed(
        self, before: Version, now: Version, old: Address | None, new: Address | None
    ) -> Iterator[KeyChange]:
        changes = self._new_changes(before, now, [at for at in (old, new) if at is not None])
        came = new is not None and new != old and bool(_new_runs(before.manifest, now.manifest))
        if not came and not changes.num_rows:
            yield from self._rewritten(before, now, old, new)
            return
        stood, stands = self.state(before), self.state(now)
        assert stands is not None, "a row whose changes came is there"
        level = stood.position if stood else BEFORE_ALL
        live = stood is not None and not stood.deleted
        if came:
            level = stands.base_position
            effect = Effect.MOVED if live else Effect.INSERTED
            live = not stands.base_deleted
            yield self._seen(now, effect if live else Effect.DELETED, stands, stood, level)
        for at in range(changes.num_rows):
            change = changes.slice(at, 1)
            position = _position(change)
            deletes = change[OP][0].as_py() == Op.DELETE
            if came and position == level and deletes:
                continue  # the place that the row left
            given = stands.has(position) and not (stood and stood.has(position))
            if position <= level and not given:
                yield self._told(now, Effect.OLDER, change, level)
                continue
            effect = Effect.DELETED if deletes else Effect.UPDATED if live else Effect.INSERTED
            yield self._told(now, effect, change, None if level == BEFORE_ALL else level)
            level, live = max(level, position), not deletes

    def _rewritten(
        self, before: Version, now: Version, old: Address | None, new: Address | None
    ) -> Iterator[KeyChange]:
        """A compaction that merged the row's changes, or an upsert that wrote them at once."""
        if old is None or old != new or _file(before.manifest, old) == _file(now.manifest, old):
            return
        stood, stands = self.state(before), self.state(now)
        if stood is None or stands is None:
            return
        if stands.position != stood.position:
            effect = Effect.INSERTED if stood.deleted else Effect.UPDATED
            yield self._seen(now, Effect.DELETED if stands.deleted else effect, stands, stood)
        elif stood.waiting.num_rows > stands.waiting.num_rows:
            yield self._seen(now, Effect.MERGED, stands, stood)

    def _new_changes(self, before: Version, now: Version, places: Sequence[Address]) -> pa.Table:
        """The changes that a version brought for the row, in their order."""
        known = {delta.file.path for delta in before.manifest.deltas}
        deltas = [delta for delta in now.manifest.deltas if delta.file.path not in known]
        schema = now.manifest.schema
        found = changes_at(self._store, deltas, schema, places, self._columns(schema))
        return found.sort_by([(POSITION_FILE, "ascending"), (POSITION_OFFSET, "ascending")])

    def _columns(self, schema: TableSchema) -> tuple[str, ...]:
        return schema.shown if self._values else ()

    def _seen(
        self,
        version: Version,
        effect: Effect,
        stands: RowState | None,
        stood: RowState | None = None,
        position: Position | None = None,
    ) -> KeyChange:
        return KeyChange(
            version.number,
            version.timestamp_ms,
            version.operation,
            effect,
            position=position or (stands.position if stands else None),
            stood=stood.position if stood else None,
            source_ts=stands.source_ts if stands else None,
            values=stands.values if stands else {},
        )

    def _told(
        self, version: Version, effect: Effect, change: pa.Table, stood: Position | None
    ) -> KeyChange:
        schema, op = version.manifest.schema, Op(change[OP][0].as_py())
        names = self._columns(schema) if op is not Op.DELETE else ()
        return KeyChange(
            version.number,
            version.timestamp_ms,
            version.operation,
            effect,
            position=_position(change),
            stood=stood,
            op=op.name.lower(),
            source_ts=change[SOURCE_TS][0].as_py(),
            columns=_columns_changed(change, schema),
            values={name: change[name][0].as_py() for name in names},
        )


def _new_runs(before: Manifest, now: Manifest) -> set[str]:
    return {run.file.path for run in now.runs} - {run.file.path for run in before.runs}


def _file(manifest: Manifest, address: Address) -> str:
    group = address[0]
    files = manifest.files.values()
    return next(f.path for f in files if any(s.group == group for s in f.segments))


def _position(change: pa.Table) -> Position:
    return Position(change[POSITION_FILE][0].as_py(), change[POSITION_OFFSET][0].as_py())


def _columns_changed(change: pa.Table, schema: TableSchema) -> tuple[str, ...] | None:
    """The columns of which an update has other values, or may have; None if that isn't known."""
    sets, known = bitmap_rows(change[CHANGED].combine_chunks(), bitmap_bytes(schema))
    if not known[0]:
        return None
    shown = (c for c in schema.columns if c.name in schema.shown)
    return tuple(c.name for c in shown if changes_column(sets, known, c.id)[0])
