"""Requests of commands, which the running driver executes between its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.tables.topic_names import TopicNames
from lakesplice.apps.service.threads import run_interruptibly
from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.dispatch import (
    answer_of,
    command_table,
    history_parameters,
    settings_of_table,
)
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

    `selections` choose the topics of the tables of current rows, and of the history tables beside
    them. `tick` is called repeatedly while a request is executed, since some take long. `shadows`
    reads topics for shadows.
    """

    def __init__(
        self,
        driver: Driver,
        selections: Sequence[TopicSelection],
        stopping: threading.Event,
        tick: Callable[[], None],
        shadows: ShadowFeed,
    ) -> None:
        self._driver = driver
        self._selections = tuple(selections)
        self._stopping = stopping
        self._tick = tick
        self._shadows = shadows

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
            return answer_of(request, self._command_table(request))
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
        driver, name = self._driver, TableName.from_path(request.table)
        selection, table = self._held(name)
        if table is None or table.snapshot is None:
            found = command_table(
                driver.lake,
                request,
                driver.generation,
                driver.clock,
                driver.entropy,
                settings=driver.settings,
            )
            return replace(
                found,
                starts=selection.starts,
                records=selection.records,
                origin=selection.tables.names.of,
                feed=self._feed_of(name),
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
            starts=selection.starts,
            records=selection.records,
            origin=selection.tables.names.of,
            feed=self._feed_of(table.name),
            settings=settings_of_table(driver.settings, request, table.snapshot),
        )

    def _held(self, name: TableName) -> tuple[TopicSelection, ServiceTable | None]:
        """The table, if the driver has it, and the selection of its topics."""
        for selection in self._selections:
            for table in selection.tables:
                if table.name == name:
                    return selection, table
        return self._selections[0], None

    def _feed_of(self, name: TableName) -> Callable[[DriverTable, Offsets], None]:
        """Return what brings a shadow of a table up to offsets of its topic."""

        def feed(table: DriverTable, ends: Offsets) -> None:
            origin = self._names.of(table.source.topic)
            self._shadows.feed(table, name, origin, ends, self._history(table.source))

        return feed

    @property
    def _names(self) -> TopicNames:
        return self._selections[0].tables.names

    def _history(self, source: SourceState) -> TypeHistory | None:
        topics = self._driver.schema_topics
        return None if topics is None else topics.types(source, self._names.of(source.topic))
