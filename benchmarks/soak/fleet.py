"""Tables of differing heat, and changes of them by the second. Their rows are the truth."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from lakesplice.testing.shop import Column, Database, Event, TableSpec, Value
from lakesplice.testing.shop.columns import bigint, decimal, integer, varchar
from lakesplice.testing.shop.database import Key, Row

DATABASE, SERVER = "fleet", "soak"
KEYLESS = "keyless"
_COLUMNS = (
    bigint("id", optional=False),
    varchar("status"),
    integer("amount"),
    decimal("price", 12, 2),
    varchar("note"),
)
_STATUSES = ("new", "paid", "packed", "sent", "returned")
# Of ten changes of a table one inserts a row and one deletes one, so that tables keep their size.
_TURNS = 10


class Fleet:
    """The database. A table's share of all changes falls with its number: the first gets a hundred
    times as many as the hundredth, or `hottest` of all changes. `rows` are those of each table.
    """

    def __init__(
        self,
        tables: int,
        rows: int | Sequence[int],
        seed: int,
        *,
        with_schemas: bool = True,
        hottest: float | None = None,
    ) -> None:
        sizes = [rows] * tables if isinstance(rows, int) else rows
        self._random = random.Random(seed)
        self.names = [f"table_{number:03d}" for number in range(tables)]
        specs = [TableSpec(name, _COLUMNS, ("id",)) for name in (*self.names, KEYLESS)]
        self.database = Database(specs, server=SERVER, database=DATABASE, with_schemas=with_schemas)
        self._weights = [1 / (number + 1) for number in range(tables)]
        if hottest is not None:
            self._weights[0] = hottest / (1 - hottest) * sum(self._weights[1:])
        self._next = {name: size + 1 for name, size in zip(self.names, sizes, strict=True)}
        self._added: dict[str, tuple[Value, ...]] = {}
        self._turns: Counter[str] = Counter()
        for name, size in zip(self.names, sizes, strict=True):
            self.database.load(name, [self._row(key) for key in range(1, size + 1)])

    @property
    def topics(self) -> list[str]:
        """The topics of all tables."""
        return [self.database.topic(name) for name in (*self.names, KEYLESS)]

    def snapshot(self) -> list[Event]:
        """What a connector sends of all rows at first."""
        return self.database.snapshot()

    def changes(self, count: int) -> list[Event]:
        """Make so many changes, in tables drawn by their heat, and return their events."""
        drawn = self._random.choices(self.names, self._weights, k=count)
        for name, times in Counter(drawn).items():
            for _ in range(times):
                self._change(name)
        return self.database.drain()

    def add_column(self, name: str, column: Column) -> None:
        """Give a table one column more; its rows, and those to come, have the column's default."""
        self.database.add_column(name, column)
        self._added[name] = (*self._added.get(name, ()), column.default)

    def keyless(self) -> Event:
        """Return an event without a key, for which its table is parked."""
        self.database.insert(KEYLESS, [self._row(1)])
        (event,) = self.database.drain()
        return event._replace(key=None)

    def _change(self, name: str) -> None:
        turn, self._turns[name] = self._turns[name], (self._turns[name] + 1) % _TURNS
        if turn == 0:
            row = (*self._row(self._next[name]), *self._added.get(name, ()))
            self.database.insert(name, [row])
            self._next[name] += 1
        elif turn == _TURNS // 2:
            self.database.delete(name, [self._any(name)])
        else:
            self.database.update(name, [self._any(name)], self._changed)

    def _any(self, name: str) -> Key:
        return self.database.rows(name).any(self._random)

    def _row(self, key: int) -> Row:
        return (key, self._status(), key % 97, 100 * key, f"note {key} {'x' * (key % 40)}")

    def _changed(self, row: Row) -> Row:
        return (row[0], self._status(), self._random.randrange(1_000), *row[3:])

    def _status(self) -> str:
        return self._random.choice(_STATUSES)
