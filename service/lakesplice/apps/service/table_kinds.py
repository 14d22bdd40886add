"""The kinds of tables that a driver feeds: those of current rows, and history tables beside them.

Each kind has settings, tables, a choice of topics and batches of its own (docs/decisions/0056).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access
from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.broker import first_record_reader
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.schema_topics import schema_topics_of
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.tables import ServiceTable, ServiceTables, TablesReadAhead
from lakesplice.apps.service.topic_reading import TopicReading
from lakesplice.spark.kafka.dead_letter_topic import DeadLetterTopic
from lakesplice.spark.kafka.topic_ranges import TopicReader
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.spark.session import cores


@dataclass(frozen=True)
class TableKind:
    """The tables of one kind, and the driver with the settings by which they are fed."""

    driver: Driver
    tables: ServiceTables


def table_kinds(driver: Driver, session: SparkSession, ahead: TablesReadAhead) -> list[TableKind]:
    """Return the tables of current rows and, if the settings name any, the history tables beside
    them; `ahead` has read some of them.
    """
    settings = driver.settings
    current = ServiceTables(driver, first_record_reader(settings, session), ahead=ahead)
    kinds = [TableKind(driver, current)]
    beside = driver.for_histories(schema_topics_of(settings, session, driver.log))
    if beside is not None:
        histories = ServiceTables(beside, first_record_reader(settings, session), current, ahead)
        kinds.append(TableKind(beside, histories))
    return kinds


def topic_reading(
    kind: TableKind,
    session: SparkSession,
    catalogue: TopicCatalogue,
    *,
    hold_back: Callable[[Sequence[ServiceTable]], bool],
    dead_letters: DeadLetterTopic | None,
) -> TopicReading:
    """Return what reads topics for tables of a kind; arguments as those of `BatchRunner`."""
    driver = kind.driver
    drops = TableDrops(driver, kind.tables, catalogue)
    runner = partial(
        BatchRunner,
        driver=driver,
        tables=kind.tables,
        catalogue=catalogue,
        cores=partial(cores, session),
        hold_back=hold_back,
        drops=drops,
        dead_letters=dead_letters,
    )
    records = TopicReader(session, catalogue, broker_access(driver.settings.kafka))
    sources = TopicSelection(driver, kind.tables, catalogue, records)
    return TopicReading(driver, session, sources, drops, runners=(runner(), runner()))
