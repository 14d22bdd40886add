"""Servers that replicate one history of transactions, and the versions of rows that follow from
what a connector sent of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lakesplice.testing.shop import Event
from tests.support.simulated import SMALL, Source, truncate_at

# Each server's binlog is as long as its uptime: the second one is the youngest.
FIRST_FILES = {1: 400, 2: 1, 3: 7}
# How far the servers' clocks are ahead, in seconds.
CLOCKS = {1: 0, 2: -3, 3: 5}
# How many bytes the end of the binlog is behind the place of the last statement.
BEHIND = 100
Statement = tuple[str, int]
Row = tuple[Any, ...]
"""A row's id, name and n."""
Interval = tuple[Any, ...]
"""A row, `valid_from`, `valid_to`, `is_current`."""


@dataclass
class Transaction:
    """A transaction: its events as its own server wrote them, and the state that it left of each
    row it changed, None if the row was gone.

    `file` counts the files of the binlog before its own, which begins at `file_start`. A TRUNCATE
    `empties` the table; so does a DROP that a CREATE follows (`is_drop`), whose event only the
    topic of schema changes gets. A snapshot, which `is_read`, is no transaction, but has its place
    among them: `left` are the rows that there were, one read each second, of which those in `lost`
    can't be decoded.
    """

    server: int
    events: list[Event]
    second: int
    left: dict[int, Row | None]
    file: int
    file_start: int
    empties: bool = False
    is_read: bool = False
    is_drop: bool = False
    lost: list[int] = field(default_factory=list)

    @property
    def seconds(self) -> dict[int, int]:
        """When the change of each row, or its reading, happened."""
        return {key: self.second + at * self.is_read for at, key in enumerate(self.left)}


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
        """Run a transaction on the primary; with `truncate` or `drop` among the statements only
        that.
        """
        statements = list(statements)
        for kind, _ in statements:
            if kind in ("truncate", "drop"):
                self._record(self._truncated(), {}, empties=True, is_drop=kind == "drop")
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

    def snapshot(self) -> int | None:
        """Read all rows behind the last transaction; return the snapshot's number, None if it would
        have no rows, or the place of another one.
        """
        events = self.source.database.snapshot()
        if not events or self.transactions[-1].is_read:
            return None
        rows = self.source.database.rows(SMALL.name)
        left: dict[int, Row | None] = {key: rows[key,].values for key in self.source.keys}
        self._record(events, left, is_read=True)
        return len(self.transactions) - 1

    def _truncated(self) -> list[Event]:
        """Remove all rows; return the event of a TRUNCATE, at the place of one of the deletes."""
        database = self.source.database
        with database.transaction():
            if not database.rows(SMALL.name):
                self.source.put(999)
            keys = [key for key, _ in database.rows(SMALL.name).items()]
            database.delete(SMALL.name, keys)
        event = next(event for event in database.drain() if event.value is not None)
        return [truncate_at(event)]

    def _record(
        self,
        events: list[Event],
        left: dict[int, Row | None],
        *,
        empties: bool = False,
        is_read: bool = False,
        is_drop: bool = False,
    ) -> None:
        first = next(event for event in events if event.value is not None)
        source = json.loads(first.value or b"")["payload"]["source"]
        # Two transactions a second, as if they followed one another.
        second = source["ts_ms"] // 1000 + len(self.transactions) // 2 + CLOCKS[self.writer]
        start = self.transactions[-1].file_start if self.transactions else 0
        if self.rotates and not is_read:
            self.file, self.rotates, start = self.file + 1, False, source["pos"] - 1
        made = Transaction(
            self.writer, events, second, left, self.file, start, empties, is_read, is_drop
        )
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
            else event._replace(value=self._from(transaction, server, event.value, at))
            for at, event in enumerate(transaction.events)
        ]

    def _from(self, transaction: Transaction, server: int, value: bytes, at: int) -> bytes:
        record = json.loads(value)
        source = record["payload"]["source"]
        number = int(source["file"].rpartition(".")[2]) + FIRST_FILES[server] + transaction.file
        source["pos"] -= transaction.file_start
        source["file"] = f"binlog.{number:06d}"
        second = transaction.second + at * transaction.is_read
        if transaction.is_read:
            source["pos"] += BEHIND
        else:
            written = source["gtid"].rpartition("-")[2]
            source["gtid"] = f"0-{transaction.server}-{written}" if self.gtids else None
        for unit, per in (("ts_ms", 1000), ("ts_us", 10**6), ("ts_ns", 10**9)):
            source[unit] = second * per
        return json.dumps(record).encode()

    def history(self, sent: Iterable[int], whole: Collection[int] = ()) -> list[Interval]:
        """The intervals of all rows after these transactions, from the states that they left. Those
        in `whole` are snapshots that are known to be complete.
        """
        states: dict[int, list[tuple[int, Row | None]]] = {}
        began: dict[int, int] = {}
        emptied = 0
        for number in sorted(set(sent)):
            transaction = self.transactions[number]
            left, second = transaction.left, transaction.second
            if transaction.empties:
                left, emptied = dict.fromkeys(states), max(second, emptied)
            elif number in whole:
                left, emptied = {**dict.fromkeys(states), **left}, max(second, emptied)
            seconds = transaction.seconds
            for key in left.keys() - transaction.lost:
                row, ended = left[key], key not in transaction.left
                began[key] = max(seconds.get(key, second), began.get(key, 0), emptied)
                met = states.setdefault(key, [])
                if row != (met[-1][1] if met else None):
                    met.append((max(met[-1][0], emptied) if ended else began[key], row))
        found: list[Interval] = []
        for met in states.values():
            for at, (since, row) in enumerate(met):
                if row is not None:
                    until = moment(met[at + 1][0]) if at + 1 < len(met) else None
                    found.append((*row, moment(since), until, until is None))
        return sorted(found, key=repr)


def moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
