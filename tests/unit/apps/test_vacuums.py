"""The service's vacuums: when they are due, what they delete and what they report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from pyspark.sql import SparkSession

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.upkeep.table_upkeep import Upkeep
from lakesplice.apps.service.upkeep.vacuums import Vacuums
from lakesplice.model.names import TableName
from lakesplice.table.driver.generation import Generation
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.by_hand import NoKeeper
from tests.support.clocked import ClockedStore
from tests.support.service_settings import settings_of
from tests.support.simulated import Source, driver_of, require_tidy, require_true

HOUR, DAY = 3_600, 86_400
NAME = "shop.goods"


def show(table: DriverTable, other: DriverTable) -> None:
    """Show a table the version that another handle of it made."""
    assert other.snapshot is not None
    table.keep_newest(other.snapshot)


class Service:
    """A table's ingest and compaction as simulated, its vacuums as the service does them."""

    def __init__(self, folder: Path, origin: TableName | None = None, **sections: Any) -> None:
        self.clock, self.source, self.folder = FixedClock(), Source(), folder
        self.lake = ClockedStore(folder, self.clock)
        self.tasks = driver_of(self.source, self.lake, clock=self.clock)
        self.live(1)
        self.metrics = Metrics()
        driver = Driver(
            settings_of(folder, **sections),
            self.lake,
            self.clock,
            SeededEntropy(9),
            Generation(self.lake, 1),
            self.metrics,
            structlog.get_logger(),
        )
        name = TableName.from_path(self.tasks.name.path)
        self.activity = driver.activity
        self.activity.show_clock_difference(0)
        self.metrics.register_table(str(name))
        self.table = ServiceTable(driver, name, self.tasks.table.source, origin)
        self.log = Maintenance(
            self.table.store,
            NoKeeper(),
            self.clock,
            checkpoint_every=10,
            retention_seconds=driver.settings.retention(name),
            expiry=Expiry(self.table.store, self.table.commit, 1),
        )
        self.vacuums = Vacuums(driver)

    def live(self, hours: int) -> None:
        for _ in range(hours):
            self.source.topic.append(0, self.source.put(1))
            self.clock.advance(HOUR)
            self.tasks.batch()
            self.tasks.compact()

    def turn(self) -> bool:
        """What a compactor's thread does; whether it was due."""
        due = self.vacuums.is_due(self.table)
        if due:
            show(self.table, self.tasks.table)
            self.vacuums.see_to(self.table, self.log)
            show(self.tasks.table, self.table)
        return due

    def deleted(self, kind: str) -> float:
        return self.metrics.value(metric.VACUUMED_FILES, kind=kind) or 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.mark.slow
def test_expired_versions_go_by_the_hour_and_are_reported(folder: Path) -> None:
    service = Service(folder, log={"retention": 4 * HOUR})
    assert not service.turn()  # after a start the tables that wait for batches come first
    service.clock.advance(HOUR / 24)
    assert service.turn()
    assert not service.turn()
    for _ in range(12):
        service.live(1)
        assert service.turn()
    deleted = service.deleted("expired")
    assert deleted > 10
    assert (service.metrics.value(metric.VACUUMED_BYTES, kind="expired") or 0) > deleted
    oldest = service.metrics.value(metric.RETAINED_FROM, table=NAME)
    assert oldest == service.table.manifest.retention.retained_from
    assert oldest > 0
    require_tidy(service.table.store)
    require_true(service.source, service.table.store)


@pytest.mark.slow
def test_a_clock_that_jumps_ahead_of_the_stores_deletes_no_version(folder: Path) -> None:
    service = Service(folder, log={"retention": 4 * HOUR})
    upkeep = Upkeep(service.vacuums._driver, cast(SparkSession, None))
    service.log = upkeep._log_of(service.table)
    service.live(3)
    service.turn()
    right_ms = service.clock.now_ms()
    for difference in (-30 * DAY, None):  # as the driver finds it, and before it has looked
        service.clock.jump_to(right_ms + 30 * DAY * 1000)
        service.activity._clock_difference = difference
        service.clock.advance(HOUR)
        assert service.turn()
        assert service.deleted("expired") == 0
        assert service.table.manifest.retention.retained_from == 0
    service.clock.jump_to(right_ms + 8 * HOUR * 1000)
    service.activity.show_clock_difference(0)
    service.clock.advance(HOUR)
    assert service.turn()
    assert service.deleted("expired") > 0


@pytest.mark.slow
def test_orphans_go_at_the_second_sweep_while_batches_continue(folder: Path) -> None:
    log, vacuum = {"retention": 2 * HOUR}, {"orphans_every": 12 * HOUR}
    service = Service(folder, log=log, vacuum=vacuum)
    orphan = folder / service.tasks.name.path / "part-0.parquet"
    orphan.write_bytes(b"refused")
    os.utime(orphan, (service.clock.now_ms() / 1000,) * 2)
    service.turn()
    left = []
    for _ in range(40):
        service.live(1)
        service.turn()
        left.append(service.metrics.value(metric.ORPHANS_LEFT, table=NAME))
    assert not orphan.exists()
    assert service.deleted("orphan") == 1
    assert 1.0 in left
    assert left[-1] == 0
    require_true(service.source, service.table.store)


def test_half_written_files_of_a_dead_process_are_deleted_and_new_files_stay(folder: Path) -> None:
    service = Service(folder)
    tmp = folder / "_lakesplice/tmp"
    old, new = tmp / "old", tmp / "new"
    for file, age in ((old, 2 * DAY), (new, 0)):
        file.write_bytes(b"half")
        os.utime(file, (service.clock.now_ms() / 1000 - age,) * 2)
    service.turn()
    service.clock.advance(2 * HOUR)
    assert service.turn()
    assert not old.exists()
    assert new.exists()


@pytest.mark.slow
def test_a_table_of_its_own_retention_keeps_to_it(folder: Path) -> None:
    own = [{"match": NAME, "retention": 48 * HOUR}]
    service = Service(folder, log={"retention": HOUR}, tables=own)
    for _ in range(20):
        service.live(1)
        service.turn()
    assert service.deleted("expired") == 0
    assert service.table.manifest.retention.retained_from == 0


def test_a_renamed_table_is_known_to_the_configuration_by_its_name_at_the_source(
    folder: Path,
) -> None:
    at_source = {"match": "old.goods", "whole_snapshots": False, "retention": 48 * HOUR}
    in_the_lake = {"match": NAME, "whole_snapshots": True, "retention": 2 * HOUR}
    renamed = Service(folder, TableName("old", "goods"), tables=[in_the_lake, at_source])
    assert not renamed.table.whole_snapshots
    assert renamed.table._log_retention_hours == 48


def test_less_than_an_hour_has_to_be_asked_for_by_what_it_risks(folder: Path) -> None:
    with pytest.raises(ValueError, match="readers_may_fail"):
        settings_of(folder, log={"retention": 60})
    settings_of(folder, log={"retention": 60, "readers_may_fail": True})
