"""Purges of the service: rows that were deleted long ago are removed from base files, table by
table.
"""

from __future__ import annotations

from collections.abc import Callable

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.upkeep.table_memory import Intervals
from lakesplice.spark.jobs.rewrites import PurgeTask
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Purge
from lakesplice.table.upkeep.purge import PurgeRules
from lakesplice.telemetry import catalogue as metric


class Purges:
    """Purges one table at a time; two threads never call it for one table.

    `run` does the work of a task; in the service it runs on an executor.
    """

    def __init__(self, driver: Driver, run: Callable[[PurgeTask], Purge | None]) -> None:
        self._driver = driver
        self._run = run
        self._intervals = Intervals(driver.clock, driver.settings.purge.every)

    def is_due(self, table: ServiceTable) -> bool:
        """Whether it is time to look for rows that may be purged."""
        if self._purge_after(table) is None or table.snapshot is None:
            return False
        return self._intervals.is_due(table)

    def see_to(self, table: ServiceTable) -> None:
        """Purge some files; the caller handles errors, and what failed is retried in its turn."""
        driver, after = self._driver, self._purge_after(table)
        self._intervals.begin(table)
        if after is None:
            return
        now_ms = driver.deletion_clock.now_ms()
        rules = PurgeRules.older_than(after, now_ms, driver.settings.purge.ratio_min)
        number, planned_on = driver.generation.number, table.version
        intent = self._run(
            PurgeTask(table.store, table.manifest, rules, planned_on, number, driver.entropy)
        )
        if intent is None:
            return
        self._intervals.end(table)  # there may be more files, or changes came for these
        if isinstance(table.commit(intent), Committed):
            rows, name = intent.counts["rows"], str(table.name)
            driver.metrics.add(metric.PURGED_ROWS, rows)
            driver.log.info("purged", table=name, files=len(intent.inputs), rows=rows)

    def _purge_after(self, table: ServiceTable) -> float | None:
        if table.schema.keeps_versions:
            return None  # no row of it is ever deleted, and to look for some reads all rows
        settings = self._driver.settings
        entry = settings.table(table.origin)
        own = None if entry is None else entry.purge_after
        return settings.purge.after if own is None else own
