"""All tables of a running driver, found by their topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables.read_ahead import TablesReadAhead
from lakesplice.apps.service.tables.service_table import ServiceTable
from lakesplice.apps.service.tables.topic_names import FirstRecords, TopicNames
from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import shard_of
from lakesplice.planning.sources.shards import joining_problem
from lakesplice.table.ingest.driver_table import DriverTable


class DriverTables(Protocol):
    """Tables that a driver has. Safe from any thread."""

    def __iter__(self) -> Iterator[ServiceTable]:
        """Yield every table once."""

    def of_topics(self) -> Iterator[ServiceTable]:
        """Yield every table once for each of its topics."""


class ServiceTables:
    """The tables of one kind, each once, found by their topics: those of current rows, or the
    history tables beside them. Reading is safe from any thread.
    """

    def __init__(
        self,
        driver: Driver,
        read: FirstRecords | None = None,
        others: ServiceTables | None = None,
        ahead: TablesReadAhead | None = None,
    ) -> None:
        """`read` returns the records that show which table a topic belongs to; see `TopicNames`.
        `others` are tables of the other kind: none may have the same name. `ahead` has read tables
        before they are opened.
        """
        self.names = TopicNames(driver, read)
        self._ahead = ahead
        self._driver = driver
        self._tables: dict[str, ServiceTable] = {}
        self._first: dict[TableName, ServiceTable] = {}
        self._others: ServiceTables | None = None
        if others is not None:
            self.keep_apart_from(others)
            others.keep_apart_from(self)

    def __iter__(self) -> Iterator[ServiceTable]:
        return iter(list(self._first.values()))

    def __len__(self) -> int:
        return len(self._first)

    def keep_apart_from(self, others: ServiceTables) -> None:
        """Refuse topics whose table has the name of one of these."""
        self._others = others

    def of_topics(self) -> Iterator[ServiceTable]:
        """Yield every table once for each of its topics."""
        return iter(list(self._tables.values()))

    def get(self, topic: str) -> ServiceTable | None:
        """Return the topic's table, if the driver has it."""
        return self._tables.get(topic)

    def open_topic(self, topic: str, source: SourceState) -> ServiceTable:
        """Return the topic's table; open it if it is new to the driver.

        `UsageError` if another topic feeds the same table and their rows can't be distinguished.
        """
        table = self._tables.get(topic)
        if table is not None:
            return table
        origin = self.names.of(topic)
        name = self._driver.settings.target(origin)
        shard = self.shard(topic)
        source = replace(source, shard=shard)
        self._require_unused(name, topic)
        first = self._first.get(name)
        if first is not None or shard:
            self._require_apart(name, source, first)
        self._driver.metrics.register_table(str(name))
        known = None if self._ahead is None else self._ahead.take(name)
        table = ServiceTable(self._driver, name, source, origin, first, known)
        self._tables[topic] = table
        self._first.setdefault(name, table)
        return table

    def close_topic(self, topic: str) -> None:
        """Remove a topic's table, and with its last topic its metrics, unless changes wait in it:
        then it must still be compacted.
        """
        table = self._tables.get(topic)
        if table is None or table.manifest.deltas:
            return
        del self._tables[topic]
        table.holders.remove(table)
        if table.holders:
            self._first[table.name] = table.holders[0]
            return
        del self._first[table.name]
        self._driver.metrics.drop_table(str(table.name))

    def shard(self, topic: str) -> tuple[tuple[str, str], ...]:
        """Return the topic's shard of its table, empty if all rows belong to the topic."""
        origin = self.names.of(topic)
        return shard_of(self._driver.settings.shape(origin), RecordOrigin(topic, origin))

    def _require_unused(self, name: TableName, topic: str) -> None:
        other = next((one for one in self._others or () if one.name == name), None)
        if other is not None:
            raise UsageError(
                "one topic's table of current rows and another one's history table have the same"
                " name; set `to` or `history.to` under `tables`",
                table=str(name),
                topic=topic,
                taken_by=[other.topic],
            )

    def _require_apart(
        self, name: TableName, source: SourceState, first: ServiceTable | None
    ) -> None:
        held = DriverTable(
            self._driver.lake.within(name.path),
            source,
            self._driver.generation.number,
            self._driver.clock,
            self._driver.entropy,
            beside=first,
        )
        manifest = Manifest(0) if held.snapshot is None else held.manifest
        for other in () if first is None else first.holders:
            if other.topic not in manifest.sources:
                manifest = manifest.with_source(other.source)  # it has had no change yet
        problem = joining_problem(manifest, source)
        if problem:
            others = sorted(manifest.sources.keys() - {source.topic})
            raise UsageError(problem, table=str(name), topic=source.topic, taken_by=others)


class AllTables:
    """The tables of both kinds."""

    def __init__(self, kinds: Sequence[ServiceTables]) -> None:
        self._kinds = tuple(kinds)

    def __iter__(self) -> Iterator[ServiceTable]:
        return (table for kind in self._kinds for table in kind)

    def of_topics(self) -> Iterator[ServiceTable]:
        """See `DriverTables.of_topics`."""
        return (table for kind in self._kinds for table in kind.of_topics())


def initial_source(topic: str, topic_id: str, earliest: Offsets) -> SourceState:
    """Return the source of a table that starts at the beginning of its topic."""
    partitions = {number: PartitionState(offset) for number, offset in earliest.items()}
    return SourceState(topic, topic_id, partitions)
