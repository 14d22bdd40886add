"""Chooses the tables of a batch: those with records to read, whose offsets are where the batch
starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.restart import Restart, RestartReason
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.lost_records import policy_for
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.model.choices import MissingOffsets
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.planning.sources.source_check import check_source
from lakesplice.spark.kafka.query import TopicOffsets
from lakesplice.spark.kafka.topics import Topic


@dataclass(frozen=True)
class TopicSpan:
    """One topic's part of a batch: per partition its first offset and the offset after its last."""

    table: ServiceTable
    starts: Offsets
    ends: Offsets

    @property
    def records(self) -> int:
        """The number of offsets."""
        return sum(self.ends.values()) - sum(self.starts.values())


class BatchSelection:
    """Chooses the tables of one lane's batches. A table that can't continue is parked or refused,
    and the query is asked to restart.
    """

    def __init__(
        self, driver: Driver, tables: ServiceTables, drops: TableDrops, restart: Restart
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._drops = drops
        self._restart = restart

    def choose(
        self, topics: Mapping[str, Topic], starts: TopicOffsets, ends: TopicOffsets
    ) -> dict[str, TopicSpan]:
        """Return the spans of a batch by topic; blocks on the topics of schema changes."""
        spans = {}
        for name, topic_ends in ends.items():
            table = self._tables.get(name)
            if table is None or table.refused or table.parked:
                continue
            if not continues(self._driver, table, topics.get(name), self._restart):
                continue
            moved = {at: end for at, end in topic_ends.items() if end > starts[name][at]}
            span = TopicSpan(table, {at: starts[name][at] for at in moved}, moved)
            if moved and self._stands_at(span):
                spans[name] = span
        return self._with_types(topics, spans)

    def _with_types(
        self, topics: Mapping[str, Topic], spans: dict[str, TopicSpan]
    ) -> dict[str, TopicSpan]:
        """Read the new schema changes, and leave out tables that are parked because of them."""
        schema_topics = self._driver.schema_topics
        if schema_topics is None or not spans:
            return spans
        schema_topics.look(topics)
        known = {}
        for name, span in spans.items():
            table = span.table
            reason = schema_topics.overtaken(table.source, table.origin, table.schema)
            if reason is not None:
                table.park(reason)
                self._restart.ask(RestartReason.REDIRECT)
            elif self._drops.is_due(table):
                table.refused = True
                self._restart.ask(RestartReason.REDIRECT)
            else:
                known[name] = span
        return known

    def _stands_at(self, span: TopicSpan) -> bool:
        here = span.table.next_offsets(span.starts)
        if here == span.starts:
            return True
        detail = f"stands at {here}, the batch starts at {dict(span.starts)}"
        refuse(self._driver, span.table, detail, self._restart)
        return False


def continues(driver: Driver, table: ServiceTable, topic: Topic | None, restart: Restart) -> bool:
    """Whether the topic is still the one that the table read; if not, the table is parked.

    If the settings say otherwise about lost records, the next start of the queries follows them.
    """
    if topic is None or topic.leaderless:
        return True  # the query fails on it and is started without it
    reason = check_source(table.source, topic.name, topic.id, topic.earliest, topic.latest)
    if reason is not None:
        if policy_for(driver, table, reason) is MissingOffsets.PARK:
            table.park(reason)
        else:
            table.refused = True
        restart.ask(RestartReason.REDIRECT)
    return reason is None


def refuse(driver: Driver, table: ServiceTable, detail: str, restart: Restart) -> None:
    """Skip the table until the query restarts from the table's offsets."""
    driver.log.info("table-refused", table=str(table.name), reason=detail)
    table.refused = True
    restart.ask(RestartReason.REFUSED_COMMIT)


def by_table(spans: Mapping[str, TopicSpan]) -> list[dict[str, TopicSpan]]:
    """Return the spans of each table together."""
    tables: dict[TableName, dict[str, TopicSpan]] = {}
    for name, span in spans.items():
        tables.setdefault(span.table.name, {})[name] = span
    return list(tables.values())
