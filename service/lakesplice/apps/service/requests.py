"""Requests of commands, which the running driver executes between its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.apps.service.threads import run_interruptibly
from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.dispatch import answer_of, command_table, history_parameters
from lakesplice.errors import FencedError, LakespliceError
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.driver.requests import (
    CommandAnswer,
    CommandRequest,
    answer,
    forget_answers,
    pending,
)
from lakesplice.table.ingest.driver_table import DriverTable


class Requests:
    """The lake's requests; used by the main loop's thread while no batch runs.

    `tick` is called repeatedly while a request is executed, since some take long. `feed` is for
    shadows.
    """

    def __init__(
        self,
        driver: Driver,
        tables: ServiceTables,
        sources: TopicSelection,
        stopping: threading.Event,
        tick: Callable[[], None],
        feed: ShadowFeed | None = None,
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._selection = sources
        self._stopping = stopping
        self._tick = tick
        self._shadows = feed

    def waiting(self) -> bool:
        """Whether a request waits; costs one listing."""
        return bool(pending(self._driver.lake))

    def execute(self) -> None:
        """Execute and answer all that wait; a request that expired is only answered.

        Once the service is to stop, the next driver executes the rest.
        """
        for request in pending(self._driver.lake):
            reply = self._executed(request)
            if reply is None:
                return
            answer(self._driver.lake, request, reply)
            self._driver.log.info(
                "request",
                id=request.id,
                command=request.command,
                table=request.table,
                by=request.asked_by,
                done=reply.done,
                answer=reply.text,
            )
        forget_answers(self._driver.lake, self._driver.clock.now_ms())

    def _executed(self, request: CommandRequest) -> CommandAnswer | None:
        """Execute a request; None if the service is to stop before its end."""
        name = "lakesplice-request"
        return run_interruptibly(lambda: self._answer(request), name, self._tick, self._stopping)

    def _answer(self, request: CommandRequest) -> CommandAnswer:
        driver = self._driver
        if driver.clock.now_ms() > request.expires_ms:
            return CommandAnswer(False, "the request had expired")
        try:
            return answer_of(request, self._command_table(request), driver.settings)
        except FencedError:
            raise
        except LakespliceError as error:
            return CommandAnswer(False, str(error))
        except Exception as error:
            # If a request killed the driver, the next one would find it again.
            driver.log.exception("request-failed", id=request.id, command=request.command)
            return CommandAnswer(False, f"it failed, see the driver's log: {error!r}")

    def _command_table(self, request: CommandRequest) -> CommandTable:
        """The table of the request, the driver's own if it has it: the table's topic may no longer
        exist.
        """
        driver = self._driver
        table = next((table for table in self._tables if table.name.path == request.table), None)
        if table is None or table.snapshot is None:
            found = command_table(
                driver.lake, request, driver.generation, driver.clock, driver.entropy
            )
            return replace(
                found,
                starts=self._selection.starts,
                records=self._selection.records,
                origin=self._tables.names.of,
                feed=self._feed_of(TableName.from_path(request.table)),
            )
        return CommandTable(
            store=table.store,
            snapshot=table.snapshot,
            generation=table.generation,
            clock=driver.clock,
            entropy=driver.entropy,
            commit_as=table.commit,
            history_parameters=history_parameters(request),
            history=self._history,
            starts=self._selection.starts,
            records=self._selection.records,
            origin=self._tables.names.of,
            feed=self._feed_of(table.name),
        )

    def _feed_of(self, name: TableName) -> Callable[[DriverTable, Offsets], None] | None:
        """Return what brings a shadow of a table up to offsets of its topic."""
        if self._shadows is None:
            return None
        shadows = self._shadows

        def feed(table: DriverTable, ends: Offsets) -> None:
            origin = self._tables.names.of(table.source.topic)
            shadows.feed(table, name, origin, ends, self._history(table.source))

        return feed

    def _history(self, source: SourceState) -> TypeHistory | None:
        schema_topics = self._driver.schema_topics
        return (
            None
            if schema_topics is None
            else schema_topics.types(source, self._tables.names.of(source.topic))
        )
