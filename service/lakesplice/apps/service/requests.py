"""Requests of commands, executed by the running driver between its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.interruptible_work import run_interruptibly
from lakesplice.apps.service.sources.topic_selection import Sources
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.apps.table_commands.dispatch import answer_of, told_by, workplace
from lakesplice.apps.table_commands.workplace import Workplace
from lakesplice.errors import FencedError, LakespliceError
from lakesplice.formats.events import TypeHistory
from lakesplice.model.manifest import SourceState
from lakesplice.table.driver.requests import Answer, Request, answer, forget_answers, pending


class Requests:
    """The lake's requests; used by the main loop's thread, while no batch runs.

    `tick` is called again and again while one is executed: some take long.
    """

    def __init__(
        self,
        driver: Driver,
        tables: ServiceTables,
        sources: Sources,
        stopping: threading.Event,
        tick: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._sources = sources
        self._stopping = stopping
        self._tick = tick

    def waiting(self) -> bool:
        """Whether any request waits; costs one listing."""
        return bool(pending(self._driver.lake))

    def execute(self) -> None:
        """Execute and answer all that wait; one that expired is answered only.

        Once the service is to stop, what isn't done is left to the next driver.
        """
        for request in pending(self._driver.lake):
            given = self._executed(request)
            if given is None:
                return
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

    def _executed(self, request: Request) -> Answer | None:
        """Execute a request; None if the service is to stop before its end."""
        name = "lakesplice-request"
        return run_interruptibly(lambda: self._answer(request), name, self._tick, self._stopping)

    def _answer(self, request: Request) -> Answer:
        driver = self._driver
        if driver.clock.now_ms() > request.expires_ms:
            return Answer(False, "the request had expired")
        try:
            return answer_of(request, self._workplace(request), driver.settings)
        except FencedError:
            raise
        except LakespliceError as error:
            return Answer(False, str(error))
        except Exception as error:
            # A driver that dies of a request would find it again when it is back.
            driver.log.exception("request-failed", id=request.id, command=request.command)
            return Answer(False, f"it failed, see the driver's log: {error!r}")

    def _workplace(self, request: Request) -> Workplace:
        """The request's table, through the driver's own if it holds it: its topic may be gone."""
        driver = self._driver
        held = next((table for table in self._tables if table.name.path == request.table), None)
        if held is None or held.snapshot is None:
            found = workplace(driver.lake, request, driver.generation, driver.clock, driver.entropy)
            return replace(found, starts=self._sources.starts, origin=self._tables.names.of)
        return Workplace(
            store=held.store,
            snapshot=held.snapshot,
            generation=held.generation,
            clock=driver.clock,
            entropy=driver.entropy,
            committing=held.commit,
            told=told_by(request),
            history=self._history,
            starts=self._sources.starts,
            origin=self._tables.names.of,
        )

    def _history(self, source: SourceState) -> TypeHistory | None:
        told = self._driver.schema_topics
        return None if told is None else told.types(source, self._tables.names.of(source.topic))
