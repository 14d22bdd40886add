"""Tables that failed for a reason that may pass: retried after pauses that become longer."""

from __future__ import annotations

from pathlib import Path

import structlog

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, initial_source
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of

NAME = TableName("shop", "goods")


def table_of(lake: LocalStore, clock: FixedClock) -> ServiceTable:
    settings = settings_of(lake.root)
    metrics = Metrics()
    metrics.register_table(str(NAME))
    log, entropy = structlog.get_logger(), SeededEntropy(1)
    driver = Driver(settings, lake, clock, entropy, Generation(lake, 1), metrics, log)
    return ServiceTable(driver, NAME, initial_source("a.shop.goods", "id", {0: Offset(0)}))


def rest_of(table: ServiceTable, clock: FixedClock) -> int:
    """How many seconds the table rests after a failure."""
    table.rest("the store is away")
    seconds = 0
    while table.rests:
        clock.advance(1)
        seconds += 1
    return seconds


def test_a_table_rests_longer_with_each_failure_and_starts_over_once_it_continued(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    table = table_of(LocalStore(tmp_path), clock)
    assert not table.rests
    assert [rest_of(table, clock) for _ in range(7)] == [1, 2, 5, 10, 30, 60, 60]
    table.forget_failures()
    assert rest_of(table, clock) == 1
