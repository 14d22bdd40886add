"""How a topic's records are read, by the configuration."""

from __future__ import annotations

from lakesplice.config import Settings
from lakesplice.config.sections.kafka import KafkaSettings
from lakesplice.config.sections.schema_registry import SchemaRegistrySettings
from lakesplice.formats.events import declare
from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.planning.intake.line import RecordReading
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.storage.schema_registry import RegistryAccess, SchemaRegistry
from lakesplice.table.protocol.ports import SchemaSource


def reading_of(
    settings: Settings, name: TableName, history: TypeHistory | None = None
) -> RecordReading:
    """Return how the records of a table of the source are read, by the configuration; `history` has
    the types that the source described elsewhere.
    """
    entry = settings.table(name)
    return RecordReading(
        table=name,
        declared=declare(entry.columns) if entry is not None and entry.columns else None,
        format=settings.format(name),
        mappings=entry.type_mapping if entry is not None else (),
        key=settings.key(name),
        history=history,
        shape=settings.shape(name),
        not_inserts=settings.not_inserts(name),
        keeps_versions=settings.keeps_versions(name),
        policy=settings.policy(name),
    )


def broker_access(kafka: KafkaSettings) -> BrokerAccess:
    """Return how the broker is reached; nothing is asked yet."""
    return BrokerAccess(kafka.bootstrap_servers, kafka.options, kafka.request_timeout_seconds)


def registry_of(settings: SchemaRegistrySettings) -> SchemaSource | None:
    """Return the schema registry, None if there is none; nothing is asked yet."""
    if settings.url is None:
        return None
    access = RegistryAccess(
        tuple(settings.url.split(",")),
        settings.numbers,
        settings.timeout_seconds,
        settings.retries,
        tuple(sorted(settings.options.items())),
    )
    return SchemaRegistry(access)
