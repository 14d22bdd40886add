"""The tools of a command that fills tables: broker, lake, database and a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lakesplice.apps.bootstrap.source_chunks import LoadBounds
from lakesplice.apps.record_access import broker_session, reported_types
from lakesplice.apps.record_reading import reading_of, registry_of
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
from lakesplice.config import Settings
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.spark.kafka.topic_ranges import TopicReader
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.ports import UNWATCHED, Clock, Entropy, Progress

_MASTER = "local[2]"


@dataclass(frozen=True)
class Database:
    """The server that is read, and the limits of its load; `certificates` is a file of trusted
    certificates.
    """

    address: DatabaseAddress
    bounds: LoadBounds
    certificates: str | None = None


@dataclass
class FillTools:
    """The tools that all tables of a command share; `database` is None if none was named."""

    settings: Settings
    lake: AnyStore
    catalogue: TopicCatalogue
    reader: TopicReader
    shadow_feed: ShadowFeed
    types: SchemaTopics | None
    database: Database | None
    clock: Clock
    entropy: Entropy
    progress: Progress
    patience: RequestWait

    def topics(self, globs: Sequence[str]) -> list[tuple[TableName, Topic]]:
        """Return the matching topics that the configuration reads, by their tables."""
        pattern = self.settings.kafka.topic_pattern.pattern
        chosen = {}
        for name in self.catalogue.matching(pattern):
            with suppress(UsageError):  # not the name of a table's topic; the service reports it
                origin = TableName.from_topic(name)
                if self.settings.reads(origin) and origin.matches(globs):
                    chosen[name] = origin
        found = self.catalogue.describe(chosen)
        return [(chosen[name], topic) for name, topic in sorted(found.items())]

    def required_database(self) -> Database:
        """Return the database; raises `UsageError` if none was named."""
        if self.database is None:
            raise UsageError("which database? give --database or set doctor.database")
        return self.database

    def connect(self) -> SourceConnection:
        """Open a connection to the database."""
        database = self.required_database()
        return SourceConnection(database.address, self.clock, database.certificates)

    def reading(self, origin: TableName, source: SourceState) -> RecordReading:
        """Return how records of a source's table are read."""
        history = None if self.types is None else self.types.types(source, origin)
        return reading_of(self.settings, origin, history)

    def give(self, name: TableName, command: str, arguments: Mapping[str, Any]) -> None:
        """Give a command about a table to the service, or execute it if none runs. Blocks."""
        give_command(
            f"{self.settings.lake.address}/{name.path}",
            command,
            arguments,
            settings=self.settings,
            patience=self.patience,
            options=self.settings.lake.options,
        )

    def feed(
        self,
        table: DriverTable,
        name: TableName,
        origin: TableName,
        after_batch: Callable[[], None] | None = None,
    ) -> None:
        """Apply a topic's records to a shadow of the table `name`, up to the topic's present end.
        Blocks.

        Raises `UsageError` if the topic no longer has the records that the shadow needs, and the
        errors of `ShadowFeed.feed`.
        """
        topic = self.catalogue.describe([table.source.topic]).get(table.source.topic)
        if topic is None or topic.id != table.source.topic_id:
            raise UsageError(
                "the topic was deleted and re-created; run the command again with --again"
            )
        if lost := _lost(table.next_offsets(topic.latest), topic.earliest):
            raise UsageError(
                "the topic's retention deleted records that the table needs; set a longer "
                "retention, and run the command again with --again",
                partitions=lost,
            )
        if self.types is not None:
            self.types.look(self.catalogue.describe(self.types.names))
        history = None if self.types is None else self.types.types(table.source, origin)
        self.shadow_feed.feed(table, name, origin, topic.latest, history, after_batch)


@contextmanager
def fill_tools(
    settings: Settings,
    database: Database | None,
    progress: Progress = UNWATCHED,
    patience: RequestWait | None = None,
) -> Iterator[FillTools]:
    """Yield the tools, with a session of Spark that ends with them. Blocks."""
    with broker_session(settings, _MASTER) as broker:
        lake = open_store(settings.lake.address, settings.lake.options)
        registry, entropy = registry_of(settings.schema_registry), SystemEntropy()
        yield FillTools(
            settings=settings,
            lake=lake,
            catalogue=broker.catalogue,
            reader=TopicReader(broker.session, broker.catalogue, broker.access),
            shadow_feed=ShadowFeed(broker.session, settings, lake, entropy, registry),
            types=reported_types(settings, broker.session, broker.catalogue),
            database=database,
            clock=SystemClock(),
            entropy=entropy,
            progress=progress,
            patience=patience or RequestWait(),
        )


def _lost(offsets: Offsets, earliest: Offsets) -> list[int]:
    return sorted(at for at, first in earliest.items() if offsets.get(at, 0) < first)
