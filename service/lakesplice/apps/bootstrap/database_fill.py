"""Fills shadows with rows from tables of the source's database, in chunks by key."""

from __future__ import annotations

from functools import partial

from lakesplice.apps.bootstrap.fill_request import FillRequest
from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.bootstrap.source_chunks import ReadPlan, key_bounds, read_plan
from lakesplice.apps.bootstrap.table_filling import TableFilling
from lakesplice.apps.bootstrap.topic_images import newest_schema
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.model.progress.shadow_plan import ShadowPlan
from lakesplice.model.progress.source_state import SourceState
from lakesplice.spark.kafka.topics import Topic
from lakesplice.storage.source.rows import TableChanged
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.layout import random_name

_POLL_SECONDS = 1.0


class DatabaseFill:
    """Fills shadows of the table `name`; its table at the source is `origin`."""

    def __init__(
        self,
        tools: FillTools,
        request: FillRequest,
        name: TableName,
        origin: TableName,
        topic: Topic,
    ) -> None:
        self._tools, self._request = tools, request
        self._name, self._origin, self._topic = name, origin, topic
        self._source = SourceState(topic.name, topic.id)

    def plan(self) -> ShadowPlan:
        """Return the chunks, and the topic's offsets and the binlog position before the first chunk
        is read. Blocks.

        Raises `UsageError` if the table can't be read with the values that streaming gives it.
        """
        tools, read = self._tools, self._read_plan()
        # Read before the start position: changes above that position are then at or after these
        # offsets.
        ends = tools.catalogue.describe([self._topic.name])[self._topic.name].latest
        with tools.connect() as connection:
            server = connection.identity()
            found = key_bounds(connection, read, tools.required_database().bounds.chunk_rows)
        if isinstance(found, TableChanged):
            raise UsageError("the table was altered just now; run the command again")
        start, bounds = found
        return ShadowPlan(
            shadow=random_name(tools.entropy),
            topic=self._topic.name,
            topic_id=self._topic.id,
            server=server,
            database=self._origin.database,
            table=self._origin.table,
            start=start,
            created_ms=tools.clock.now_ms(),
            ends=ends,
            bounds=bounds,
            rows=read.table.rows_about,
        )

    def fill(self, table: DriverTable, plan: ShadowPlan) -> bool:
        """Read the missing chunks while the topic feeds the shadow, then wait for records that are
        newer than all rows read. Return whether such records came. Blocks.
        """
        filling = self._filling(table, plan)
        filling.fill()
        return filling.settle(self._request.settle_seconds)

    def _filling(self, table: DriverTable, plan: ShadowPlan) -> TableFilling:
        tools = self._tools
        return TableFilling(
            name=self._name,
            table=table,
            plan=plan,
            read_plan=self._read_plan(),
            reading=lambda: tools.reading(self._origin, table.source),
            feed=partial(tools.feed, table, self._name, self._origin),
            look_again=self._read_plan_again,
            connect=tools.connect,
            bounds=tools.required_database().bounds,
            clock=tools.clock,
            entropy=tools.entropy,
            progress=tools.progress,
        )

    def _read_plan(self) -> ReadPlan:
        """Return how to read the source's table, from its present columns and the topic's newest
        records.
        """
        tools, origin = self._tools, self._origin
        topic = tools.catalogue.describe([self._topic.name])[self._topic.name]
        reading = tools.reading(origin, self._source)
        schema = newest_schema(tools.reader, topic, reading, tools.shadow_feed.schemas)
        with tools.connect() as connection:
            table = connection.table(origin.database, origin.table)
        if table is None:
            raise UsageError("the database has no such table, or the user lacks SELECT on it")
        found = read_plan(table, schema, self._request.excluded_from(origin.table))
        if isinstance(found, str):
            raise UsageError(found)
        return found

    def _read_plan_again(self) -> ReadPlan:
        """Return how to read the table after it was altered; its next record shows the new
        columns.
        """
        clock = self._tools.clock
        until = clock.monotonic() + self._request.settle_seconds
        while True:
            try:
                return self._read_plan()
            except UsageError:
                if clock.monotonic() >= until:
                    raise
            clock.wait(_POLL_SECONDS)
