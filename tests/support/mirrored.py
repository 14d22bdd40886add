"""A table of a real MariaDB and its copy in a lake, without a broker or a connector between them.

`Mirror.feed` writes the events that a connector would send of what changed, at the binlog's place.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from lakesplice.apps.verifying.kept_sums import FilePlace, KeptSums
from lakesplice.apps.verifying.pace import Pace
from lakesplice.apps.verifying.reached import Reach
from lakesplice.apps.verifying.report import TableReport
from lakesplice.apps.verifying.verification import Access, Wish, verify_table
from lakesplice.model.names import TableName
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import open_store
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import compact, envelope_schema, key_schema, money, payload, with_schema
from tests.support.sources import SourceServer

Row = tuple[Any, ...]
COLUMNS = ("id", "name", "price", "stock", "ratio", "doc")
_ID = {"type": "int64", "optional": False, "field": "id"}
_FIELDS: tuple[dict[str, Any], ...] = (
    _ID,
    {"type": "string", "optional": True, "field": "name"},
    {
        "type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1, "parameters": {"scale": "2", "connect.decimal.precision": "8"},
        "field": "price",
    },
    {"type": "int32", "optional": True, "field": "stock"},
    {"type": "double", "optional": True, "field": "ratio"},
    {"type": "string", "optional": True, "name": "io.debezium.data.Json", "field": "doc"},
)  # fmt: skip
_DDL = """
    create table items (id bigint primary key, name varchar(40) collate utf8mb4_bin default 'none',
    price decimal(8,2), stock int, ratio double, doc json)
"""


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

    def __init__(self, server: SourceServer, database: str, folder: Path) -> None:
        self._server, self.database = server, database
        self._connection = server.connect()
        self._connection.autocommit(True)
        self.cursor = self._connection.cursor()
        self.cursor.execute(f"create database {database}")
        self.cursor.execute(f"use {database}")
        self.cursor.execute(_DDL)
        self.name = TableName(database, "items")
        self.topic = SimulatedTopic(f"prefix.{database}.items")
        self.root, self.folder = open_store(folder / "lake"), folder
        self.store = self.root.within(self.name.path)
        self.driver = SimulatedDriver(self.root, self.topic, FixedClock(), SeededEntropy(1))
        self._sent: dict[int, Row] = {}
        self.marks = 0
        self.clock = FeedingClock(self)

    def close(self) -> None:
        self._connection.close()

    def run(self, statement: str, *values: Any) -> None:
        """Change the source; the lake hears of it with the next `feed`."""
        self.cursor.execute(statement, values)

    def unheard(self, statement: str, *values: Any) -> None:
        """Change the source so that nobody ever hears of it."""
        self.cursor.execute("set sql_log_bin = 0")
        self.cursor.execute(statement, values)
        self.cursor.execute("set sql_log_bin = 1")
        self._sent = self.rows()

    def rows(self) -> dict[int, Row]:
        self.cursor.execute(f"select {','.join(COLUMNS)} from items")
        return {row[0]: row for row in self.cursor.fetchall()}

    def feed(self, instead: Mapping[int, Row | None] | None = None) -> None:
        """Send events of all that changed since, and take them in; with `instead` some rows' events
        lie: they have other values, or None for no event.
        """
        now, lies = self.rows(), instead or {}
        self.cursor.execute("show master status")
        file, end = self.cursor.fetchone()[:2]
        events: list[Event] = []
        for key in sorted(now.keys() | self._sent.keys()):
            before, after = self._sent.get(key), now.get(key)
            if before != after and lies.get(key, after) is not None:
                events.append(self._event(file, end - 1, len(events), before, lies.get(key, after)))
            elif before != after and after is None and key not in lies:
                events.append(self._event(file, end - 1, len(events), before, None))
        self._sent = now
        self.topic.append(0, events)
        self.driver.batch()

    def insert_mark(self) -> None:
        self.marks += 1
        self.run("insert into items(id, name) values (%s, 'mark')", -self.marks)
        self.feed()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let rows be inserted, and taken in, again and again while the block runs."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.2):
                self.insert_mark()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def verify(self, wish: Wish | None = None, **of: Any) -> TableReport:
        """What `lakesplice verify` finds."""
        server = self._server
        address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
        pace = Pace(FixedClock(), of.get("rows_per_second", 1e9), 1_000)
        reach = Reach(self.root, self.clock, of.get("wait", 60.0))
        kept = KeptSums(FilePlace(self.folder / "state.json"), self.clock)
        with SourceConnection(address, self.clock) as connection:
            access = Access(self.root, connection, pace, reach, kept)
            return verify_table(access, self.name, self.topic.name, wish or Wish())

    def _event(self, file: str, pos: int, row: int, before: Row | None, after: Row | None) -> Event:
        op = "d" if after is None else "c" if before is None else "u"
        images = [None if of is None else _image(of) for of in (before, after)]
        content = payload(op, *images, pos=pos, row=row, file=file, db=self.database)
        key = {"id": (after or before or ())[0]}
        return Event(
            self.topic.name,
            compact(with_schema(key, key_schema([_ID]))),
            compact(with_schema(content, envelope_schema(_FIELDS))),
            (),
            1_795_247_776_000,
        )


def _image(row: Row) -> dict[str, Any]:
    found = dict(zip(COLUMNS, row, strict=True))
    price = found["price"]
    return {**found, "price": None if price is None else money(int(Decimal(price) * 100))}
