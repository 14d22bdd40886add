"""From a real database's statements to tables, by its connector and Kafka, in several forms."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.testing.compare import Difference, compare
from tests.support.apicurio import Apicurio
from tests.support.command_line import CommandLine
from tests.support.public_schemas import PublicSchemas
from tests.support.public_tables import PublicTable, difference
from tests.support.running import Lake
from tests.support.sources import (
    SourceServer,
    await_record,
    connector,
    debezium,
    table_topic_ends,
)
from tests.support.statement_tables import Table as Made
from tests.support.statement_tables import moved_tables, tables
from tests.support.statements import Statements

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
    described = {**_json("true"), "binlog.buffer.size": "10000"}
    return (
        Form("described", described, renames=True),
        Form("plain", _json("false"), told=True, renames=True),
        Form("avro", {**registry.converters(), **names}, keeps_nulls=False),
    )


class Chain:
    """From statements to tables, in every form at once."""

    def __init__(
        self,
        server: SourceServer,
        kafka: str,
        registry: Apicurio,
        folder: Path,
        seed: int,
        only: Sequence[str] | None = None,
        moving: str = "described",
        public: PublicSchemas | None = None,
    ) -> None:
        """`only`: the names of the forms that are tried, instead of all; `moving`: that of the one
        with tables of which statements move rows without an event; `public`: databases beside
        theirs, with a connector of their own.
        """
        tried = [form for form in forms(registry) if only is None or form.name in only]
        self._kafka, token = kafka, secrets.token_hex(4)
        self._prefix = f"chain-{token}"
        self.public = public
        self.chance = random.Random(seed)
        self.sources = {
            form: Statements(
                f"{form.name}_{token}",
                random.Random(f"{seed} {form.name}"),
                server.connect(),
                tables(nullable_default=form.keeps_nulls),
                moved=moved_tables() if form.name == moving else [],
            )
            for form in tried
        }
        for source in self.sources.values():
            source.create()
            source.run(6)
        connectors = {
            form.name: connector(server, source.database, self.prefix(form), at, **form.properties)
            for at, (form, source) in enumerate(self.sources.items())
        }
        for form, source in self.sources.items():
            if form.name == moving:
                self.moving = form
                connectors[form.name]["signal.data.collection"] = f"{source.database}.signals"
        if public is not None:
            described = {**_json("true"), "binlog.buffer.size": "10000"}
            connectors["public"] = connector(
                server, public.pattern, self._public, len(connectors), **described
            )
        self.connect = debezium(folder / "connect", kafka, connectors)
        self.lake = Lake(
            folder,
            kafka,
            rf"{self._prefix}-.*\..*\..*",
            schema_registry={"url": registry.own, "numbers": "content-id"},
            schema_change_topics={
                "names": [
                    *(self.prefix(form) for form in self.sources if form.renames),
                    *([self._public] if public is not None else []),
                ],
                "bigint_unsigned_handling_mode": "precise",
            },
            schema_changes={"rename_column": "evolve"},
            compaction={"deltas_max": 2, "age_max": 5, "poll_seconds": 0.2},
            # What comes after a kill waits for it.
            lease=3,
        )

    @property
    def _public(self) -> str:
        return f"{self._prefix}-public"

    def prefix(self, form: Form) -> str:
        return f"{self._prefix}-{form.name}"

    def topic(self, form: Form, table: Made) -> str:
        return f"{self.prefix(form)}.{self.sources[form].database}.{table.name}"

    def run(self, transactions: int) -> None:
        """Statements of every kind at each database."""
        for source in self.sources.values():
            source.run(transactions)

    def regroup_partitions(self) -> None:
        """Cut partitions otherwise, once the connectors read the binlog: every row stays.

        A DDL fails a snapshot that runs: "Table definition has changed, please retry transaction".
        """
        self.all_sent()
        # The first mark may be a row of the snapshot; what is written after that comes behind it.
        self.all_sent()
        self.sources[self.moving].regroup_partitions()

    def drop_tables(self) -> None:
        """Drop a table and make it again, of each database whose topic of schema changes is read:
        no event tells of it.
        """
        for form, source in self.sources.items():
            if form.renames:
                source.drop_and_create()

    def configure_moves(self, behaviour: str) -> None:
        """Let the next run of the service do this where rows were moved."""
        self.lake.configure(schema_changes={"rename_table": behaviour, "drop_partition": behaviour})

    def parked_for_moves(self) -> dict[str, ParkReason]:
        """The tables that are parked, of those of which rows were moved and the one that lost its
        name; and why.
        """
        found = {name: self._parked(name) for name in self._moved_names()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def all_park_for_moves(self) -> bool:
        return self.parked_for_moves().keys() == set(self._moved_names())

    def follow_moves(self, command: CommandLine) -> None:
        """Do what the reason for parking says: other settings, a new snapshot, unpark."""
        self.configure_moves("evolve")
        source = self.sources[self.moving]
        source.snapshot(source.moved)
        for name in self.parked_for_moves():
            ended = command("unpark", self.lake.path(self._topic_of(name)))
            assert ended.code == 0, ended.err

    def moves_followed(self) -> bool:
        """Whether tables whose rows were moved are as their database says, and those of former
        names are empty.
        """
        source = self.sources[self.moving]
        left = any(len(self.lake.table(self._topic_of(name)).read()) for name in source.left)
        different = (self._difference(self.moving, t, "real_time") for t in source.moved)
        return not left and not any(different)

    def _moved_names(self) -> list[str]:
        source = self.sources[self.moving]
        return [*(table.name for table in source.moved), *source.left[-1:]]

    def _topic_of(self, name: str) -> str:
        return f"{self.prefix(self.moving)}.{self.sources[self.moving].database}.{name}"

    def _parked(self, name: str) -> ParkReason | None:
        with suppress(TableNotFoundError):
            return self.lake.parked(self._topic_of(name))
        return None

    def all_sent(self) -> dict[tuple[str, int], int]:
        """Wait until every statement's events are in Kafka; return where their topics end."""
        marks = {
            f"{self.prefix(form)}.{source.database}.marks": source.mark()
            for form, source in self.sources.items()
        }
        if self.public is not None:
            marks[f"{self._public}.{self.public.marks}"] = self.public.mark()
        for topic, token in marks.items():
            await_record(self._kafka, topic, token, self.connect, _MARK_SECONDS_MAX)
        keyless = self._keyless()
        ends = table_topic_ends(self._kafka, f"{self._prefix}-")
        return {place: end for place, end in ends.items() if place[0] not in keyless}

    def _keyless(self) -> set[str]:
        """Topics of public schemas' tables that park, since their rows can't be told apart."""
        if self.public is None:
            return set()
        tables = [table for table in self.public.tables() if not self.public.has_key(table)]
        return {f"{self._public}.{table.database}.{table.in_topic}" for table in tables}

    def equal(self, view: str) -> None:
        """Every table, column for column, is what its database says."""
        for form, source in self.sources.items():
            for table in source.tables:
                self._assert_equal(form, table, view)

    def _assert_equal(self, form: Form, table: Made, view: str) -> None:
        name = f"{form.name}.{table.name}"
        try:
            stored = self.lake.table(self.topic(form, table))
        except TableNotFoundError:
            # No statement has touched it yet, so there is no event of it.
            assert not len(self.sources[form].truth(table, told=form.told)), f"{name} lacks"
            return
        manifest = stored.snapshot.manifest
        assert manifest.parked is None, f"{name}: {manifest.parked}"
        assert not manifest.dead_letters, name
        difference = self._difference(form, table, view)
        assert difference is None, f"{name}: {difference}"

    def drops_followed(self) -> bool:
        """Whether tables that were dropped, where anything tells of it, are as their database says.

        What tells of a DROP may come to be known after rows that were written later.
        """
        return not any(
            self._difference(form, table, "real_time")
            for form, source in self.sources.items()
            for table in source.dropped
        )

    def _difference(self, form: Form, table: Made, view: str) -> Difference | None:
        source, stored = self.sources[form], self.lake.table(self.topic(form, table))
        truth = source.truth(table, told=form.told)
        columns = stored.snapshot.manifest.schema.by_source
        truth = truth.rename_columns([columns[name].name for name in truth.column_names])
        return compare(truth, stored.read(view), table.key)

    def public_differences(self) -> dict[str, str]:
        """How tables of public schemas differ from their database, by their names in it. Reads base
        files alone. A table without a key has to be parked for that, and one without rows may lack.
        """
        assert self.public is not None
        found = {}
        for table in self.public.tables():
            name = f"{table.database.removeprefix(f'{self.public.tag}_')}.{table.name}"
            problem = self._public_difference(table)
            if problem is not None:
                found[name] = problem
        return found

    def _public_difference(self, table: PublicTable) -> str | None:
        assert self.public is not None
        path = self.lake.root / TableName(table.database, table.in_topic).path
        truth = self.public.rows(table)
        if not (path / "_delta_log").exists():
            return None if not truth else f"{truth.total()} rows, and no table"
        parked = Table.open(path).snapshot.manifest.parked
        if parked is not None:
            keyless = parked.code is ParkCode.NO_KEY and not self.public.has_key(table)
            return None if keyless else f"parked ({parked.code}): {parked.detail}"
        return difference(truth, table.in_lake(path))

    def all_spliced(self) -> bool:
        """Whether no change of any table waits."""
        logs = self.lake.root.glob("*/*/_delta_log")
        return not any(Table.open(log.parent).snapshot.manifest.deltas for log in logs)

    def all_kept(self, places: Mapping[Form, tuple[str, int]]) -> bool:
        """Whether no connector would read again what is before its place.

        One that reads a RENAME again, which its own history has, stops at it for good.
        """
        return all(self.connect.kept(form.name) >= place for form, place in places.items())
