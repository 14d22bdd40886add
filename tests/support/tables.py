"""A small table for tests of the protocol; its files are written only where a test reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakesplice.formats.checksum import checksum
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.manifest import DeltaRef, FileRef, RunRef
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed, Conflict, commit, create
from lakesplice.table.protocol.intents import Create, Ingest, Intent, Splice
from lakesplice.table.protocol.layout import base_path, delta_path, run_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy

SCHEMA = TableSchema(
    (
        Column(1, "id", "id", ColumnType(Primitive.LONG), "bigint"),
        Column(2, "name", "name", ColumnType(Primitive.STRING), "varchar(20)"),
    ),
    ("id",),
    (2,),
)
SOURCE = SourceState(
    "t.shop.orders", "topic-1", {0: PartitionState(Offset(0)), 1: PartitionState(Offset(7))}
)


def rows(values: Sequence[tuple[int, str | None]], *, deleted: bool = False) -> pa.Table:
    """Rows of `SCHEMA` as a base file holds them."""
    count = len(values)
    return pa.table(
        {
            "id": [row[0] for row in values],
            "name": [row[1] for row in values],
            "_position_file": [1] * count,
            "_position_offset": list(range(count)),
            "_row_digest": [None] * count,
            "_is_deleted": [deleted] * count,
            "_source_ts": [None] * count,
        }
    ).cast(SCHEMA.arrow)


class TableUnderTest:
    """One table and the means to commit to it; every commit starts from the newest version."""

    def __init__(self, store: Store, seed: int = 1) -> None:
        self.store = store
        self.clock = FixedClock()
        self.entropy = SeededEntropy(seed)

    def create(self, **changes: Any) -> Snapshot:
        intent = replace(Create(1, SCHEMA, SOURCE), **changes)
        outcome = create(self.store, intent, clock=self.clock, entropy=self.entropy)
        assert isinstance(outcome, Committed), outcome
        return outcome.snapshot

    def now(self) -> Snapshot:
        return open_snapshot(self.store)

    def commit(self, intent: Intent, on: Snapshot | None = None) -> Committed | Conflict:
        return commit(self.store, on or self.now(), intent, clock=self.clock, entropy=self.entropy)

    def committed(self, intent: Intent) -> Snapshot:
        outcome = self.commit(intent)
        assert isinstance(outcome, Committed), outcome
        return outcome.snapshot

    def file(self, group: int, count: int = 3) -> NewFile:
        """A base file that exists by name only."""
        path = base_path(group, 0, self.entropy)
        return NewFile(BaseFile(path, 100, (Segment(group, count),)), '{"numRecords":3}')

    def real_file(self, group: int, values: Sequence[tuple[int, str | None]]) -> NewFile:
        """A base file with these rows, written."""
        return self.written(base_path(group, 0, self.entropy), group, values)

    def written(self, path: str, group: int, values: Sequence[tuple[int, str | None]]) -> NewFile:
        with self.store.writer(path) as sink:
            written = write_base([rows(values)], SCHEMA, sink)
        size = self.store.size(path)
        assert size is not None
        return NewFile(BaseFile(path, size, (Segment(group, written.rows),)), written.stats)

    def next_file(self, old: BaseFile) -> NewFile:
        """The same segments under a new name, as a splice leaves them."""
        path = base_path(old.segments[0].group, old.splices + 1, self.entropy)
        return NewFile(replace(old, path=path, splices=old.splices + 1), '{"numRecords":3}')

    def written_as(self, new: NewFile) -> NewFile:
        """The file as it lies on the store, which has its true size."""
        size = self.store.size(new.base.path)
        assert size is not None
        return replace(new, base=replace(new.base, bytes=size))

    def delta(self, *groups: int) -> DeltaRef:
        ref = FileRef(delta_path(self.entropy), 10, checksum(b"a"))
        return DeltaRef(ref, len(groups), 0, dict.fromkeys(groups, 1))

    def run(self) -> RunRef:
        return RunRef(FileRef(run_path(self.entropy), 10, checksum(b"r")), 3)

    def ingest(self, step: int = 5, on: Snapshot | None = None, **changes: Any) -> Ingest:
        """An ingest of partition 0 by `step` offsets, planned on the newest version."""
        snapshot = on or self.now()
        source = snapshot.manifest.source
        assert source is not None
        start = source.partitions[0].next_offset
        moved = {**source.partitions, 0: PartitionState(Offset(start + step))}
        deltas: tuple[DeltaRef, ...] = changes.get("deltas", ())
        intent = Ingest(
            generation=snapshot.manifest.generation,
            planned_on=snapshot.version,
            source_from={0: start},
            source_to=replace(source, partitions=moved),
            schema_version=snapshot.manifest.schema.version,
            addressed_groups=frozenset(group for delta in deltas for group in delta.waiting),
        )
        return replace(intent, **changes)

    def splice(self, *paths: str, on: Snapshot | None = None) -> Splice:
        """A splice of these files, or of all, with all that waits for them."""
        manifest = (on or self.now()).manifest
        files = [manifest.files[path] for path in paths or manifest.files]
        groups = frozenset(segment.group for file in files for segment in file.segments)
        consumed = {
            delta.file.path: frozenset(delta.waiting) & groups
            for delta in manifest.deltas
            if not groups.isdisjoint(delta.waiting)
        }
        replaced = {file.path: self.next_file(file) for file in files}
        snapshot = on or self.now()
        return Splice(manifest.generation, replaced, consumed, planned_on=snapshot.version)


def local_table(root: Any) -> TableUnderTest:
    """A table that is not created yet, in a lake on the local disk."""
    return TableUnderTest(LocalStore(root).within("shop/orders"))
