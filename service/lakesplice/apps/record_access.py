"""How `explain-key` reads a table's topics again, with the service's configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog
from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access, reading_of, registry_of
from lakesplice.apps.service.schema_topics import SchemaTopics, schema_topics_of
from lakesplice.config import Settings, settings_for
from lakesplice.model.names import TableName, possible_tables
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.spark.class_archive import use_archive
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars
from lakesplice.spark.jvm import QUICK_START
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.topic_ranges import TopicReader
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.spark.session import build_session
from lakesplice.table.explaining.record_values import RecordAccess

# There are few records, and they are decoded in this process.
_MASTER = "local[1]"


@contextmanager
def record_access(settings: Settings, table: TableName) -> Iterator[RecordAccess]:
    """Start Spark and give access to the topics of a table with this name in the lake.

    Blocks for some seconds. `ConfigurationError`, `SourceUnavailable`.
    """
    with broker_session(settings, _MASTER) as broker:
        types = reported_types(settings, broker.session, broker.catalogue)

        def reading(source: SourceState) -> RecordReading:
            feeding, origin = _fed(settings, source.topic, table)
            history = None if types is None else types.types(source, origin)
            return reading_of(feeding, origin, history)

        reader = TopicReader(broker.session, broker.catalogue, broker.access)
        yield RecordAccess(reader, reading, registry_of(settings.schema_registry))


@dataclass(frozen=True)
class BrokerSession:
    """A session of Spark, and the broker whose topics it reads."""

    session: SparkSession
    access: BrokerAccess
    catalogue: TopicCatalogue


@contextmanager
def broker_session(settings: Settings, master: str) -> Iterator[BrokerSession]:
    """Start Spark in this process, to read topics; it ends with the block. Blocks for some
    seconds.
    """
    spark = settings.spark
    jars, archive = ensure_jars(SPARK_KAFKA, spark.jars_folder), use_archive(spark.jars_folder)
    java = f"{QUICK_START} {archive}"
    session = build_session(master, spark.driver_memory, jars, spark.options, java)
    with ExitStack() as stack:
        stack.callback(session.stop)
        access = broker_access(settings.kafka)
        catalogue = TopicCatalogue(KafkaAdmin.in_session(session, access))
        stack.callback(catalogue.close)
        yield BrokerSession(session, access, catalogue)


def reported_types(
    settings: Settings, session: SparkSession, catalogue: TopicCatalogue
) -> SchemaTopics | None:
    """Read what the source's connectors reported about types, if the configuration names such
    topics.
    """
    log = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    found = schema_topics_of(settings, session, log)
    if found is not None:
        found.look(catalogue.describe(found.names))
    return found


def _fed(settings: Settings, topic: str, table: TableName) -> tuple[Settings, TableName]:
    """Return the settings by which a topic feeds a table, and the source's name of the table."""
    feeding = settings_for(settings, table, [topic])
    origins = [TableName.from_topic(topic), *possible_tables(topic)]
    fitting = (name for name in origins if feeding.target(name) == table)
    return feeding, next(fitting, origins[0])
