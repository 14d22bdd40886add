"""A table made by hand: rows go to base files, changes to deltas, each by a real commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakesplice.formats.checksum import checksum
from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import GROUP_BITS, Segment
from lakesplice.model.change import Op, delta_schema
from lakesplice.model.manifest import DeltaRef, FileRef, Manifest
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.row_digest import row_digest
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.base_files import create_base
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.commit import Committed, commit, create
from lakesplice.table.protocol.intents import Create, Evolve, Ingest, Intent, Splice
from lakesplice.table.protocol.layout import base_path, delta_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.compact import Compacted, compact_files
from lakesplice.testing.doubles import FixedClock, SeededEntropy

Row = Mapping[str, Any]
GENERATION = 1
_MADE_MS = 1_700_000_000_000


class MadeTable:
    """Every row is known by its key's value; each call makes one version."""

    def __init__(self, root: Path, schema: TableSchema) -> None:
        self.store = LocalStore(root)
        self.clock, self.entropy = FixedClock(_MADE_MS), SeededEntropy(0)
        self.addresses: dict[Any, tuple[int, int]] = {}
        self.rows: dict[Any, Row | None] = {}
        self._next = 0
        source = SourceState("shop.orders", "topic-id", {0: PartitionState(Offset(0))})
        made = create(
            self.store, Create(GENERATION, schema, source), clock=self.clock, entropy=self.entropy
        )
        assert isinstance(made, Committed)
        self.snapshot: Snapshot = made.snapshot

    @property
    def manifest(self) -> Manifest:
        return self.snapshot.manifest

    @property
    def schema(self) -> TableSchema:
        return self.manifest.schema

    @property
    def key(self) -> str:
        return self.schema.key[0]

    def insert(self, *files: Sequence[Row]) -> None:
        """Write each list of rows to a base file of its own."""
        self._ingest(files=tuple(self._base(rows) for rows in files))

    def change(self, *deltas: Sequence[tuple[Op, Row]]) -> None:
        """Write each list of (operation, image) to a delta of its own, with sets and digests."""
        self._ingest(deltas=tuple(self._delta(changes) for changes in deltas))

    def evolve(self, schema: TableSchema) -> None:
        self._commit(Evolve.of(GENERATION, self.manifest, schema))

    def compact(self, paths: Sequence[str] | None = None) -> Compacted:
        chosen = list(self.manifest.files) if paths is None else paths
        done = compact_files(self.store, self.manifest, chosen, best_rewriter(), self.entropy)
        self._commit(Splice(GENERATION, done.replaced, done.consumed, done.counts))
        return done

    def live(self) -> list[Row]:
        """The rows that a real-time reader must see, by key."""
        return [row for _, row in sorted(self.rows.items()) if row is not None]

    def _base(self, rows: Sequence[Row]) -> NewFile:
        group = self.entropy.bits(GROUP_BITS)
        for at, row in enumerate(rows):
            self.addresses[row[self.key]] = (group, at)
            self.rows[row[self.key]] = row
        images = self._images(rows)
        table = images
        system = {
            "_position_file": pa.array([0] * len(rows), pa.int64()),
            "_position_offset": pa.array([self._position() for _ in rows], pa.int64()),
            "_row_digest": pa.array(row_digest(images, self.schema)),
            "_is_deleted": pa.array([False] * len(rows)),
            "_source_ts": pa.array([1_600_000_000_123_456] * len(rows), pa.timestamp("us", "UTC")),
        }
        for name, column in system.items():
            table = table.append_column(name, column)
        return create_base(
            self.store,
            base_path(group, 0, self.entropy),
            (Segment(group, len(rows)),),
            lambda sink: write_base([table], self.schema, sink),
        )

    def _delta(self, changes: Sequence[tuple[Op, Row]]) -> DeltaRef:
        records = []
        for op, image in changes:
            key = image[self.key]
            before = self.rows[key]
            after = None if op == Op.DELETE else image
            self.rows[key] = after
            records.append(dict(image) | self._facts(op, before, after) | self._address(key))
        located = pa.Table.from_pylist(records, schema=delta_schema(self.schema))
        data = encode_delta(located, self.schema)
        ref = FileRef(delta_path(self.entropy), len(data), checksum(data))
        assert self.store.put_new(ref.path, data)
        waiting: dict[int, int] = {}
        for record in records:
            waiting[record["_group"]] = waiting.get(record["_group"], 0) + 1
        return DeltaRef(ref, len(records), self.schema.version, waiting)

    def _address(self, key: Any) -> dict[str, int]:
        group, row = self.addresses[key]
        return {"_group": group, "_row": row}

    def _facts(self, op: Op, before: Row | None, after: Row | None) -> dict[str, Any]:
        changed = None
        if before is not None:
            bits = sum(
                ((after or {}).get(c.name) != before.get(c.name)) << c.id
                for c in self.schema.columns
            )
            changed = bits.to_bytes(len(self.schema.columns) // 8 + 1, "little")
        return {
            "_op": int(op),
            "_position_file": 0,
            "_position_offset": self._position(),
            "_before_digest": self._digest(before),
            "_row_digest": self._digest(after),
            "_changed": changed,
            "_source_ts": None,
        }

    def _digest(self, row: Row | None) -> int | None:
        return None if row is None else int(row_digest(self._images([row]), self.schema)[0])

    def _images(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=pa.schema(self.schema.user_fields))

    def _position(self) -> int:
        self._next += 1
        return self._next

    def _ingest(self, **written: Any) -> None:
        source = self.manifest.source
        assert source is not None
        begin = source.partitions[0].next_offset
        after = SourceState(source.topic, source.topic_id, {0: PartitionState(Offset(begin + 1))})
        groups = frozenset(g for delta in written.get("deltas", ()) for g in delta.waiting)
        self._commit(
            Ingest(
                GENERATION,
                self.snapshot.version,
                {0: begin},
                after,
                self.schema.version,
                addressed_groups=groups,
                **written,
            )
        )

    def _commit(self, intent: Intent) -> None:
        made = commit(self.store, self.snapshot, intent, clock=self.clock, entropy=self.entropy)
        assert isinstance(made, Committed), made
        self.snapshot = made.snapshot
