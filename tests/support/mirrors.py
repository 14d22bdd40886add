"""Iceberg mirrors of tests: a catalog on this machine, one that fails, and what its readers see."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from lakesplice.errors import StorageError
from lakesplice.model.names import TableName
from lakesplice.planning.mirroring.columns import MirrorSchema, SchemaChange
from lakesplice.storage.iceberg.catalog import open_mirror
from lakesplice.storage.stores import AnyStore
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.mirroring.mirror_catalog import (
    MirrorCatalog,
    MirrorCommit,
    MirrorState,
)
from lakesplice.table.upkeep.mirroring.mirror_floor import floors
from lakesplice.testing.faulty_store import Call, Crash, Fault, How
from tests.support.simulated import memory_folder

Rows = list[dict[str, Any]]
Result = TypeVar("Result")


def sqlite_catalog(folder: str | Path | None = None) -> dict[str, str]:
    """The properties of a new catalog in a folder, or in memory."""
    place = tempfile.mkdtemp(dir=memory_folder()) if folder is None else str(folder)
    return {"type": "sql", "uri": f"sqlite:///{place}/catalog.db"}


def mirror_of(properties: dict[str, str], bare: AnyStore, name: TableName) -> MirrorCatalog:
    return open_mirror(properties, bare, name)


class FaultyCatalog:
    """A catalog whose calls fail, or at which the process dies, as those of a `FaultyStore`."""

    def __init__(self, inner: MirrorCatalog, faults: Sequence[Fault] = ()) -> None:
        self._inner = inner
        self._faults = faults
        self.calls = 0

    def load(self) -> MirrorState | None:
        return self._call("load", self._inner.load)

    def create(self, incarnation: str, schema: MirrorSchema, commit: MirrorCommit) -> bool:
        return self._call("create", lambda: self._inner.create(incarnation, schema, commit))

    def commit(
        self, state: MirrorState, schema: MirrorSchema, change: SchemaChange, commit: MirrorCommit
    ) -> bool:
        return self._call("commit", lambda: self._inner.commit(state, schema, change, commit))

    def expire(self, state: MirrorState, snapshots: Collection[int]) -> bool:
        return self._call("expire", lambda: self._inner.expire(state, snapshots))

    def needed(self, state: MirrorState) -> frozenset[str]:
        return self._call("needed", lambda: self._inner.needed(state))

    def drop(self) -> None:
        self._call("drop", self._inner.drop)

    def _call(self, method: str, act: Callable[[], Result]) -> Result:
        call = Call(self.calls, method, "catalog")
        self.calls += 1
        how = next((fault.how for fault in self._faults if fault.hits(call)), None)
        if how is How.CRASH_BEFORE:
            raise Crash
        if how is How.LOST:
            raise StorageError("the catalog doesn't answer")
        result = act()
        if how is How.CRASH_AFTER:
            raise Crash
        if how is not None:
            raise StorageError("the catalog's answer was lost")
        return result


def rows_of_snapshot(state: MirrorState, snapshot: int) -> Rows:
    """The rows that pyiceberg finds in a snapshot, by key, without deleted ones."""
    scan = state.handle.scan(row_filter="_is_deleted = false", snapshot_id=snapshot)
    rows: Rows = scan.to_arrow().drop_columns(["_is_deleted"]).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def require_mirrored(
    store: Store, catalog: MirrorCatalog, seen: dict[int, Rows], *, is_erasing: bool = False
) -> int:
    """Each snapshot of a mirror has the rows of its version, of those that were seen; an ended
    mirror can't be read, unless the erasure that ended it was interrupted (`is_erasing`). Returns
    the number of snapshots that were compared.
    """
    state = catalog.load()
    if state is None:
        return 0
    if state.incarnation not in floors(store):
        for snapshot in () if is_erasing else state.snapshots:
            with suppress(FileNotFoundError):
                rows_of_snapshot(state, snapshot.id)
                raise AssertionError("an ended mirror has a snapshot that can be read")
        return 0
    compared = [one for one in state.snapshots if one.version in seen]
    for snapshot in compared:
        assert rows_of_snapshot(state, snapshot.id) == seen[snapshot.version], snapshot
    return len(compared)
