"""A source with several servers whose transactions are known, and the history that follows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lakesplice.model.offsets import Offset
from lakesplice.planning.engine_views.history_sql import history_query
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import (
    DeadLetter,
    DeadLetterSelection,
    table_of,
    write_dead_letters,
)
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.dead_letter_replay import OpenDeadLetters
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Ingest
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.malformed import letter_of
from tests.support.simulated import SMALL, Source

# Each server's binlog is as long as its uptime: the second one is the youngest.
FIRST_FILES = {1: 400, 2: 1, 3: 7}
# How far the servers' clocks are ahead, in seconds.
CLOCKS = {1: 0, 2: -3, 3: 5}
Statement = tuple[str, int]
Row = tuple[Any, ...]
"""A row's id, name and n."""
Interval = tuple[Any, ...]
"""A row, `valid_from`, `valid_to`, `is_current`."""


@dataclass
class Transaction:
    """A transaction: its events as its own server wrote them, and the state that it left of each
    row it changed, None if the row was gone. `file` counts the files of the binlog before its own,
    which begins at `file_start`. A TRUNCATE `empties` the table.
    """

    server: int
    events: list[Event]
    second: int
    left: dict[int, Row | None]
    file: int
    file_start: int
    empties: bool = False


@dataclass
class Servers:
    """Servers that replicate one history of transactions; `writer` is the present primary."""

    source: Source = field(default_factory=Source)
    transactions: list[Transaction] = field(default_factory=list)
    writer: int = 1
    gtids: bool = True
    file: int = 0
    rotates: bool = False

    def commit(self, statements: Iterable[Statement]) -> None:
        """Run a transaction on the primary; with `truncate` among the statements only that."""
        statements = list(statements)
        if "truncate" in [kind for kind, _ in statements]:
            self._record(self._truncated(), {}, empties=True)
            return
        database = self.source.database
        events: list[Event] = []
        with database.transaction():
            for kind, key in statements:
                lives = (key,) in database.rows(SMALL.name)
                if kind == "put":
                    events += self.source.put(key)
                elif kind == "delete" and lives:
                    events += self.source.delete(key)
                elif kind == "touch" and lives:
                    events += self._touch(key)
                elif kind == "return" and not lives:
                    events += self._returned(key)
                elif kind == "move" and lives and (key + 100,) not in database.rows(SMALL.name):
                    events += self.source.move(key, key + 100)
        if not events:
            return
        touched = {json.loads(event.key or b"")["payload"]["id"] for event in events}
        rows = database.rows(SMALL.name)
        left = {key: rows[key,].values if (key,) in rows else None for key in touched}
        self._record(events, left)

    def _truncated(self) -> list[Event]:
        """Remove all rows; return the event of a TRUNCATE, at the place of one of the deletes."""
        database = self.source.database
        with database.transaction():
            if not database.rows(SMALL.name):
                self.source.put(999)
            keys = [key for key, _ in database.rows(SMALL.name).items()]
            database.delete(SMALL.name, keys)
        event = next(event for event in database.drain() if event.value is not None)
        record = json.loads(event.value or b"")
        record["payload"].update(op="t", before=None, after=None)
        return [event._replace(key=None, value=json.dumps(record).encode())]

    def _record(
        self, events: list[Event], left: dict[int, Row | None], *, empties: bool = False
    ) -> None:
        first = next(event for event in events if event.value is not None)
        source = json.loads(first.value or b"")["payload"]["source"]
        # Two transactions a second, as if they followed one another.
        second = source["ts_ms"] // 1000 + len(self.transactions) // 2 + CLOCKS[self.writer]
        start = self.transactions[-1].file_start if self.transactions else 0
        if self.rotates:
            self.file, self.rotates, start = self.file + 1, False, source["pos"] - 1
        made = Transaction(self.writer, events, second, left, self.file, start, empties)
        self.transactions.append(made)

    def _returned(self, key: int) -> list[Event]:
        """Insert a row as it was when a transaction left it last."""
        left = (done.left[key] for done in reversed(self.transactions) if done.left.get(key))
        before = next(left, None)
        if before is None:
            return []
        self.source.database.insert(SMALL.name, [before])
        return self.source.database.drain()

    def _touch(self, key: int) -> list[Event]:
        """Update a row so that it stays as it is, as far as its events show."""
        rows = self.source.database.rows(SMALL.name)
        before = rows[key,]
        updates = self.source.put(key)
        rows.put((key,), before)
        if not updates:  # the transaction had set the same value already
            return []
        (updated,) = updates
        record = json.loads(updated.value or b"")
        record["payload"]["after"] = record["payload"]["before"]
        return [updated._replace(value=json.dumps(record).encode())]

    def events(self, number: int, server: int) -> list[Event]:
        """The events of a transaction as a connector sends them that reads from `server`."""
        transaction = self.transactions[number]
        return [
            event
            if event.value is None
            else event._replace(value=self._from(transaction, server, event.value))
            for event in transaction.events
        ]

    def _from(self, transaction: Transaction, server: int, value: bytes) -> bytes:
        record = json.loads(value)
        source = record["payload"]["source"]
        number = int(source["file"].rpartition(".")[2]) + FIRST_FILES[server] + transaction.file
        source["pos"] -= transaction.file_start
        source["file"] = f"binlog.{number:06d}"
        written = source["gtid"].rpartition("-")[2]
        source["gtid"] = f"0-{transaction.server}-{written}" if self.gtids else None
        for unit, per in (("ts_ms", 1000), ("ts_us", 10**6), ("ts_ns", 10**9)):
            source[unit] = transaction.second * per
        return json.dumps(record).encode()

    def history(self, sent: Iterable[int]) -> list[Interval]:
        """The intervals of all rows after these transactions, from the states that they left."""
        states: dict[int, list[tuple[int, Row | None]]] = {}
        began: dict[int, int] = {}
        emptied = 0
        for number in sorted(set(sent)):
            transaction = self.transactions[number]
            left, second = transaction.left, transaction.second
            if transaction.empties:
                left, emptied = dict.fromkeys(states), max(second, emptied)
            for key, row in left.items():
                began[key] = max(second, began.get(key, 0), emptied)
                met = states.setdefault(key, [])
                if row != (met[-1][1] if met else None):
                    since = max(met[-1][0], emptied) if transaction.empties else began[key]
                    met.append((since, row))
        found: list[Interval] = []
        for met in states.values():
            for at, (since, row) in enumerate(met):
                if row is not None:
                    until = moment(met[at + 1][0]) if at + 1 < len(met) else None
                    found.append((*row, moment(since), until, until is None))
        return sorted(found, key=repr)


def moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


class HistoryWorld:
    """The servers, a connector that reads from one of them, a topic and a driver."""

    def __init__(
        self, path: Path, *, gtids: bool = True, policy: SchemaPolicy = DEFAULT_POLICY
    ) -> None:
        self.servers = Servers(gtids=gtids)
        self.policy = policy
        self.topic = self.servers.source.topic
        self.path = path
        self.server = 1
        self.next = 0
        self.starts = 0
        self.letters: list[DeadLetter] = []
        self.met_letters: list[DeadLetter] = []
        self.has_refused = False
        self.driver = self.start()

    def start(self) -> SimulatedDriver:
        """Start a driver, as if the one before had died."""
        self.starts += 1
        self.driver = SimulatedDriver(
            LocalStore(self.path),
            self.topic,
            FixedClock(),
            SeededEntropy(self.starts),
            generation=self.starts,
            ranges=2,
            read_tasks=2,
            keeps_versions=True,
            policy=self.policy,
        )
        return self.driver

    def send(self, count: int, *, readable: bool = True) -> None:
        """Let the connector send the next transactions; with `readable` False, as records that
        can't be decoded at first.
        """
        for number in range(self.next, min(self.next + count, len(self.servers.transactions))):
            for sent in self.servers.events(number, self.server):
                partition = zlib.crc32(sent.key or b"") % 2
                if not readable and sent.value is not None:
                    lost = sent._replace(topic=self.topic.name)
                    self.letters.append(letter_of(lost, partition, self.topic.ends[partition]))
                    self.met_letters.append(self.letters[-1])
                self.topic.append(partition, [sent if readable else sent._replace(value=None)])
            self.next = number + 1

    def batch(self, share: int = 100) -> None:
        """Read a share of what is unread, in percent."""
        here = self.driver.table.next_offsets(self.topic.ends)
        ends = {
            at: Offset(here[at] + (end - here[at]) * share // 100)
            for at, end in self.topic.ends.items()
        }
        assert self.driver.batch(ends) is CommitOutcome.DONE
        assert self.driver.table.parked is None

    def happen(self, jump: Any) -> None:
        """Let something happen between two batches, if the table is there."""
        match jump:
            case ("repeat", int(back)):
                self.next = max(0, self.next - back)
            case ("fail over", int(server), int(back)):
                self.server = self.servers.writer = server
                self.next = max(0, self.next - back)
            case ("rotate",):
                self.servers.rotates = True
            case ("garble", int(count)):
                self.send(count, readable=False)
        if self.driver.table.snapshot is None:
            return
        match jump:
            case ("die in a batch",):
                ends = self.topic.ends
                self.driver.run_tasks(self.driver.table.next_offsets(ends), ends)
                self.start()
            case ("merge",):
                self.driver.merge_runs(2)
                self.driver.merge_files(2)
            case ("replay",):
                self.replay_letters()
            case ("reset",):
                self.reset()

    def reset(self) -> None:
        """Empty the table, so that the topic is read from its beginning."""
        table = self.driver.table
        assert table.snapshot is not None
        start = TopicStart(self.topic.topic_id, dict.fromkeys(self.topic.ends, Offset(0)))
        intent = plan_reset(table.snapshot, {self.topic.name: start}, table.generation)
        assert isinstance(table.commit(intent), Committed)
        self.letters = list(self.met_letters)
        self.batch()

    def replay_letters(self) -> None:
        """Set aside what couldn't be read, and take it again."""
        if not self.letters:
            return
        table, entropy = self.driver.table, SeededEntropy(1000 + self.starts)
        self.starts += 1
        ref = write_dead_letters(table.store, table_of(self.letters), entropy)
        generation = table.generation
        schema = table.schema.version
        table.commit(
            Ingest(generation, table.version, {}, table.source, schema, dead_letters=(ref,))
        )
        assert table.snapshot is not None
        box = OpenDeadLetters(
            table.store, table.snapshot, table.commit, generation, FixedClock(), entropy
        )
        reading = RecordReading(table=self.driver.name, keeps_versions=True, policy=self.policy)
        counts = box.replay(DeadLetterSelection(), reading)
        # Beside a failover it isn't proven where a letter lies (docs/limits.md).
        assert counts.kept == 0 or table.source.epochs
        self.has_refused = self.has_refused or counts.kept > 0
        self.letters = []

    @property
    def table(self) -> Table:
        """The table at its newest version."""
        return Table(self.driver.table.store)


def in_duckdb(table: Table, *more: str) -> list[Interval]:
    """The intervals by the SQL of the view, which a table without columns doesn't have, with the
    columns `more` first.
    """
    if not table.schema.names:
        return []
    rows = table.read(include_system=True)
    names, schema = (*more, "id", "name", "n"), table.snapshot.manifest.schema
    query = history_query([f"base.{name}" for name in names], names, schema, "stored", "duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("stored", rows)
        return intervals(connection.sql(query).to_arrow_table(), *more)


def intervals(rows: pa.Table, *more: str) -> list[Interval]:
    """The rows of a history as the oracle has them, with the columns `more` first."""
    for name in ("valid_from", "valid_to"):
        at = rows.column_names.index(name)
        moments = rows.column(name).cast(pa.timestamp("us", "UTC"))
        rows = rows.set_column(at, name, moments)
    names = (*more, "id", "name", "n", "valid_from", "valid_to", "is_current")
    return sorted((tuple(row[name] for name in names) for row in rows.to_pylist()), key=repr)
