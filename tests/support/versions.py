"""A history table that follows servers whose transactions are known, and its intervals."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
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
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.dropped import Teller
from tests.support.malformed import letter_of
from tests.support.versioned_source import Interval, Servers, Statement


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
        # Behind the last snapshot: what wasn't sent before it never is.
        self.floor = 0
        self.sent: set[int] = set()
        self.snapshots: dict[int, tuple[int, int]] = {}
        self.servers_met: dict[int, int] = {}
        self.starts = 0
        self.letters: list[DeadLetter] = []
        self.met_letters: list[DeadLetter] = []
        self.has_refused = False
        self.driver = self.start()
        self.teller = Teller(self.driver.name)

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

    def live(self, turns: Iterable[tuple[list[list[Statement]], int, Any, int]]) -> None:
        """Turn by turn, run transactions, let so many be sent, let something happen, and read a
        share in percent.
        """
        for transactions, sent, jump, share in turns:
            for transaction in transactions:
                self.servers.commit(transaction)
            self.send(sent)
            self.happen(jump)
            self.batch(share)

    def send(self, count: int, *, readable: bool = True) -> None:
        """Let the connector send the next transactions; with `readable` False, as records that
        can't be decoded at first.
        """
        for number in range(self.next, min(self.next + count, len(self.servers.transactions))):
            for sent in self.servers.events(number, self.server):
                partition = zlib.crc32(sent.key or b"") % 2
                if self.servers.transactions[number].is_drop:
                    self.tell_drop(sent)
                    continue
                if not readable and sent.value is not None:
                    lost = sent._replace(topic=self.topic.name)
                    self.letters.append(letter_of(lost, partition, self.topic.ends[partition]))
                    self.met_letters.append(self.letters[-1])
                self.topic.append(partition, [sent if readable else sent._replace(value=None)])
                if readable:
                    self.servers_met[partition] = self.server
            self.sent.add(number)
            self.next = number + 1

    def tell_drop(self, place: Event) -> None:
        """Report a DROP, and the CREATE behind it, to the topic of schema changes."""
        moment = json.loads(place.value or b"")["payload"]["source"]["ts_ms"]
        self.teller.drop(place, ts_ms=moment)
        self.teller.create(place, ts_ms=moment)

    def read_drops(self) -> None:
        """Let the driver follow all DROPs that were reported."""
        dealt = self.driver.drops(self.teller.told())
        assert dealt is None or not dealt.parked

    def snapshot(self, lost: int | None = None) -> None:
        """Let the connector lose its place, miss what it hasn't sent, and read all rows anew. The
        row `lost` of them can never be decoded.

        Nothing is done until both partitions show which server it reads: rows of a snapshot don't.
        """
        if set(self.servers_met.values()) != {self.server} or len(self.servers_met) < 2:
            return
        self.batch()
        source = self.driver.table.source
        newest = max((epoch.number for epoch in source.epochs), default=0)
        if {state.position.parts[0] for state in source.partitions.values()} != {newest}:
            return
        number = self.servers.snapshot()
        if number is None:
            return
        self.sent.add(number)
        self.next = self.floor = number + 1
        taken, events = self.servers.transactions[number], self.servers.events(number, self.server)
        source = json.loads(events[0].value or b"")["payload"]["source"]
        self.snapshots[number] = int(source["file"].rpartition(".")[2]), source["pos"]
        for at, event in enumerate(events):
            if at == lost:
                taken.lost.append(list(taken.left)[at])
            sent = event._replace(value=b"{") if at == lost else event
            self.topic.append(zlib.crc32(event.key or b"") % 2, [sent])

    @property
    def whole(self) -> list[int]:
        """The snapshots that the table holds to be complete: those of which it has an end."""
        rows = self.table.read(columns=["_history_op", "_history_position"]).to_pylist()
        at = [row["_history_position"].split(":") for row in rows if row["_history_op"] == "s"]
        places = {(int(file), int(offset)) for _, file, offset, *_ in at}
        found = [number for number, place in self.snapshots.items() if place in places]
        assert len(found) == len(at)
        return found

    def batch(self, share: int = 100) -> None:
        """Read a share of what is unread, in percent."""
        assert self.driver.batch(self.driver.ends_after(share)) is CommitOutcome.DONE
        assert self.driver.table.parked is None

    def happen(self, jump: Any) -> None:
        """Let something happen between two batches, if the table is there."""
        match jump:
            case ("repeat", int(back)):
                self.next = max(self.floor, self.next - back)
            case ("fail over", int(server), int(back)):
                self.server = self.servers.writer = server
                self.next = max(self.floor, self.next - back)
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
                self.teller.begin_anew()
                self.read_drops()
            case ("merge",):
                self.driver.merge_runs(2)
                self.driver.merge_files(2)
            case ("replay",):
                self.replay_letters()
            case ("reset",):
                self.reset()
            case ("hear",):
                self.read_drops()
            case ("snapshot", lost):
                self.snapshot(lost)

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
        stuck = sum(ref.rows for ref in table.manifest.dead_letters)
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
        assert counts.kept <= stuck or table.source.epochs
        self.has_refused = self.has_refused or counts.kept > stuck
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


def require_history(world: HistoryWorld, sent: Any) -> None:
    """Both readers show the oracle's intervals, and moments and present rows follow from them."""
    if world.driver.table.snapshot is None:
        return
    table, expected = world.table, world.servers.history(sent, world.whole)
    assert intervals(table.read_history()) == expected
    assert in_duckdb(table) == expected
    assert intervals(table.read_history(current=True)) == [row for row in expected if row[5]]
    for at in {row[3] for row in expected}:
        valid = [row for row in expected if row[3] <= at and (row[4] is None or at < row[4])]
        assert intervals(table.read_history(at=at)) == valid
    assert not table.snapshot.manifest.deltas
    assert check(table._store, table.snapshot).sound
