"""The tables of a configuration that are to be filled from their database, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from lakesplice.apps.bootstrap.source_chunks import LoadBounds, ReadPlan, key_bounds, read_plan
from lakesplice.apps.bootstrap.table_filling import TableFilling
from lakesplice.apps.bootstrap.topic_images import newest_schema
from lakesplice.apps.record_access import reading_session, reported_types
from lakesplice.apps.record_reading import reading_of, registry_of
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
from lakesplice.apps.table_commands.work import SWAP
from lakesplice.config import Settings
from lakesplice.errors import LakespliceError, UsageError
from lakesplice.model.manifest import SourceState
from lakesplice.model.names import TableName
from lakesplice.model.progress.shadow_plan import ShadowPlan
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.shape.metadata_columns import Origin
from lakesplice.planning.shape.shaping import shard_of
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.topic_ranges import TopicReader
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection, TableChanged
from lakesplice.storage.stores import open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    begin_shadow,
    live_snapshot,
    read_shadow_plan,
    shadow_table,
    swap_intent,
    swapped_version,
)
from lakesplice.table.protocol.commit import Committed, swap_in
from lakesplice.table.protocol.ports import UNWATCHED, Clock, Entropy, Progress, Store
from lakesplice.table.protocol.shadow_store import (
    close_all_shadows,
    close_shadow,
    open_shadows,
)

_MASTER = "local[2]"
_ID_BITS = 64
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What became of a table: `state` is `filled`, `planned`, `given up`, `exists`, `refused` or
    `stopped`; the last two say why in `detail`.

    `is_complete` says that the table was as the source was at one moment when readers saw it first.
    """

    table: str
    topic: str
    state: str
    chunks: int = 0
    rows: int = 0
    seconds: float = 0.0
    is_complete: bool = False
    detail: str = ""


@dataclass(frozen=True)
class Wishes:
    """What is to be done: `rebuild` tables that are there, begin `again` what was begun, give that
    up and do nothing else (`give_up`), or only say (`dry_run`). `excluded` are columns that the
    connector leaves out, as `table.column` or by their name alone.
    """

    tables: Sequence[str] = ()
    rebuild: bool = False
    again: bool = False
    give_up: bool = False
    dry_run: bool = False
    excluded: Sequence[str] = ()
    settle_seconds: float = 60.0


def bootstrap(
    settings: Settings,
    address: DatabaseAddress,
    wishes: Wishes,
    bounds: LoadBounds,
    certificates: str | None = None,
    progress: Progress = UNWATCHED,
    patience: RequestWait | None = None,
) -> Iterator[TableOutcome]:
    """Fill the tables that match, and yield what became of each. Blocks, for as long as it takes.

    Tables are independent: an error is one table's. `ConfigurationError`, `SourceUnavailable` if
    broker or database can't be reached at all.
    """
    with _tools(settings, address, bounds, certificates, progress) as tools:
        tools.patience = patience or RequestWait()
        topics = tools.topics(wishes.tables)
        if wishes.tables and not topics:
            raise UsageError("no topic of these tables", tables=list(wishes.tables))
        for origin, topic in topics:
            yield _outcome(tools, wishes, origin, topic)


@dataclass
class _Tools:
    settings: Settings
    lake: Store
    catalogue: TopicCatalogue
    reader: TopicReader
    feed: ShadowFeed
    types: SchemaTopics | None
    address: DatabaseAddress
    certificates: str | None
    bounds: LoadBounds
    clock: Clock
    entropy: Entropy
    progress: Progress
    patience: RequestWait

    def topics(self, globs: Sequence[str]) -> list[tuple[TableName, Topic]]:
        """Return the topics that the configuration reads and that match, by their tables."""
        pattern = self.settings.kafka.topic_pattern.pattern
        chosen = {}
        for name in self.catalogue.matching(pattern):
            with suppress(UsageError):  # a name that is no table's, which the service reports
                origin = TableName.from_topic(name)
                if self.settings.reads(origin) and _matches(origin, globs):
                    chosen[name] = origin
        found = self.catalogue.describe(chosen)
        return [(chosen[name], topic) for name, topic in sorted(found.items())]

    def connect(self) -> SourceConnection:
        return SourceConnection(self.address, self.clock, self.certificates)

    def reading(self, origin: TableName, source: SourceState) -> RecordReading:
        history = None if self.types is None else self.types.types(source, origin)
        return reading_of(self.settings, origin, history)


@contextmanager
def _tools(
    settings: Settings,
    address: DatabaseAddress,
    bounds: LoadBounds,
    certificates: str | None,
    progress: Progress,
) -> Iterator[_Tools]:
    with ExitStack() as stack:
        session = reading_session(settings, _MASTER)
        stack.callback(session.stop)
        kafka = settings.kafka
        servers, options = kafka.bootstrap_servers, kafka.options
        admin = KafkaAdmin.in_session(session, servers, options, kafka.request_timeout_seconds)
        catalogue = TopicCatalogue(admin)
        stack.callback(catalogue.close)
        lake = open_store(settings.lake.address, settings.lake.options)
        registry, entropy = registry_of(settings.schema_registry), SystemEntropy()
        yield _Tools(
            settings=settings,
            lake=lake,
            catalogue=catalogue,
            reader=TopicReader(session, catalogue, servers, options),
            feed=ShadowFeed(session, settings, lake, entropy, registry),
            types=reported_types(settings, session, catalogue),
            address=address,
            certificates=certificates,
            bounds=bounds,
            clock=SystemClock(),
            entropy=entropy,
            progress=progress,
            patience=RequestWait(),
        )


def _matches(origin: TableName, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(str(origin), glob) for glob in globs)


def _outcome(tools: _Tools, wishes: Wishes, origin: TableName, topic: Topic) -> TableOutcome:
    began, name = tools.clock.monotonic(), str(origin)
    try:
        return _Work(tools, wishes, origin, topic).done(began)
    except UsageError as error:
        return TableOutcome(name, topic.name, "refused", detail=str(error))
    except LakespliceError as error:
        return TableOutcome(name, topic.name, "stopped", detail=str(error))


class _Work:
    """What one table calls for."""

    def __init__(self, tools: _Tools, wishes: Wishes, origin: TableName, topic: Topic) -> None:
        self._tools, self._wishes = tools, wishes
        self._origin, self._topic = origin, topic
        self._name = tools.settings.target(origin)
        self._store = tools.lake.within(self._name.path)
        self._source = SourceState(topic.name, topic.id)

    def done(self, began: float) -> TableOutcome:
        if self._wishes.give_up:
            given_up = close_all_shadows(self._store)
            state = "given up" if given_up else "exists"
            return TableOutcome(str(self._origin), self._topic.name, state)
        self._require_one_topic()
        plan = self._open_plan()
        if plan is None and live_snapshot(self._store) is not None and not self._wishes.rebuild:
            return TableOutcome(str(self._origin), self._topic.name, "exists")
        if plan is not None and swapped_version(self._store, plan) is not None:
            close_shadow(self._store, plan.shadow)
            return TableOutcome(str(self._origin), self._topic.name, "filled", plan.chunks)
        read, plan = self._planned(plan)
        if self._wishes.dry_run:
            rows = max(0, plan.rows)
            return TableOutcome(str(self._origin), self._topic.name, "planned", plan.chunks, rows)
        filling = self._filling(read, plan)
        filling.fill()
        is_complete = filling.settle(self._wishes.settle_seconds)
        self._swap(filling.table, plan)
        backfill = filling.table.manifest.backfill
        return TableOutcome(
            table=str(self._origin),
            topic=self._topic.name,
            state="filled",
            chunks=plan.chunks,
            rows=0 if backfill is None else backfill.rows,
            seconds=round(self._tools.clock.monotonic() - began, 1),
            is_complete=is_complete,
        )

    def _require_one_topic(self) -> None:
        shape = self._tools.settings.shape(self._origin)
        if shard_of(shape, Origin(self._topic.name, self._origin)):
            raise UsageError(
                "several topics may feed the table, which can't be filled from a database yet; let"
                " the connectors take snapshots",
                table=str(self._name),
            )

    def _open_plan(self) -> ShadowPlan | None:
        """Return the plan of the shadow that is to be continued, if there is one."""
        if self._wishes.again and not self._wishes.dry_run:
            close_all_shadows(self._store)
        shadows = open_shadows(self._store)
        return read_shadow_plan(self._store, shadows[0]) if shadows else None

    def _planned(self, begun: ShadowPlan | None) -> tuple[ReadPlan, ShadowPlan]:
        """Return how rows are read, and the plan of the shadow, which is opened if it is new."""
        tools = self._tools
        read = self.read_plan()
        if begun is not None:
            return read, begun
        # Noted before the start, since what is above that is then published at or behind the ends.
        ends = tools.catalogue.describe([self._topic.name])[self._topic.name].latest
        with tools.connect() as connection:
            server = connection.identity()
            found = key_bounds(connection, read, tools.bounds.chunk_rows)
        if isinstance(found, TableChanged):
            raise UsageError("the table was altered just now; give the command again")
        start, bounds = found
        plan = ShadowPlan(
            shadow=f"{tools.entropy.bits(_ID_BITS):016x}",
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
        if not self._wishes.dry_run:
            begin_shadow(self._store, plan)
        return read, plan

    def read_plan(self) -> ReadPlan:
        """Return how the source's table is read, by what it and its topic's records are now."""
        tools, origin = self._tools, self._origin
        topic = tools.catalogue.describe([self._topic.name])[self._topic.name]
        reading = tools.reading(origin, self._source)
        schema = newest_schema(tools.reader, topic, reading, tools.feed.schemas)
        with tools.connect() as connection:
            table = connection.table(origin.database, origin.table)
        if table is None:
            raise UsageError("the database has no such table, or the user may not read it")
        prefix = f"{origin.table}."
        excluded = frozenset(name.removeprefix(prefix) for name in self._wishes.excluded)
        found = read_plan(table, schema, excluded)
        if isinstance(found, str):
            raise UsageError(found)
        return found

    def _read_plan_again(self) -> ReadPlan:
        """Return the same after the table was altered: its next record shows how."""
        clock = self._tools.clock
        until = clock.monotonic() + self._wishes.settle_seconds
        while True:
            try:
                return self.read_plan()
            except UsageError:
                if clock.monotonic() >= until:
                    raise
            clock.wait(_POLL_SECONDS)

    def _filling(self, read: ReadPlan, plan: ShadowPlan) -> TableFilling:
        tools = self._tools
        table = shadow_table(self._store, plan, tools.clock, tools.entropy)
        policy = tools.settings.table(self._origin)
        table.whole_snapshots = policy is None or policy.whole_snapshots
        return TableFilling(
            name=self._name,
            table=table,
            plan=plan,
            read_plan=read,
            reading=lambda: tools.reading(self._origin, table.source),
            feed=partial(self._feed, table),
            look_again=self._read_plan_again,
            connect=tools.connect,
            bounds=tools.bounds,
            clock=tools.clock,
            entropy=tools.entropy,
            progress=tools.progress,
        )

    def _feed(self, table: DriverTable) -> None:
        """Bring the shadow up to where its topic ends now."""
        tools = self._tools
        topic = tools.catalogue.describe([self._topic.name]).get(self._topic.name)
        if topic is None or topic.id != table.source.topic_id:
            raise UsageError(
                "the topic was deleted and made again; give the command again with --again"
            )
        if lost := _lost(table.next_offsets(topic.latest), topic.earliest):
            raise UsageError(
                "the topic's retention deleted records that the table needs; set a longer one, and"
                " give the command again with --again",
                partitions=lost,
            )
        if tools.types is not None:
            tools.types.look(tools.catalogue.describe(tools.types.names))
        history = None if tools.types is None else tools.types.types(table.source, self._origin)
        tools.feed.feed(table, self._name, self._origin, topic.latest, history)

    def _swap(self, table: DriverTable, plan: ShadowPlan) -> None:
        tools, shadow = self._tools, table.snapshot
        assert shadow is not None
        if live_snapshot(self._store) is None:
            hours = max(1, round(tools.settings.retention(self._origin) / 3600))
            intent = swap_intent(self._store, shadow, 0, None, hours)
            outcome = swap_in(
                self._store,
                intent,
                clock=tools.clock,
                entropy=tools.entropy,
                parameters={SHADOW_PARAMETER: plan.shadow},
            )
            if isinstance(outcome, Committed):
                close_shadow(self._store, plan.shadow)
                return
        address = f"{tools.settings.lake.address}/{self._name.path}"
        give_command(
            address,
            SWAP,
            {"shadow": plan.shadow},
            settings=tools.settings,
            patience=tools.patience,
            options=tools.settings.lake.options,
        )


def _lost(offsets: Mapping[int, int], earliest: Mapping[int, int]) -> list[int]:
    return sorted(at for at, first in earliest.items() if offsets.get(at, 0) < first)
