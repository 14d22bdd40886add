"""Vacuums of the service: expired versions by the hour, orphans by the day, table by table."""

from __future__ import annotations

from collections.abc import Mapping

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.upkeep.table_memory import Intervals
from lakesplice.planning.upkeep.retention import temporaries_before_ms
from lakesplice.storage.stores import drop_temporaries
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.upkeep.expiry import Expired
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.table.upkeep.vacuum import orphans_before_ms
from lakesplice.telemetry import catalogue as metric


class Vacuums:
    """Vacuums one table at a time; two threads never call it for one table."""

    def __init__(self, driver: Driver) -> None:
        clock, settings = driver.clock, driver.settings.vacuum
        self._driver = driver
        self._expiries = Intervals(clock, settings.every)
        self._sweeps = Intervals(clock, settings.orphans_every)

    def is_due(self, table: ServiceTable) -> bool:
        """Whether it is time to look for files to delete."""
        due = [self._sweeps.is_due(table), self._expiries.is_due(table)]
        return any(due)

    def see_to(self, table: ServiceTable, log: Maintenance) -> None:
        """Do what is due; the caller handles errors, and what failed is retried in its turn."""
        if self._expiries.is_due(table):
            self._expiries.begin(table)
            if table.snapshot is not None:
                self.note(table, log.expire(table.snapshot))
        if self._sweeps.is_due(table):
            self._sweeps.begin(table)
            self._sweep(table)

    def note(self, table: ServiceTable, expired: Expired | Conflict | None) -> None:
        """Report in metrics and log what was deleted; if something is left, it is due at once."""
        if expired is None or isinstance(expired, Conflict):
            return
        self._count(table, "expired", expired.files)
        if expired.done:
            now = self._driver.clock.now_ms() / 1000
            self._driver.metrics.since(metric.LAST_VACUUM, now, table=str(table.name))
        else:
            self._expiries.end(table)

    def _sweep(self, table: ServiceTable) -> None:
        driver, name = self._driver, str(table.name)
        if table.snapshot is None:
            return
        retention = driver.settings.retention(table.origin)
        now_ms = driver.deletion_clock.now_ms()
        before_ms = orphans_before_ms(now_ms, retention)
        orphans = Orphans(table.store, table.commit, driver.generation.number)
        swept = orphans.sweep(table.snapshot, before_ms, at_once=False)
        self._count(table, "orphan", swept.files)
        dropped = drop_temporaries(table.store, temporaries_before_ms(now_ms))
        if dropped:
            driver.log.info("temporaries-dropped", files=dropped)
        driver.metrics.set(metric.ORPHANS_LEFT, len(swept.left), table=name)

    def _count(self, table: ServiceTable, kind: str, files: Mapping[str, int]) -> None:
        if files:
            metrics, name, size = self._driver.metrics, str(table.name), sum(files.values())
            metrics.add(metric.VACUUMED_FILES, len(files), kind=kind)
            metrics.add(metric.VACUUMED_BYTES, size, kind=kind)
            self._driver.log.info("vacuumed", table=name, kind=kind, files=len(files), bytes=size)
