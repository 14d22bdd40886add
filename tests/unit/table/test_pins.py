"""Pins: what they keep, for how long, and how readers find it; versions by a topic's offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakesplice.errors import CorruptFileError, UsageError, VersionNotFoundError
from lakesplice.formats.manifests import decode_manifest, encode_manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import log_keeper
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.snapshot import manifest_ref, open_snapshot
from lakesplice.table.reading.kept_versions import open_pinned, version_at_offsets
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import clean_up
from lakesplice.table.upkeep.orphans import find_orphans
from lakesplice.table.upkeep.pins import pin, require_pin_name, unpin
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import Source, driver_of, require_pins, rows_in, rows_of
from tests.support.steps import redirect

ALL_MS = 1 << 62


class Life:
    """A table of several versions, each with other rows, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.source, self.clock = Source(), FixedClock()
        self.driver: SimulatedDriver = driver_of(self.source, LocalStore(folder), clock=self.clock)
        self.store = LocalStore(folder / self.driver.name.path)
        self.entropy = SeededEntropy(5)
        self.step()

    def step(self) -> int:
        for key in range(3):
            self.source.topic.append(key % 2, self.source.put(key))
        assert self.driver.batch() is CommitOutcome.DONE
        self.driver.compact()
        return self.driver.table.version

    def pin(self, name: str, version: int | None = None, ends_ms: int = 0) -> int:
        table = self.driver.table
        made = pin(
            self.store,
            open_snapshot(self.store),
            name,
            table.commit,
            entropy=self.entropy,
            retries=table.retries(),
            generation=1,
            version=version,
            ends_ms=EpochMs(ends_ms),
        )
        return made.version

    def unpin(self, name: str) -> int:
        table = self.driver.table
        assert table.snapshot is not None
        return unpin(
            self.store, table.snapshot, name, table.commit, retries=table.retries(), generation=1
        )

    def vacuum(self, hours: int = 2) -> None:
        self.clock.advance(hours * 3600)
        table, now_ms = self.driver.table, self.clock.now_ms()
        assert table.snapshot is not None
        Expiry(self.store, table.commit, 1).run(table.snapshot, now_ms, now_ms)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


@pytest.mark.slow
def test_a_pinned_version_outlives_vacuums_and_its_own_entry_of_the_log(life: Life) -> None:
    version, rows = life.pin("month"), rows_of(life.store)
    for _ in range(4):
        life.step()
        life.vacuum()
    log_keeper(life.store).checkpoint(life.driver.table.version)
    life.clock.advance(1)
    assert clean_up(life.store, life.clock.now_ms())
    with pytest.raises(VersionNotFoundError):
        Table(life.store, version)
    found, snapshot = open_pinned(life.store, "month")
    table = Table(life.store, snapshot=snapshot)
    assert (found.version, table.version) == (version, version)
    assert rows_in(table, View.REAL_TIME) == rows
    assert table.refresh().version == life.driver.table.version


@pytest.mark.slow
def test_a_pin_ends_with_the_first_vacuum_after_its_time_and_that_deletes_what_it_kept(
    life: Life,
) -> None:
    life.pin("hour", ends_ms=life.clock.now_ms() + 3_600_000)
    kept = open_pinned(life.store, "hour")[1].manifest
    life.step()
    life.clock.advance(1800)
    table, now_ms = life.driver.table, life.clock.now_ms()
    assert table.snapshot is not None
    Expiry(life.store, table.commit, 1).run(table.snapshot, now_ms, now_ms)
    require_pins(life.source, life.store)
    life.vacuum()
    with pytest.raises(UsageError, match="no such pin"):
        open_pinned(life.store, "hour")
    assert all(life.store.size(path) is None for path in kept.files)


@pytest.mark.slow
def test_files_of_an_unpinned_version_are_orphans_unless_another_pin_keeps_them(
    life: Life,
) -> None:
    life.pin("one")
    life.pin("two", version=life.pin("one"))
    life.step()
    life.vacuum()
    life.unpin("one")
    assert not find_orphans(life.store, open_snapshot(life.store), EpochMs(ALL_MS)).keys() & set(
        open_pinned(life.store, "two")[1].manifest.files
    )
    files = open_pinned(life.store, "two")[1].manifest.files
    life.unpin("two")
    assert (
        find_orphans(life.store, open_snapshot(life.store), EpochMs(ALL_MS)).keys() >= files.keys()
    )
    with pytest.raises(UsageError, match="no such pin"):
        life.unpin("two")


def test_a_manifest_that_was_damaged_since_it_was_read_is_not_pinned(life: Life) -> None:
    snapshot, table = open_snapshot(life.store), life.driver.table
    manifest = life.store.root / manifest_ref(snapshot).path
    manifest.write_bytes(manifest.read_bytes().replace(b"goods", b"doogs"))
    with pytest.raises(CorruptFileError):
        pin(
            life.store,
            snapshot,
            "month",
            table.commit,
            entropy=life.entropy,
            retries=table.retries(),
            generation=1,
        )


@pytest.mark.slow
def test_a_version_that_is_past_its_retention_is_not_pinned(life: Life) -> None:
    first = life.driver.table.version
    life.step()
    life.vacuum()
    with pytest.raises(VersionNotFoundError, match="past its retention"):
        life.pin("late", version=first)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a" * 101, "ä"])
def test_a_pins_name_is_a_files_name(name: str) -> None:
    with pytest.raises(UsageError, match="a pin's name"):
        require_pin_name(name)


def test_only_a_manifest_with_pins_has_their_format(life: Life) -> None:
    manifest = open_snapshot(life.store).manifest
    assert json.loads(encode_manifest(manifest))["format"] == 1
    life.pin("month", ends_ms=7)
    pinned = open_snapshot(life.store).manifest
    assert json.loads(encode_manifest(pinned))["format"] == 8
    assert decode_manifest(encode_manifest(pinned), "m") == pinned
    life.unpin("month")
    assert json.loads(encode_manifest(open_snapshot(life.store).manifest))["format"] == 1
    assert [entry.info.operation for entry in history(life.store)][:2] == ["UNPIN", "PIN"]


@pytest.mark.slow
def test_a_version_is_found_by_where_its_topic_stood(life: Life) -> None:
    offsets, rows = dict(Table(life.store).offsets), rows_of(life.store)
    stood = life.driver.table.version
    life.step()
    assert version_at_offsets(life.store, offsets) == stood
    topic = life.source.topic.name
    assert version_at_offsets(life.store, {topic: offsets}) == stood
    assert rows_of(life.store, version=stood) == rows
    with pytest.raises(VersionNotFoundError, match="newest_before"):
        version_at_offsets(life.store, {at: offset + 1 for at, offset in offsets.items()})
    for wrong in ({0: 1}, {0: 1, 1: 1, 2: 1}, {"elsewhere": offsets}):
        with pytest.raises(UsageError, match="each partition"):
            version_at_offsets(life.store, wrong)


@pytest.mark.slow
def test_a_version_whose_offsets_were_set_back_is_not_as_of_them(life: Life) -> None:
    start = dict.fromkeys((0, 1), Offset(0))
    life.step()
    redirect(life.driver, source=moved(life.driver.table.source, start))
    set_back = life.driver.table.version
    assert dict(Table(life.store, set_back).offsets) == start
    assert version_at_offsets(life.store, start) == 0
