"""A small source table, its topic and its driver, and the comparison of the lake with the truth."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from lakesplice.model.position import Position
from lakesplice.model.progress.gap import Gap
from lakesplice.planning.sources.gaps import read_until
from lakesplice.planning.upkeep.retention import files_by_path
from lakesplice.table.protocol.layout import (
    BASE,
    CHANGE_DATA,
    DEAD_LETTERS,
    DELTAS,
    ERASED,
    INDEX,
    PINS,
)
from lakesplice.table.protocol.offsets import view_floor
from lakesplice.table.protocol.ports import Clock, Store
from lakesplice.table.protocol.snapshot import open_snapshot, read_manifest, read_pointer
from lakesplice.table.reading.kept_versions import open_pinned
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.oracle import Record, position, replay
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import bigint, integer, varchar
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.erasing import erased_positions_of

SMALL = TableSpec("goods", (bigint("id", optional=False), varchar("name"), integer("n")), ("id",))
Rows = list[dict[str, Any]]


def row(key: int, value: int = 0) -> tuple[int, str | None, int | None]:
    """A row whose columns other than the key all follow from `value`, some of them null."""
    return key, None if value % 5 == 0 else f"name {value % 7}", None if value % 3 == 0 else value


def keys_of(database: Database, table: str) -> list[int]:
    """The keys that a table with an integer as key has at the source."""
    keys = [key for (key,), _ in database.rows(table).items()]
    return [key for key in keys if isinstance(key, int)]


def truncate_at(deleted: Event) -> Event:
    """The event of a TRUNCATE at the place of a delete's."""
    record = json.loads(deleted.value or b"")
    record["payload"].update(op="t", before=None, after=None)
    return deleted._replace(key=None, value=json.dumps(record).encode())


class Source:
    """A database with the table `SMALL`; statements give the events they make."""

    def __init__(
        self,
        seed: int = 0,
        *,
        with_schemas: bool = True,
        server: str = "shop",
        database: str = "shop",
    ) -> None:
        self.database = Database(
            (SMALL,), seed=seed, with_schemas=with_schemas, server=server, database=database
        )
        self.topic = SimulatedTopic(self.database.topic(SMALL.name), 2)
        self._values = 0

    @property
    def keys(self) -> list[int]:
        return keys_of(self.database, SMALL.name)

    def put(self, key: int) -> list[Event]:
        """Insert the row, or change some of its columns if it is there."""
        self._values += 1
        values = row(key, self._values)
        if (key,) not in self.database.rows(SMALL.name):
            width = len(self.database.tables[0].columns)
            self.database.insert(SMALL.name, [(*values, *[self._values] * (width - 3))])
        else:
            at = 1 + self._values % (len(self.database.tables[0].columns) - 1)
            value = [*values, self._values][min(at, 3)]
            self.database.update(
                SMALL.name, [(key,)], lambda old: (*old[:at], value, *old[at + 1 :])
            )
        return self.database.drain()

    def delete(self, key: int) -> list[Event]:
        self.database.delete(SMALL.name, [(key,)])
        return self.database.drain()

    def move(self, key: int, to: int) -> list[Event]:
        self.database.update(SMALL.name, [(key,)], lambda old: (to, *old[1:]))
        return self.database.drain()

    def add_column(self, name: str, default: int | None) -> None:
        self.database.add_column(SMALL.name, integer(name, default=default))

    def truth(self, offsets: Mapping[int, int], gaps: Sequence[Gap] = ()) -> Rows:
        """What the table must hold once the topic is applied up to `offsets`, by key, but for what
        was passed over.
        """
        until = {(self.topic.name, partition): offset for partition, offset in offsets.items()}
        records = [record for record in self.topic.records() if not is_in(gaps, record)]
        state = replay(records, until=until).get(self.topic.name)
        if state is None:
            return []
        rows = state.table().to_pylist()
        return sorted(rows, key=lambda found: found["id"])


def is_in(gaps: Sequence[Gap], record: Record) -> bool:
    """Whether a record was passed over."""
    return any(gap.partition == record.partition and gap.holds(record.offset) for gap in gaps)


class Fed(Protocol):
    """What has a topic."""

    @property
    def topic(self) -> SimulatedTopic: ...


def driver_of(
    source: Fed,
    lake: Store,
    *,
    generation: int = 1,
    seed: int = 1,
    clock: Clock | None = None,
    **more: Any,
) -> SimulatedDriver:
    """A driver with two ranges and two read tasks."""
    return SimulatedDriver(
        lake,
        source.topic,
        clock or FixedClock(),
        SeededEntropy(seed),
        generation=generation,
        ranges=2,
        read_tasks=2,
        **more,
    )


def memory_folder() -> str | None:
    """A folder in memory where there is one: the protocol is at stake, not the disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder, in memory if that can be, for as long as one example needs it."""
    made = Path(tempfile.mkdtemp(dir=memory_folder()))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def rows_of(store: Store, view: View = View.REAL_TIME, version: int | None = None) -> Rows:
    """The table's rows by key."""
    return rows_in(Table(store, version), view)


def rows_in(table: Table, view: View) -> Rows:
    """The rows of an open version by key."""
    return sorted(table.read(view).to_pylist(), key=lambda found: found["id"])


def require_true(source: Source, store: Store) -> None:
    """The real-time view of the newest version is the truth at its offsets; the index is sound."""
    table = Table(store)
    found = rows_in(table, View.REAL_TIME)
    assert len({row["id"] for row in found}) == len(found), "a key twice"
    assert found == truth_for(source, table)
    if found:  # a reader of few columns reads less of rows and changes
        few = table.read(columns=["id", "n"]).sort_by("id").to_pylist()
        assert few == [{name: row[name] for name in ("id", "n")} for row in found]
    report = check(store, table.snapshot)
    assert report.sound, report
    assert report.duplicates == 0, report


def truth_for(source: Source, table: Table) -> Rows:
    """The truth at the table's offsets; its schema may have grown before its offsets moved."""
    (stands,) = table.snapshot.manifest.sources.values()
    offsets = {at: read_until(state) for at, state in stands.partitions.items()}
    rows = source.truth(offsets, stands.gaps)
    assert all(set(row) <= set(table.schema.names) for row in rows)
    defaults = {column.name: column.default for column in source.database.tables[0].columns}
    return [
        {name: row.get(name, defaults.get(name)) for name in table.schema.names} for row in rows
    ]


def require_floor(source: Source, store: Store) -> None:
    """Every change below the view floor is in the read-optimised view, or a newer one is.

    Or its row was purged, and the change is not above the purge floor; or it isn't above the fence,
    or above the position at which its row was erased.
    """
    table = Table(store)
    floor = view_floor(table.snapshot.manifest)
    found = table.read(View.READ_OPTIMISED, include_deleted=True, include_system=True).to_pylist()
    (state,) = table.snapshot.manifest.sources.values()
    lowest = max(state.purge_floor, state.fence)
    purged = lowest.file, lowest.offset
    here = {row["id"]: (row["_position_file"], row["_position_offset"]) for row in found}
    manifest = table.snapshot.manifest
    ids = {json.loads(record.key or b"")["payload"]["id"] for record in source.topic.records()}
    for key, until in erased_positions_of(store, manifest, sorted(ids)).items():
        here[key] = max(here.get(key, purged), (until.file, until.offset))
    for record in source.topic.records():
        applied = record.offset < floor.get(record.partition, 0) and not is_in(state.gaps, record)
        if record.value is not None and applied:
            value, key = json.loads(record.value)["payload"], json.loads(record.key or b"")
            file, offset, row, rank = position(value["source"], value["op"])
            change = Position.of(0, file, offset, row, rank)
            stands = here.get(key["payload"]["id"], purged)
            assert stands >= (change.file, change.offset), record.offset


def require_finished(source: Source, driver: SimulatedDriver) -> None:
    """After all is read and compacted both views are the whole truth."""
    store = driver.table.store
    assert driver.table.next_offsets(source.topic.ends) == source.topic.ends
    assert not driver.table.manifest.deltas
    truth = truth_for(source, Table(store))
    assert rows_of(store) == truth
    assert rows_of(store, View.READ_OPTIMISED) == truth
    require_true(source, store)


def require_pins(source: Source, store: Store) -> None:
    """Every pinned version has all its files, and is the truth at its offsets."""
    for pin in open_snapshot(store).manifest.retention.pins:
        _, snapshot = open_pinned(store, pin.name)
        table = Table(store, snapshot=snapshot)
        assert table.version == pin.version
        assert rows_in(table, View.REAL_TIME) == truth_for(source, table)
        rows_in(table, View.READ_OPTIMISED)
        assert all(store.size(path) is not None for path in files_by_path(snapshot.manifest))


def require_tidy(store: Store) -> None:
    """Every file is named by a retained version, and every such version has all of its own.

    Where versions had no file that a later one lacks, the log forgets them without a commit.
    """
    snapshot = open_snapshot(store)
    named: set[str] = set()
    commits = [path for path in store.list("_delta_log/0") if path.endswith(".json")]
    oldest = min(int(path.removeprefix("_delta_log/").removesuffix(".json")) for path in commits)
    first = max(oldest, snapshot.manifest.retention.retained_from)
    for version in range(first, snapshot.version + 1):
        named |= files_by_path(read_manifest(store, read_pointer(store, version).manifest)).keys()
    for pin in snapshot.manifest.retention.pins:
        named |= files_by_path(read_manifest(store, pin.copy)).keys()
    folders = (BASE, DELTAS, INDEX, DEAD_LETTERS, PINS, CHANGE_DATA, ERASED)
    assert {path for path in store.list("") if path.startswith(folders)} == named
