"""A table of a real MariaDB and its copy in a lake, without a broker or a connector between them.

`Mirror.feed` writes the events that a connector would send for the changes, at the binlog's
position.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pymysql.constants import FIELD_TYPE

from benchmarks.repeating import repeating
from lakesplice.apps.verifying.catch_up import CatchUp
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import TableReport
from lakesplice.apps.verifying.stored_sums import FilePlace, StoredSums
from lakesplice.apps.verifying.verification import (
    VerificationRequest,
    VerificationTools,
    verify_table,
)
from lakesplice.errors import FencedError
from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.model.choices import NotInserts
from lakesplice.model.names import TableName
from lakesplice.model.position import Position
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import open_store
from lakesplice.table.ingest.read_rows_commit import RepairedRows, RowRepair
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import compact, envelope_schema, key_schema, money, payload, with_schema
from tests.support.sources import SourceServer

Row = tuple[Any, ...]
Key = Any  # a value, or a tuple of several columns' values


@dataclass(frozen=True)
class MirroredColumn:
    """A column: its DDL, its field in the connector's events, what it holds at random, what is sent
    of a value, and what the lake has of it.
    """

    name: str
    ddl: str
    field: Mapping[str, Any]
    draw: Callable[[random.Random], Any] = lambda _: None
    sent: Callable[[Any], Any] = lambda value: value
    stored: Callable[[Any], Any] = lambda value: value


def decimal_column(
    name: str, precision: int, scale: int, draw: Callable[[random.Random], Any] = lambda _: None
) -> MirroredColumn:
    """A DECIMAL."""
    field = {
        "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
        "parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
    }  # fmt: skip

    def sent(value: Any) -> str:
        return money(int(Decimal(value).scaleb(scale)))

    return MirroredColumn(name, f"decimal({precision},{scale})", field, draw, sent)


@dataclass(frozen=True)
class MirroredTable:
    """What the table is at the source, and how the lake takes it; `mark` makes the row of another
    key than all that the test uses.
    """

    columns: tuple[MirroredColumn, ...]
    mark: Callable[[int], Row]
    key: tuple[str, ...] = ("id",)
    shape: Shape | None = None
    policy: SchemaPolicy = DEFAULT_POLICY
    not_inserts: NotInserts | None = None
    lake_key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{column.name} {column.ddl}" for column in self.columns)
        return f"create table items ({columns}, primary key ({', '.join(self.key)}))"

    def key_of(self, row: Row) -> Key:
        """The row's key."""
        values = tuple(dict(zip(self.names, row, strict=True))[name] for name in self.key)
        return values[0] if len(values) == 1 else values


ITEMS = MirroredTable(
    (
        MirroredColumn("id", "bigint", {"type": "int64"}),
        MirroredColumn(
            "name", "varchar(40) collate utf8mb4_bin default 'none'", {"type": "string"}
        ),
        decimal_column("price", 8, 2),
        MirroredColumn("stock", "int", {"type": "int32"}),
        MirroredColumn("ratio", "double", {"type": "double"}),
        MirroredColumn("doc", "json", {"type": "string", "name": "io.debezium.data.Json"}),
    ),
    mark=lambda number: (-number, "mark", None, None, None, None),
)
COLUMNS = ITEMS.names


def _number(bits: Any) -> int:
    return int.from_bytes(bits, "big")


class FeedingClock(FixedClock):
    """While somebody waits on it, the source changes and the lake follows."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__()
        self._mirror = mirror

    def wait(self, seconds: float) -> None:
        """Let a row be inserted beyond all places that are known."""
        super().wait(seconds)
        self._mirror.insert_mark()


class Mirror:
    """The table and its copy; `lake` is the folder of a lake with this table alone."""

    def __init__(
        self,
        server: SourceServer,
        database: str,
        folder: Path,
        table: MirroredTable = ITEMS,
        beside: Mirror | None = None,
    ) -> None:
        self._server, self.database, self.table = server, database, table
        self._connection = server.connect()
        self._connection.autocommit(True)
        self._connection.decoders[FIELD_TYPE.BIT] = _number
        self.cursor = self._connection.cursor()
        self.cursor.execute("set sql_mode = ''")  # it takes a zero in a date
        self.cursor.execute(f"create database {database}")
        self.cursor.execute(f"use {database}")
        self.cursor.execute(table.ddl)
        self.topic = SimulatedTopic(f"prefix.{database}.items", topic_id=database)
        self.root, self.folder = open_store(folder / "lake"), folder
        self.driver: SimulatedDriver = SimulatedDriver(
            self.root,
            self.topic,
            FixedClock(),
            SeededEntropy(1 if beside is None else 2),
            key=table.lake_key,
            shape=table.shape,
            policy=table.policy,
            not_inserts=table.not_inserts,
            beside=None if beside is None else beside.driver,
        )
        self.name = self.driver.name
        self.store = self.root.within(self.name.path)
        self._sent: dict[Key, Row] = {}
        self._versions = [TypeVersion(Position.of(0, 0, 0, 0, 0))]
        self._entropy = SeededEntropy(1000 if beside is None else 2000)
        self.marks = 0
        self.clock = FeedingClock(self)

    def close(self) -> None:
        self._connection.close()

    def run(self, statement: str, *values: Any) -> None:
        """Change the source; the lake hears of it with the next `feed`."""
        self.cursor.execute(statement, values)

    def alter(self, statement: str, table: MirroredTable, formerly: Mapping[str, str]) -> None:
        """Send what changed until now, then alter the source's table, which is `table` from then
        on. The connector's topic of schema changes tells the former names of columns.
        """
        self.feed()
        self.run(statement)
        self.table = table
        self._sent = self.rows()
        before = self._versions[-1].formerly
        names = {new: (old, *before.get(old, ())) for new, old in formerly.items()}
        file, end = self._end()
        at = Position.of(0, int(file.rpartition(".")[2]), end, 0, 0)
        kept = {new: former for new, former in before.items() if new not in formerly.values()}
        self._versions.append(TypeVersion(at, formerly={**kept, **names}))
        self.driver.history = TypeHistory(tuple(self._versions))

    def _end(self) -> tuple[str, int]:
        """The binlog's file, and its last octet."""
        self.cursor.execute("show master status")
        file, end = self.cursor.fetchone()[:2]
        return file, end - 1

    def unheard(self, statement: str, *values: Any) -> None:
        """Change the source so that nobody ever hears of it."""
        self.cursor.execute("set sql_log_bin = 0")
        self.cursor.execute(statement, values)
        self.cursor.execute("set sql_log_bin = 1")
        self._sent = self.rows()

    def rows(self) -> dict[Key, Row]:
        self.cursor.execute(f"select {','.join(self.table.names)} from items")
        return {self.table.key_of(row): row for row in self.cursor.fetchall()}

    def insert(self, *rows: Row) -> None:
        """Insert rows; the lake hears of them with the next `feed`."""
        marks = ",".join(["%s"] * len(self.table.names))
        self.cursor.executemany(f"insert into items values ({marks})", rows)

    def feed(self, instead: Mapping[Key, Row | None] | None = None) -> None:
        """Send events of all that changed since, and take them in; with `instead` some rows' events
        lie: they have other values, or None for no event.
        """
        now, lies = self.rows(), instead or {}
        place = self._end()
        events: list[Event] = []
        for key in sorted(now.keys() | self._sent.keys(), key=str):
            before, after = self._sent.get(key), now.get(key)
            is_sent = key not in lies or lies[key] is not None
            if before != after and is_sent:
                events.append(self._event(*place, len(events), before, lies.get(key, after)))
        self._sent = now
        self.topic.append(0, events)
        self.driver.batch()

    def send(self, place: tuple[str, int], before: Row, after: Row) -> None:
        """Send an event of a change at a place of the binlog, and take it in."""
        self.topic.append(0, [self._event(*place, 0, before, after)])
        self.driver.batch()

    def insert_mark(self) -> None:
        self.marks += 1
        self.insert(self.table.mark(self.marks))
        self.feed()

    def changing(self) -> AbstractContextManager[None]:
        """Let rows be inserted, and taken in, again and again while the block runs, or until a
        command that repairs takes the lake.
        """
        return repeating(self.insert_mark, 0.2, ends_with=FencedError)

    def verify(self, request: VerificationRequest | None = None, **of: Any) -> TableReport:
        """What `lakesplice verify` finds."""
        server = self._server
        address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
        read_limit = ReadLimit(FixedClock(), of.get("rows_per_second", 1e9), 1_000)
        catch_up = CatchUp(self.root, self.clock, of.get("wait", 60.0), self.name)
        kept = StoredSums(FilePlace(self.folder / "state.json"), self.clock)
        with SourceConnection(address, self.clock) as connection:
            access = VerificationTools(self.root, connection, read_limit, catch_up, kept)
            asked = request or VerificationRequest()
            if self.table.not_inserts is not None:
                asked = replace(asked, insert_only=True)
            return verify_table(access, self.name, self.topic.name, asked)

    def repair(self, rows: RepairedRows) -> None:
        """Lay over the lake's what `verify` has read again, as the service does."""
        table, kind = self.driver.table, self.table
        assert table.snapshot is not None
        reading = RecordReading(
            table=TableName.from_topic(self.topic.name),
            key=kind.lake_key,
            shape=kind.shape,
            not_inserts=kind.not_inserts,
            policy=kind.policy,
            history=self.driver.history,
        )
        work = RowRepair(
            table.store,
            table.snapshot,
            table.commit,
            table.generation,
            FixedClock(),
            self._entropy,
        )
        work.commit_rows(rows, reading)

    def send_again(self) -> None:
        """Let every event come once more, as from a connector that died."""
        self.topic.append(0, list(self.topic.events(0)))
        self.driver.batch()

    def _event(self, file: str, pos: int, row: int, before: Row | None, after: Row | None) -> Event:
        op = "d" if after is None else "c" if before is None else "u"
        images = [None if of is None else self._image(of) for of in (before, after)]
        content = payload(op, *images, pos=pos, row=row, file=file, db=self.database)
        fields = [
            {**one.field, "field": one.name, "optional": one.name not in self.table.key}
            for one in self.table.columns
        ]
        of_key = [field for field in fields if field["field"] in self.table.key]
        whole = self._image(after or before or ())
        key = {field["field"]: whole[field["field"]] for field in of_key}
        return Event(
            self.topic.name,
            compact(with_schema(key, key_schema(of_key))),
            compact(with_schema(content, envelope_schema(fields))),
            (),
            1_795_247_776_000,
        )

    def _image(self, row: Row) -> dict[str, Any]:
        columns = zip(self.table.columns, row, strict=True)
        return {one.name: None if value is None else one.sent(value) for one, value in columns}
