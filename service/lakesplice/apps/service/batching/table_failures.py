"""Decides about a table whose part of a batch failed: it rests, or it is parked.

Meanwhile the running query skips it and continues with the others.
"""

from __future__ import annotations

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import CorruptFileError, RetryableError, StorageError
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.spark.jobs.batch_plan import TaskError

# A table whose part fails this often in a row, for a reason that doesn't pass, is parked.
_FAILURES_MAX = 3


class TableFailures:
    """Counts the failures of a lane's tables; safe from several threads, one per table."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._failures: dict[str, int] = {}
        self._conflicts: set[str] = set()

    def went_well(self, table: ServiceTable) -> None:
        """The table's part was committed: earlier failures are forgotten."""
        self._failures.pop(table.topic, None)
        self._conflicts.discard(table.topic)
        table.forget_failures()

    def failed(self, table: ServiceTable, error: TaskError) -> bool:
        """Let the table rest, or park it; return whether it was parked.

        A full disk or an unreachable store is not the table's fault: the table continues once that
        is repaired, without `unpark`.
        """
        detail = f"{error.kind}: {error.message}"
        table.refused = True
        if error.is_a(RetryableError):
            table.rest(error.message, unwritable=error.is_a(StorageError))
            return False
        failures = self._failures[table.topic] = self._failures.get(table.topic, 0) + 1
        self._driver.log.error(
            "table-failed",
            table=str(table.name),
            kind=error.kind,
            error=error.message,
            trace=error.trace,
        )
        if error.is_a(CorruptFileError):
            table.park(ParkReason(ParkCode.CORRUPT, detail, table.topic))
        elif failures >= _FAILURES_MAX:
            table.park(ParkReason(ParkCode.JOB_DIED, detail, table.topic))
        else:
            table.rest(detail)
        return table.parked is not None

    def overtaken(self, table: ServiceTable, detail: str) -> bool:
        """Another writer committed first. Return whether to read on at once from the table's new
        offsets. False if this happened before, with nothing committed since: then the table rests.
        """
        if table.topic not in self._conflicts:
            self._conflicts.add(table.topic)
            return True
        table.refused = True
        table.rest(f"another writer commits to the table ({detail})")
        return False
