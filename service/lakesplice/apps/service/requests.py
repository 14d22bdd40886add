"""Requests of commands, executed by the running driver between its batches."""

from __future__ import annotations

from lakesplice.apps.letters import executed, reading_of
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.table.replay import LetterBox
from lakesplice.table.requests import (
    Answer,
    Request,
    answer,
    forget_answers,
    pending,
    was_executed,
)

# A request is looked for in the history from this long before it expired.
_EXECUTED_WITHIN_MS = 3_600_000


class Requests:
    """The lake's requests; used by the main loop's thread, while no batch runs."""

    def __init__(self, driver: Driver, tables: ServiceTables) -> None:
        self._driver = driver
        self._tables = tables

    def waiting(self) -> bool:
        """Whether any request waits; costs one listing."""
        return bool(pending(self._driver.lake))

    def execute(self) -> None:
        """Execute and answer all that wait; one that expired is answered only."""
        for request in pending(self._driver.lake):
            given = self._answer(request)
            answer(self._driver.lake, request, given)
            self._driver.log.info(
                "request",
                id=request.id,
                command=request.command,
                table=request.table,
                by=request.asked_by,
                done=given.done,
                answer=given.text,
            )
        forget_answers(self._driver.lake, self._driver.clock.now_ms())

    def _answer(self, request: Request) -> Answer:
        driver = self._driver
        table = next((table for table in self._tables if table.name.path == request.table), None)
        if table is None or table.snapshot is None:
            return Answer(False, "the driver has no such table; its topic may be gone")
        if was_executed(table.store, request, request.expires_ms - _EXECUTED_WITHIN_MS):
            return Answer(True, "done before; see the table's history")
        if driver.clock.now_ms() > request.expires_ms:
            return Answer(False, "the request had expired")
        return executed(request, self._box(table), reading_of(driver.settings, table.origin))

    def _box(self, table: ServiceTable) -> LetterBox:
        assert table.snapshot is not None
        driver = self._driver
        return LetterBox(
            table.store,
            table.snapshot,
            table.commit,
            driver.generation.number,
            driver.clock,
            driver.entropy,
        )
