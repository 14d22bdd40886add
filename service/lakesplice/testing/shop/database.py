"""A database in memory whose statements become change events; its rows are the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.ports import Clock
from lakesplice.testing.shop.binlog import Binlog, Moment, SimulatedClock
from lakesplice.testing.shop.columns import Column, Value
from lakesplice.testing.shop.events import NEW_KEY, OLD_KEY, Event, EventWriter, Image
from lakesplice.testing.shop.tables import TableSpec

Key = tuple[Value, ...]
Row = tuple[Value, ...]

_START_MS = 1_772_000_000_000


class Rows:
    """The rows of one table by key; a random key is found in constant time."""

    def __init__(self) -> None:
        self._images: dict[Key, Image] = {}
        self._keys: list[Key] = []
        self._places: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._images

    def __getitem__(self, key: Key) -> Image:
        return self._images[key]

    def items(self) -> Iterator[tuple[Key, Image]]:
        """All rows, in the order in which their keys first occurred."""
        yield from self._images.items()

    def put(self, key: Key, image: Image) -> None:
        """Insert or replace a row."""
        if key not in self._images:
            self._places[key] = len(self._keys)
            self._keys.append(key)
        self._images[key] = image

    def remove(self, key: Key) -> Image:
        """Remove a row."""
        place, last = self._places.pop(key), self._keys.pop()
        if last != key:
            self._keys[place] = last
            self._places[last] = place
        return self._images.pop(key)

    def any(self, random: Random, *, hot: float = 0.0) -> Key:
        """Return a random key; with probability `hot` one of the oldest hundredth."""
        count = len(self._keys)
        if hot and random.random() < hot:
            count = max(1, count // 100)
        return self._keys[random.randrange(count)]


class _Table:
    def __init__(self, writer: EventWriter) -> None:
        self.writer = writer
        self.rows = Rows()
        self.inserted = 0

    @property
    def spec(self) -> TableSpec:
        return self.writer.table

    def key(self, values: Row) -> Key:
        if not self.spec.key:
            # Without a key the order of arrival distinguishes rows; no statement can address them.
            self.inserted += 1
            return (self.inserted,)
        return tuple(values[index] for index in self.spec.key_indexes)


class Database:
    """Tables, their rows, and the change events of every statement since the last `drain`.

    Statements take and return rows as tuples in the table's column order, with values as `columns`
    describes them. Each statement is a transaction unless it is within `transaction`. The arguments
    and calls determine everything, event bytes included. Not thread-safe.
    """

    def __init__(
        self,
        tables: Sequence[TableSpec],
        *,
        seed: int = 0,
        server: str = "shop",
        database: str = "shop",
        with_schemas: bool = True,
        clock: Clock | None = None,
        binlog_file_bytes: int = 1 << 20,
    ) -> None:
        random = Random(f"database-{seed}")  # noqa: S311  a simulation repeats, it keeps no secret
        self._binlog = Binlog(
            clock or SimulatedClock(EpochMs(_START_MS), random), file_bytes=binlog_file_bytes
        )
        run_id = f"{random.getrandbits(64):016x}"

        def writer(table: TableSpec) -> EventWriter:
            return EventWriter(table, server, database, run_id, with_schemas=with_schemas)

        self._writer = writer
        self._tables = {table.name: _Table(writer(table)) for table in tables}
        self._events: list[Event] = []
        self._in_transaction = False

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The present tables, added columns included."""
        return tuple(table.spec for table in self._tables.values())

    def topic(self, table: str) -> str:
        """The table's topic, `server.database.table`."""
        return self._tables[table].writer.topic

    def rows(self, table: str) -> Rows:
        """The table's rows; the caller must not change them."""
        return self._tables[table].rows

    def values(self, table: str, key: Key) -> Row:
        """Return one row."""
        return self._tables[table].rows[key].values

    def drain(self) -> list[Event]:
        """Return the events since the last call, in the source's order."""
        events, self._events = self._events, []
        return events

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let the statements within the block share one transaction id; they can't be rolled
        back.
        """
        if self._in_transaction:
            raise UsageError("transactions don't nest")
        self._binlog.begin()
        self._in_transaction = True
        try:
            yield
        finally:
            self._in_transaction = False

    def load(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows from before the connector's start: only `snapshot` sends them."""
        target = self._tables[table]
        for values in rows:
            target.rows.put(target.key(values), target.writer.image(values))

    def snapshot(self) -> list[Event]:
        """Read every row of every table, as the connector does when it first starts."""
        filled = [table for table in self._tables.values() if len(table.rows)]
        events: list[Event] = []
        for table in filled:
            last_row = len(table.rows) - 1
            for number, (_, image) in enumerate(table.rows.items()):
                state = _snapshot_state(
                    first_table=table is filled[0],
                    first=number == 0,
                    last_table=table is filled[-1],
                    last=number == last_row,
                )
                moment = self._binlog.snapshot()._replace(snapshot=f'"{state}"')
                events.append(table.writer.change("r", None, image, moment, 0))
        return events

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """INSERT; a key that exists is refused."""
        target = self._tables[table]
        moment = self._statement(len(rows))
        for number, values in enumerate(rows):
            key = target.key(values)
            if key in target.rows:
                raise UsageError("the key exists", table=table, key=key)
            image = target.writer.image(values)
            target.rows.put(key, image)
            self._events.append(target.writer.change("c", None, image, moment, number))

    def update(self, table: str, keys: Sequence[Key], change: Callable[[Row], Row]) -> None:
        """UPDATE the rows with these keys, in this order; a row that doesn't change makes no event.

        A row whose key changes becomes a delete with its tombstone, and a create at the same offset
        and row.
        """
        target = self._tables[table]
        moment = self._statement(len(keys))
        number = 0
        for key in keys:
            before = target.rows[key]
            values = change(before.values)
            if values == before.values:
                continue
            after = target.writer.image(values)
            new_key = target.key(values) if target.spec.key else key
            if new_key == key:
                target.rows.put(key, after)
                self._events.append(target.writer.change("u", before, after, moment, number))
            else:
                self._move(target, key, new_key, after, moment, number)
            number += 1

    def delete(self, table: str, keys: Sequence[Key]) -> None:
        """DELETE, with a tombstone after each row."""
        target = self._tables[table]
        moment = self._statement(len(keys))
        for number, key in enumerate(keys):
            gone = target.rows.remove(key)
            self._events.append(target.writer.change("d", gone, None, moment, number))
            self._events.append(target.writer.tombstone(gone, moment))

    def add_column(self, table: str, column: Column) -> None:
        """ALTER TABLE … ADD COLUMN at the end; existing rows get its default.

        No event shows the ALTER: the next change of each row has the new schema. So a lake knows
        the value of other rows only from the default in that schema.
        """
        target = self._tables[table]
        self._binlog.begin()
        target.writer = self._writer(target.spec.with_column(column))
        for key, image in list(target.rows.items()):
            target.rows.put(key, target.writer.image((*image.values, column.default)))

    def drop_column(self, table: str, column: str) -> None:
        """ALTER TABLE … DROP COLUMN, not of the key; no event shows it."""
        target = self._tables[table]
        at = target.spec.index(column)
        self._binlog.begin()
        target.writer = self._writer(target.spec.without_column(column))
        for key, image in list(target.rows.items()):
            kept = (*image.values[:at], *image.values[at + 1 :])
            target.rows.put(key, target.writer.image(kept))

    def truth(self, table: str) -> pa.Table:
        """Return the present table, in the lake's types and the source's column order; rows are
        unordered.
        """
        target = self._tables[table]
        rows = [image.values for _, image in target.rows.items()]
        values = list(zip(*rows, strict=True)) if rows else [()] * len(target.spec.columns)
        arrays = [
            column.to_arrow(of) for column, of in zip(target.spec.columns, values, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=target.spec.arrow)

    def declared_types(self) -> Mapping[str, Mapping[str, str]]:
        """Return for each table the `columns` that the configuration needs for events without
        schemas.
        """
        return {
            table.name: {column.name: column.declared for column in table.columns}
            for table in self.tables
        }

    def _statement(self, rows: int) -> Moment:
        if not self._in_transaction:
            self._binlog.begin()
        return self._binlog.statement(rows)

    def _move(
        self, target: _Table, key: Key, new_key: Key, after: Image, moment: Moment, row: int
    ) -> None:
        if new_key in target.rows:
            raise UsageError("the new key exists", table=target.spec.name, key=new_key)
        before = target.rows.remove(key)
        target.rows.put(new_key, after)
        writer = target.writer
        to, origin = (
            writer.key_header(NEW_KEY, after.values),
            writer.key_header(OLD_KEY, before.values),
        )
        self._events += (
            writer.change("d", before, None, moment, row, to),
            writer.tombstone(before, moment, to),
            writer.change("c", None, after, moment, row, origin),
        )


def _snapshot_state(*, first_table: bool, first: bool, last_table: bool, last: bool) -> str:
    """The value of `source.snapshot` for a row. If several apply, the one about the larger unit
    counts, and "last" comes before "first".
    """
    if last and last_table:
        return "last"
    if last:
        return "last_in_data_collection"
    if first:
        return "first" if first_table else "first_in_data_collection"
    return "true"
