"""The service's purges: when they are due, what they remove and what they report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.apps.service.upkeep.purges import Purges
from lakesplice.model.names import HISTORY_POSITION, TableName
from lakesplice.spark.jobs.rewrites import PurgeTask
from lakesplice.table.protocol.intents import Purge
from lakesplice.table.upkeep.purge import purge
from lakesplice.telemetry import catalogue as metric
from tests.support.simulated import require_true
from tests.unit.apps.test_vacuums import DAY, HOUR, NAME, Service, show

BEFORE = {"after": 2 * HOUR, "every": DAY}


def here(task: PurgeTask) -> Purge | None:
    """What an executor does."""
    return purge(
        task.store, task.manifest, task.rules, task.planned_on, task.generation, task.entropy
    )


class Purging(Service):
    """A service's table in which a row was deleted, and both partitions went on."""

    def __init__(self, folder: Path, origin: TableName | None = None, **sections: object) -> None:
        super().__init__(folder, origin, **sections)
        self.purges = Purges(self.vacuums._driver, here)
        source = self.source
        for key in (1, 2, 3):
            source.topic.append(key % 2, source.put(key))
        source.topic.append(0, source.delete(2))
        for key in (4, 3):
            source.topic.append(key % 2, source.put(key))
        self.tasks.batch()
        self.tasks.compact()
        source_ms = self.newest_ms()
        self.clock.jump_to(max(self.clock.now_ms(), source_ms))
        self.hold()

    def newest_ms(self) -> int:
        events = [event for at in (0, 1) for event in self.source.topic.events(at)]
        return max(event.timestamp_ms for event in events)

    def hold(self) -> None:
        show(self.table, self.tasks.table)

    def turn(self) -> bool:
        due = self.purges.is_due(self.table)
        if due:
            self.purges.see_to(self.table)
            show(self.tasks.table, self.table)
        return due

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.table.manifest.files.values())

    @property
    def purged(self) -> float:
        return self.metrics.value(metric.PURGED_ROWS) or 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.mark.slow
def test_no_row_is_purged_unless_purges_are_configured(folder: Path) -> None:
    service = Purging(folder)
    service.clock.advance(30 * DAY)
    assert not service.turn()


@pytest.mark.slow
def test_rows_deleted_long_ago_leave_once_a_day_and_are_reported(folder: Path) -> None:
    service = Purging(folder, purge=BEFORE)
    assert not service.turn()  # a start is no time for it
    service.clock.advance(HOUR)
    assert service.turn()
    assert service.purged == 0  # deleted lately
    service.clock.advance(DAY - 1)
    assert not service.turn()
    service.clock.advance(1)
    before = service.rows
    assert service.turn()
    assert (service.purged, service.rows) == (1, before - 1)
    require_true(service.source, service.table.store)
    assert service.turn()  # there might have been more
    assert not service.turn()
    page = service.metrics.value(metric.COMMITS, operation="purge")
    assert page == 1


@pytest.mark.slow
def test_a_table_may_have_a_time_of_its_own(folder: Path) -> None:
    own = {"match": NAME, "purge_after": 400 * DAY}
    service = Purging(folder, tables=[own], purge=BEFORE)
    service.turn()
    service.clock.advance(2 * DAY)
    assert service.turn()
    assert service.purged == 0


@pytest.mark.slow
def test_a_renamed_table_has_the_time_of_its_name_at_the_source(folder: Path) -> None:
    entries = [
        {"match": NAME, "purge_after": 400 * DAY},
        {"match": "old.goods", "purge_after": 2 * HOUR},
    ]
    service = Purging(folder, TableName("old", "goods"), tables=entries, purge={"every": DAY})
    service.turn()
    service.clock.advance(2 * DAY)
    assert service.turn()
    assert service.purged == 1


@pytest.mark.slow
def test_a_file_with_few_of_them_is_left_alone(folder: Path) -> None:
    service = Purging(folder, purge={**BEFORE, "ratio_min": 0.9})
    service.turn()
    service.clock.advance(2 * DAY)
    assert service.turn()
    assert service.purged == 0


def test_a_history_table_is_not_searched_for_rows_to_purge(folder: Path) -> None:
    service = Purging(folder, purge=BEFORE)
    now = service.table.snapshot
    assert now is not None
    schema = now.manifest.schema
    own = (*schema.columns, replace(schema.columns[0], id=99, name=HISTORY_POSITION))
    versions = replace(schema, columns=own, key=(*schema.key, HISTORY_POSITION))
    manifest = replace(now.manifest, schema=versions)
    service.table.keep_newest(replace(now, version=now.version + 1, manifest=manifest))
    service.turn()
    service.clock.advance(2 * DAY)
    assert not service.turn()
