"""The shop: its customers' and clerks' work on the database, drawn from one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pyarrow as pa

from lakesplice.table.protocol.ports import Clock
from lakesplice.testing.shop.columns import Column
from lakesplice.testing.shop.database import Database
from lakesplice.testing.shop.events import Event
from lakesplice.testing.shop.rows import RowMaker
from lakesplice.testing.shop.tables import SHOP, TableSpec
from lakesplice.testing.shop.workload import ACTIVITIES, Desk, touch_any


class Shop:
    """A small shop's database at work.

    `tables` may be any specs, those in the module `tables` or others. The shop's five tables get
    the shop's workload; each further one gets random inserts, updates and deletes. `rows` is the
    number of rows with which the largest table starts; the others are in proportion. With
    `with_schemas` False the same events are written as plain JSON. Without a `clock` time is
    simulated, so that equal arguments give equal bytes.

    `step` returns whole transactions in the source's order. The sequence doesn't depend on the
    sizes of the steps.
    """

    def __init__(
        self,
        seed: int = 0,
        tables: Sequence[TableSpec] = SHOP,
        *,
        rows: int = 500,
        server: str = "shop",
        database: str = "shop",
        with_schemas: bool = True,
        clock: Clock | None = None,
        binlog_file_bytes: int = 1 << 20,
    ) -> None:
        self.database = Database(
            tables,
            seed=seed,
            server=server,
            database=database,
            with_schemas=with_schemas,
            clock=clock,
            binlog_file_bytes=binlog_file_bytes,
        )
        self._random = Random(f"shop-{seed}")  # noqa: S311  a run repeats, it hides nothing
        self._desk = Desk(self.database, self._random, RowMaker(self._random))
        self._activities, self._weights = _activities([table.name for table in tables])
        self._desk.open(rows)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The present tables."""
        return self.database.tables

    @property
    def topics(self) -> tuple[str, ...]:
        """A topic per table, in the tables' order."""
        return tuple(self.database.topic(table.name) for table in self.tables)

    def snapshot(self) -> list[Event]:
        """Return the events of the connector's first snapshot; call it before the first `step`."""
        return self.database.snapshot()

    def step(self, count: int) -> list[Event]:
        """Let the shop work until it wrote at least `count` events; transactions are always
        whole.
        """
        events: list[Event] = []
        while len(events) < count:
            activity = self._random.choices(self._activities, cum_weights=self._weights)[0]
            activity(self._desk)
            events += self.database.drain()
        return events

    def add_column(self, table: str, column: Column) -> None:
        """ALTER TABLE … ADD COLUMN; later changes have the column."""
        self.database.add_column(table, column)

    def truth(self, table: str) -> pa.Table:
        """Return the table after the events returned so far, in the lake's exact types."""
        return self.database.truth(table)


def _activities(names: Sequence[str]) -> tuple[list[Callable[[Desk], None]], list[float]]:
    """The activities that are possible with these tables, with cumulative weights."""
    shop = {table.name for table in SHOP}
    chosen: list[tuple[Callable[[Desk], None], float]] = [
        (activity.act, activity.weight) for activity in ACTIVITIES if activity.needs <= set(names)
    ]
    others = [name for name in names if name not in shop]
    covered = {
        name for activity in ACTIVITIES if activity.needs <= set(names) for name in activity.needs
    }
    others += [name for name in names if name in shop - covered]
    if others:
        chosen.append((touch_any(others), 40.0))
    total, weights = 0.0, []
    for _, weight in chosen:
        total += weight
        weights.append(total)
    return [act for act, _ in chosen], weights
