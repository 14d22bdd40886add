"""Pins of a lake: versions of its tables are kept under one name, each by a commit of its table.

    pin      each table, then the lake's file: readers find the pin only once it is complete
    unpin    the lake's file, then each table

If either is interrupted, some tables have a pin that belongs to no lake's pin; giving either
command again continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from lakesplice.apps.lake import table_names
from lakesplice.apps.table_commands.dispatch import RequestWait, give_to_each
from lakesplice.apps.table_commands.work import PIN, UNPIN
from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.storage.stores import AnyStore
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.driver.lake_pins import (
    LakePin,
    create_lake_pin,
    delete_lake_pin,
    lake_pin,
    lake_pins,
)
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.commit import commit
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from lakesplice.table.upkeep.pins import pin, require_pin_name, unpin

_THREADS = 8
_ATTEMPTS_MAX = 20


@dataclass(frozen=True, slots=True)
class ListedPin:
    """A pin of a lake. `missing` are tables that lack it, or have another version under its name.

    Without `whole` it was never complete, or is being removed; then `missing` is empty.
    """

    name: str
    tables: int
    whole: LakePin | None
    missing: tuple[str, ...] = ()


def pin_lake(
    lake: AnyStore, name: str, patterns: Sequence[str], ends_ms: EpochMs, patience: RequestWait
) -> LakePin:
    """Keep the newest version of each table that a pattern matches, or of all tables without
    patterns.

    Patterns are for `database.table`. Blocks; the running driver commits to tables that topics
    feed. `UsageError` if the pin exists, or there is no table; otherwise as `give_to_each`.
    """
    require_pin_name(name)
    now_ms = patience.clock.now_ms()
    known = lake_pin(lake, name)
    if known is not None and not 0 < known.ends_ms <= now_ms:
        raise UsageError("there is a pin of this name; give `lakesplice unpin` first", pin=name)
    names = [one for one in table_names(lake) if one.matches(patterns)]
    if not names:
        raise UsageError(
            "the lake has no such table; `lakesplice tables` lists them", patterns=list(patterns)
        )
    # Read before the versions: they have at least what the views had then.
    status = newest_status(lake)
    until = None if status is None else status.complete_until({str(one) for one in names})
    delete_lake_pin(lake, name)
    tables = _Tables.of(lake, names)
    arguments = {"name": name, "ends_ms": ends_ms}
    done = give_to_each(lake, tables.fed, PIN, arguments, patience)
    versions = {one.path: int(result.facts["version"]) for one, result in done.items()}
    for one, snapshot in tables.by_hand.items():
        versions[one.path] = tables.pinned(one, snapshot, name, ends_ms, patience)
    made = LakePin(name, now_ms, ends_ms, until, dict(sorted(versions.items())))
    if not create_lake_pin(lake, made):
        raise UsageError("another command made a pin of this name just now", pin=name)
    return made


def unpin_lake(lake: AnyStore, name: str, patience: RequestWait) -> int:
    """Remove a pin from all tables that have it; return their number. Otherwise as `pin_lake`.

    Files that only the pin kept are deleted by the service's vacuum, or by `lakesplice vacuum`.
    """
    require_pin_name(name)
    known = lake_pin(lake, name)
    delete_lake_pin(lake, name)
    tables = _Tables.of(lake, table_names(lake))
    having = tables.having(name)
    if known is None and not having:
        raise UsageError("the lake has no such pin; see `lakesplice pins`", pin=name)
    fed = [one for one in tables.fed if one in having]
    give_to_each(lake, fed, UNPIN, {"name": name}, patience)
    for one, snapshot in tables.by_hand.items():
        if one in having:
            tables.unpinned(one, snapshot, name, patience)
    return len(having)


def listed_pins(lake: AnyStore) -> list[ListedPin]:
    """Return the pins of a lake in order of name; blocks: reads each table's manifest."""
    whole = {one.name: one for one in lake_pins(lake)}
    tables = _Tables.of(lake, table_names(lake))
    held: dict[str, dict[str, int]] = {name: {} for name in whole}
    for one, snapshot in tables.snapshots.items():
        for found in snapshot.manifest.retention.pins:
            held.setdefault(found.name, {})[one.path] = found.version
    return [_listed(name, held[name], whole.get(name)) for name in sorted(held)]


@dataclass(frozen=True)
class _Tables:
    """Some tables of a lake, with their present versions."""

    lake: AnyStore
    snapshots: Mapping[TableName, Snapshot]

    @classmethod
    def of(cls, lake: AnyStore, names: Sequence[TableName]) -> _Tables:
        with ThreadPoolExecutor(_THREADS, "tables") as pool:
            found = pool.map(lambda name: open_snapshot(lake.within(name.path)), names)
            return cls(lake, dict(zip(names, found, strict=True)))

    @property
    def fed(self) -> list[TableName]:
        """Those that topics feed."""
        return [one for one in self.snapshots if one not in self.by_hand]

    @property
    def by_hand(self) -> Mapping[TableName, Snapshot]:
        """Those fed by hand, to which any process may commit."""
        snapshots = self.snapshots.items()
        return {one: found for one, found in snapshots if found.manifest.is_fed_by_hand}

    def having(self, name: str) -> list[TableName]:
        """Those with a pin of this name."""
        snapshots = self.snapshots.items()
        return [one for one, found in snapshots if found.manifest.retention.pin(name) is not None]

    def pinned(
        self, one: TableName, snapshot: Snapshot, name: str, ends_ms: EpochMs, patience: RequestWait
    ) -> int:
        store, entropy, clock = self.lake.within(one.path), SystemEntropy(), patience.clock
        made = pin(
            store,
            snapshot,
            name,
            partial(commit, store, snapshot, clock=clock, entropy=entropy),
            entropy=entropy,
            retries=Retries(clock, entropy, _ATTEMPTS_MAX),
            ends_ms=ends_ms,
        )
        return made.version

    def unpinned(
        self, one: TableName, snapshot: Snapshot, name: str, patience: RequestWait
    ) -> None:
        store, entropy, clock = self.lake.within(one.path), SystemEntropy(), patience.clock
        unpin(
            store,
            snapshot,
            name,
            partial(commit, store, snapshot, clock=clock, entropy=entropy),
            retries=Retries(clock, entropy, _ATTEMPTS_MAX),
        )


def _listed(name: str, held: Mapping[str, int], whole: LakePin | None) -> ListedPin:
    if whole is None:
        return ListedPin(name, len(held), None)
    missing = [path for path, version in whole.tables.items() if held.get(path) != version]
    return ListedPin(name, len(whole.tables), whole, tuple(missing))
