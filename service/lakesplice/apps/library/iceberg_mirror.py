"""The Iceberg mirror of a table that is fed by hand: it follows when a program or command asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import earlier
from lakesplice.model.names import TableName
from lakesplice.planning.upkeep.retention import ORPHAN_SECONDS_MIN
from lakesplice.storage.iceberg.catalog import open_mirror, table_address
from lakesplice.storage.stores import AnyStore
from lakesplice.table.by_hand.new_table import Tools
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorCatalog
from lakesplice.table.upkeep.vacuum import time_for_deletion

_ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A table's version and its mirror. `before` is the version that the mirror showed when the
    call began, None if there was no mirror. `added` and `removed` files make the difference, and
    `begun` is why a new Iceberg table must begin, if one must. `forgotten` snapshots were too old.
    After the call the mirror `is_current` if it lacks nothing, neither files nor columns.
    """

    version: int
    before: int | None
    added: int = 0
    removed: int = 0
    begun: str = ""
    forgotten: int = 0
    is_current: bool = True


def open_catalog(store: AnyStore, catalog: Mapping[str, str], namespace: str) -> MirrorCatalog:
    """Return the catalog's side of a table's mirror; errors as `open_mirror`."""
    if not catalog:
        raise UsageError("name the Iceberg catalog, by pyiceberg's properties such as type and uri")
    path = "/".join(table_address(store).rstrip("/").split("/")[-2:])
    return open_mirror(catalog, store, TableName.from_path(path), namespace)


def plan_mirror(
    store: AnyStore, snapshot: Snapshot, catalog: MirrorCatalog, tools: Tools
) -> Mirrored:
    """Return what a mirror lacks of a version; changes nothing."""
    lacks = Mirror(store, catalog, tools.entropy).lacking(snapshot)
    before = _shown(catalog)
    return Mirrored(
        snapshot.version,
        before,
        lacks.added,
        lacks.removed,
        lacks.begun,
        is_current=lacks.is_current,
    )


def mirror_table(
    store: AnyStore, snapshot: Snapshot, catalog: MirrorCatalog, tools: Tools, seconds: float
) -> Mirrored:
    """Let the mirror show the newest version, and forget snapshots that were replaced more than
    `seconds` ago. Errors as `Table.mirror_iceberg`.
    """
    require_no_source(snapshot.manifest)
    mirror, before = Mirror(store, catalog, tools.entropy), _shown(catalog)
    retries = Retries(tools.clock, tools.entropy, _ATTEMPTS_MAX)
    while not (done := mirror.follow(snapshot)).is_current:
        retries.require_another("another process changes the mirror; call again")
        snapshot = latest(store, snapshot)
    now_ms = time_for_deletion(store, tools.clock, tools.entropy)
    expired_ms, unnamed_ms = earlier(now_ms, seconds), earlier(now_ms, ORPHAN_SECONDS_MIN)
    gone = mirror.expire(snapshot, expired_ms, unnamed_ms) or 0
    return Mirrored(snapshot.version, before, done.added, done.removed, done.begun, gone)


def require_no_source(manifest: Manifest) -> None:
    """Raise `UsageError` for a table that a source feeds."""
    if not manifest.is_fed_by_hand:
        raise UsageError(
            "a source feeds the table, so its service keeps the mirror; set also: [iceberg] for it"
            " under `tables`"
        )


def _shown(catalog: MirrorCatalog) -> int | None:
    state = catalog.load()
    return state.snapshots[-1].version if state is not None and state.snapshots else None
