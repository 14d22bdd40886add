"""Readers read while a vacuum runs, after each of its effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expired, Expiry
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Call, FaultyStore
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.scenario import ALL_MS
from tests.support.simulated import Rows, Source, driver_of, require_tidy, require_true, rows_of

HOUR_MS = 3_600_000
DAYS, DAYS_NIGHTLY = 20, 40


def lived(lake: FaultyStore, source: Source, clock: FixedClock) -> SimulatedDriver:
    """A table of some versions, hours apart, with compactions and merges of runs between them."""
    driver = driver_of(source, lake, clock=clock)
    for key in (0, 1, 2, 0, 3, 1, 4, 0):
        source.topic.append(key % 2, source.put(key))
        clock.advance(1800)
        driver.batch()
        driver.compact()
        driver.merge_runs(2)
    return driver


def both(store: LocalStore, version: int) -> tuple[Rows, Rows]:
    return rows_of(store, View.REAL_TIME, version), rows_of(store, View.READ_OPTIMISED, version)


def test_no_reader_of_a_retained_version_ever_fails_or_sees_other_rows(tmp_path: Path) -> None:
    source, clock, looks = Source(), FixedClock(), [0]
    bare = LocalStore(tmp_path)
    table = bare.within("shop/goods")
    readers: dict[int, tuple[Rows, Rows]] = {}
    opened: list[Table] = []

    def look(call: Call) -> None:
        if readers and call.method in ("delete", "put_new"):
            looks[0] += 1
            for version, rows in readers.items():
                assert both(table, version) == rows
            for reader, (real_time, _) in zip(opened, readers.values(), strict=True):
                found = reader.read().to_pylist()
                assert sorted(found, key=lambda row: row["id"]) == real_time

    driver = lived(FaultyStore(bare, before_call=look), source, clock)
    assert driver.table.snapshot is not None
    expired_ms = clock.now_ms() - 2 * HOUR_MS
    plan_from = next(
        version
        for version in range(driver.table.version)
        if Table(table, version + 1).snapshot.timestamp_ms >= expired_ms
    )
    for version in range(plan_from, driver.table.version + 1):
        readers[version] = both(table, version)
        opened.append(Table(table, version))
    done = Expiry(driver.table.store, driver.table.commit, 1).run(
        driver.table.snapshot, EpochMs(expired_ms)
    )
    assert isinstance(done, Expired)
    assert done.files
    assert driver.table.manifest.retention.retained_from == plan_from
    Orphans(driver.table.store, driver.table.commit, 1).sweep(
        driver.table.snapshot, EpochMs(ALL_MS), at_once=True
    )
    assert looks[0] >= 5
    readers.clear()
    require_tidy(table)
    require_true(source, table)


def test_storage_stays_flat_while_versions_come_and_go(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Batches and compactions go on for days of simulated time; what is kept is a window of it."""
    source, clock = Source(), FixedClock()
    lake = LocalStore(tmp_path)
    driver = driver_of(source, lake, clock=clock)
    sizes = []
    expiry = None
    for day in range(DAYS_NIGHTLY if request.config.getoption("--nightly") else DAYS):
        for key in range(3):
            source.topic.append(key % 2, source.put(key))
            clock.advance(8 * 3600)
            driver.batch()
            driver.compact()
            driver.merge_runs(3)
        assert driver.table.snapshot is not None
        expiry = expiry or Expiry(driver.table.store, driver.table.commit, 1)
        expiry.run(driver.table.snapshot, EpochMs(clock.now_ms() - 48 * HOUR_MS))
        if day >= 10:
            folders = ("base/", "_lakesplice/deltas", "_lakesplice/index")
            paths = lake.within("shop/goods").list("")
            sizes.append(sum(path.startswith(folders) for path in paths))
    assert max(sizes) <= 2 * min(sizes)
    require_tidy(lake.within("shop/goods"))
