"""A real database's changes, through its real connector and Kafka, end in tables that equal it."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from lakesplice.testing.compare import Difference, compare
from tests.support.apicurio import Apicurio
from tests.support.running import Lake, take_in
from tests.support.sources import SourceServer, connector, debezium, source_server
from tests.support.statements import Statements, Table, tables

_MARK_SECONDS_MAX = 120.0
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True, eq=False)
class Form:
    """A form in which events are sent, by the connector's properties; each has a database.

    `told`: types are those that the connector tells of in its topic of schema changes; `renames`:
    that topic is read, for renames and DROPs. `keeps_nulls`: NULL arrives as null where its column
    has a default, which Apicurio's converter can't do.
    """

    name: str
    properties: Mapping[str, str]
    told: bool = False
    renames: bool = False
    keeps_nulls: bool = True


def _json(schemas: str) -> dict[str, str]:
    return {
        f"{part}.converter{end}": value
        for part in ("key", "value")
        for end, value in (("", _CONVERTER), (".schemas.enable", schemas))
    } | {"value.converter.replace.null.with.default": "false"}


def forms(registry: Apicurio) -> tuple[Form, ...]:
    """Every form that is tried."""
    names = {"schema.name.adjustment.mode": "avro"}
    return (
        Form("described", {**_json("true"), "binlog.buffer.size": "10000"}, renames=True),
        Form("plain", _json("false"), told=True, renames=True),
        Form("avro", {**registry.converters(), **names}, keeps_nulls=False),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceServer]:
    """A real MariaDB."""
    yield from source_server(tmp_path_factory.mktemp("mariadb"))


class Chain:
    """From statements to tables, in every form at once."""

    def __init__(
        self, server: SourceServer, kafka: str, registry: Apicurio, folder: Path, seed: int
    ) -> None:
        self._kafka = kafka
        self._prefix = f"chain-{secrets.token_hex(4)}"
        self.chance = random.Random(seed)
        self.sources = {
            form: Statements(
                f"{form.name}_{seed}",
                random.Random(f"{seed} {form.name}"),
                server.connect(),
                tables(nullable_default=form.keeps_nulls),
            )
            for form in forms(registry)
        }
        for source in self.sources.values():
            source.create()
            source.run(6)
        connectors = {
            form.name: connector(server, source.database, self.prefix(form), at, **form.properties)
            for at, (form, source) in enumerate(self.sources.items())
        }
        self.connect = debezium(folder / "connect", kafka, connectors)
        self.lake = Lake(
            folder,
            kafka,
            rf"{self._prefix}-.*\..*\..*",
            schema_registry={"url": registry.own, "numbers": "content-id"},
            schema_change_topics={
                "names": [self.prefix(form) for form in self.sources if form.renames],
                "bigint_unsigned_handling_mode": "precise",
            },
            schema_changes={"rename_column": "evolve"},
            compaction={"deltas_max": 2, "age_max": 5, "poll_seconds": 0.2},
        )

    def prefix(self, form: Form) -> str:
        return f"{self._prefix}-{form.name}"

    def topic(self, form: Form, table: Table) -> str:
        return f"{self.prefix(form)}.{self.sources[form].database}.{table.name}"

    def run(self, transactions: int) -> None:
        """Statements of every kind at each database."""
        for source in self.sources.values():
            source.run(transactions)

    def drop_tables(self) -> None:
        """Drop a table and make it again, of each database whose topic of schema changes is read:
        no event tells of it.
        """
        for form, source in self.sources.items():
            if form.renames:
                source.drop_and_create()

    def all_sent(self) -> dict[tuple[str, int], int]:
        """Wait until every statement's events are in Kafka; return where their topics end."""
        for form, source in self.sources.items():
            self._await_mark(f"{self.prefix(form)}.{source.database}.marks", source.mark())
        consumer = KafkaConsumer(bootstrap_servers=self._kafka)
        try:
            topics = [name for name in consumer.topics() if name.startswith(f"{self._prefix}-")]
            places = [
                TopicPartition(name, at)
                for name in topics
                if name.count(".") == 2
                for at in consumer.partitions_for_topic(name)
            ]
            ends = consumer.end_offsets(places)
        finally:
            consumer.close()
        return {(place.topic, place.partition): end for place, end in ends.items() if end}

    def equal(self, view: str) -> None:
        """Every table, column for column, is what its database says."""
        for form, source in self.sources.items():
            for table in source.tables:
                topic = self.topic(form, table)
                parked = self.lake.parked(topic)
                assert parked is None, f"{form.name}.{table.name}: {parked}"
                stored = self.lake.table(topic)
                assert not stored.snapshot.manifest.dead_letters, f"{form.name}.{table.name}"
                difference = self._difference(form, table, view)
                assert difference is None, f"{form.name}.{table.name}: {difference}"

    def drops_followed(self) -> bool:
        """Whether tables that were dropped, where anything tells of it, are as their database says.

        What tells of a DROP may come to be known after rows that were written later.
        """
        return not any(
            self._difference(form, table, "real_time")
            for form, source in self.sources.items()
            for table in source.dropped
        )

    def _difference(self, form: Form, table: Table, view: str) -> Difference | None:
        source, stored = self.sources[form], self.lake.table(self.topic(form, table))
        truth = source.truth(table, told=form.told)
        columns = stored.snapshot.manifest.schema.by_source
        truth = truth.rename_columns([columns[name].name for name in truth.column_names])
        return compare(truth, stored.read(view), table.key)

    def all_spliced(self) -> bool:
        return not any(
            self.lake.table(self.topic(form, table)).snapshot.manifest.deltas
            for form, source in self.sources.items()
            for table in source.tables
        )

    def all_kept(self, places: Mapping[Form, tuple[str, int]]) -> bool:
        """Whether no connector would read again what is before its place.

        One that reads a RENAME again, which its own history has, stops at it for good.
        """
        return all(self.connect.kept(form.name) >= place for form, place in places.items())

    def _await_mark(self, topic: str, token: str) -> None:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=self._kafka,
            auto_offset_reset="earliest",
            consumer_timeout_ms=1_000,
        )
        deadline = time.monotonic() + _MARK_SECONDS_MAX
        try:
            while not any(token.encode() in (record.value or b"") for record in consumer):
                failure = self.connect.failure()
                assert failure is None, failure
                assert time.monotonic() < deadline, f"no {token} in {topic}"
        finally:
            consumer.close()


def test_tables_equal_their_database_through_kills_and_schema_changes(
    server: SourceServer, kafka_broker: str, schema_registry: Apicurio, tmp_path: Path, seed: int
) -> None:
    chain = Chain(server, kafka_broker, schema_registry, tmp_path, seed)
    with chain.connect:
        with chain.lake.running() as service:
            chain.run(25)
            take_in(service, chain.lake, chain.all_sent())
            chain.equal("real_time")
            grows_while_the_connector_dies(chain)
            take_in(service, chain.lake, chain.all_sent())
            service.until(chain.drops_followed, "rows of dropped tables are gone")
            chain.equal("real_time")
            for form, source in chain.sources.items():
                source.create_late()
                source.add_column()
                source.widen_price()
                if form.renames:
                    source.rename_column()
            altered = {form: source.position() for form, source in chain.sources.items()}
            chain.run(15)
            service.until(lambda: chain.all_kept(altered), "the connectors keep how far they are")
            service.kill()
        chain.run(25)
        chain.drop_tables()
        chain.run(5)
        chain.connect.kill()
        chain.connect.start()
        ends = chain.all_sent()
        with chain.lake.running() as service:
            take_in(service, chain.lake, ends)
            service.until(chain.drops_followed, "rows of dropped tables are gone")
            chain.equal("real_time")
            service.until(chain.all_spliced, "every change is in its base file")
            service.terminate()
            service.ends_well(60)
    chain.equal("real_time")
    chain.equal("read_optimised")


def grows_while_the_connector_dies(chain: Chain) -> None:
    """Columns come, tables are dropped and made again, and the connector is killed between
    statements, so that it repeats some.
    """
    for _ in range(3):
        chain.run(8)
        for source in chain.sources.values():
            source.add_column()
        chain.drop_tables()
        chain.run(4)
        chain.connect.kill()
        chain.run(8)
        chain.connect.start()
