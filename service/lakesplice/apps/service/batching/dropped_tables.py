"""Handles tables that were dropped at their source, between two queries.

A fence is a commit of its own here, since the source table may never have another change. No batch
may run meanwhile. So if a runner finds a table with a DROP to handle, it leaves the table out and
restarts the queries.
"""

from __future__ import annotations

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import (
    CorruptFileError,
    FencedError,
    LakespliceError,
    RetryableError,
    StorageError,
)
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Position
from lakesplice.planning.sources.dropped_tables import DropHistory, kept, open_after
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.table.ingest.dropped_tables import (
    due_decision,
    handle_drops,
    restart_without_columns,
    waits_for_new_columns,
)
from lakesplice.telemetry import catalogue as metric


class TableDrops:
    """The DROPs that topics of schema changes reported, and the driver's tables."""

    def __init__(self, driver: Driver, tables: ServiceTables, catalogue: TopicCatalogue) -> None:
        self._driver = driver
        self._tables = tables
        self._catalogue = catalogue
        self._said: set[tuple[str, int]] = set()
        self._empty: dict[tuple[str, int], bool] = {}

    def look(self) -> None:
        """Read the new records of these topics; blocks. `SourceUnavailable` if they can't be
        read.
        """
        topics = self._driver.schema_topics
        if topics is not None:
            topics.look(self._catalogue.describe(topics.names))

    def is_due(self, table: ServiceTable) -> bool:
        """Whether a DROP must be handled before the table continues."""
        settings = self._driver.settings
        policy, never_changes = settings.policy(table.origin), settings.not_inserts(table.origin)
        history = self._drop_history(table)
        return (
            due_decision(table, history, policy, insert_only=never_changes is not None) is not None
        )

    def any_due(self) -> bool:
        """Whether a DROP must be handled for any table."""
        tables = (table for table in self._tables.of_topics() if not table.rests)
        return any(self.is_due(table) or self._waits_for_new_columns(table) for table in tables)

    def handle_all(self) -> bool:
        """Handle all DROPs; return whether a table was parked, or rests. Blocks.

        Called while no batch of any table runs. Raises `FencedError`.
        """
        parked = [self._handled(table) for table in self._tables.of_topics()]
        return any(parked)

    def _handled(self, table: ServiceTable) -> bool:
        try:
            return not table.rests and self._handle(table)
        except FencedError:
            raise
        except RetryableError as error:
            table.refused = True
            detail = (
                f"the table was dropped at the source, and its rows can't be deleted here: {error}"
            )
            table.rest(detail, unwritable=isinstance(error, StorageError))
            return True
        except LakespliceError as error:
            code = ParkCode.CORRUPT if isinstance(error, CorruptFileError) else ParkCode.JOB_DIED
            detail = f"the table was dropped at the source: {error}"
            table.park(ParkReason(code, detail, table.topic))
            return True

    def _handle(self, table: ServiceTable) -> bool:
        if self._waits_for_new_columns(table) and restart_without_columns(table):
            self._driver.log.info("table-begins-again", table=str(table.name))
            return False
        history, topics = self._drop_history(table), self._driver.schema_topics
        if topics is None or not history.drops or table.parked is not None:
            return False
        settings = self._driver.settings
        policy, never_changes = settings.policy(table.origin), settings.not_inserts(table.origin)
        result = handle_drops(table, history, policy, insert_only=never_changes is not None)
        parked = result is not None and result.parked
        if result is not None:
            table.forget_failures()
            self._report_drop(
                table, "parked" if parked else "fenced", result.position, rows=result.rows
            )
        else:
            for drop in kept(history, policy):
                if (table.topic, drop.number) not in self._said:
                    self._said.add((table.topic, drop.number))
                    self._report_drop(table, "kept", drop.position)
        before = history.drops[-1].number + 1 if parked else open_after(history, policy)
        topics.note_handled_drops(table.source, table.origin, before, parked=parked)
        return parked

    def _waits_for_new_columns(self, table: ServiceTable) -> bool:
        """Whether a table was parked for a new key and has no rows left; checked once per version,
        since it reads the table.
        """
        parked = table.parked
        if parked is None or parked.code is not ParkCode.KEY_CHANGED:
            return False
        asked = table.topic, table.version
        if asked not in self._empty:
            self._empty = {at: is_ for at, is_ in self._empty.items() if at[0] != table.topic}
            self._empty[asked] = waits_for_new_columns(table)
        return self._empty[asked]

    def _drop_history(self, table: ServiceTable) -> DropHistory:
        topics = self._driver.schema_topics
        return DropHistory() if topics is None else topics.drops(table.source, table.origin)

    def _report_drop(
        self, table: ServiceTable, outcome: str, position: Position, **facts: int
    ) -> None:
        name = str(table.name)
        self._driver.log.warning(
            "table-dropped", table=name, outcome=outcome, place=str(position), **facts
        )
        self._driver.metrics.add(metric.TABLE_DROPS, table=name, outcome=outcome)
