"""The shop's activities: one function each, which makes one or a few transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from lakesplice.model.types import Primitive
from lakesplice.testing.shop.columns import Column, Value
from lakesplice.testing.shop.database import Database, Key, Row
from lakesplice.testing.shop.rows import RowMaker
from lakesplice.testing.shop.tables import (
    CARTS,
    CUSTOMERS,
    ORDER_LINES,
    ORDER_STATES,
    ORDERS,
    PRODUCTS,
    SHOP,
    TableSpec,
)

_CUSTOMERS_MIN = 10
_HOT = 0.7
_LINE_MAX = 9
_STARTING_SHARES = {"customers": 1.0, "products": 0.3, "carts": 0.2}
_OTHER_SHARE = 1.0


@dataclass
class Desk:
    """What activities use: the database, the random numbers, and the next free numbers."""

    database: Database
    random: Random
    make: RowMaker
    numbers: dict[str, count[int]] = field(default_factory=dict)
    forgotten_carts: list[Key] = field(default_factory=list)

    def next_number(self, table: str) -> int:
        """Return the table's next number, from 1."""
        return next(self.numbers.setdefault(table, count(1)))

    def any(self, table: TableSpec, *, hot: float = 0.0) -> Key | None:
        """Return a random key of the table; None if it is empty."""
        rows = self.database.rows(table.name)
        return rows.any(self.random, hot=hot) if len(rows) else None

    def some(self, table: TableSpec, most: int, *, hot: float = 0.0) -> list[Key]:
        """Return up to `most` different random keys, at least one unless the table is empty."""
        wanted = self.random.randint(1, most)
        drawn = (self.any(table, hot=hot) for _ in range(wanted))
        return list(dict.fromkeys(key for key in drawn if key is not None))

    def set(
        self, table: TableSpec, keys: Sequence[Key], **values: Value | Callable[[Any], Value]
    ) -> None:
        """UPDATE … SET: a value, or a function of the old one, per column."""
        changes = [(self._spec(table).index(name), value) for name, value in values.items()]

        def change(row: Row) -> Row:
            changed = list(row)
            for index, value in changes:
                changed[index] = value(row[index]) if callable(value) else value
            return tuple(changed)

        if keys:
            self.database.update(table.name, keys, change)

    def insert(self, table: TableSpec, rows: Sequence[Row]) -> None:
        """INSERT; columns added since the workload was written get values of their own."""
        spec = self._spec(table)
        self.database.insert(table.name, [self.whole(spec, row) for row in rows])

    def whole(self, spec: TableSpec, row: Row) -> Row:
        """Fill in the last columns of a row that lacks them."""
        return row + tuple(self.make.value(column) for column in spec.columns[len(row) :])

    def open(self, rows: int) -> None:
        """Fill the tables before the connector starts; orders are empty at first."""
        present = {table.name: table for table in self.database.tables}
        for table in present.values():
            if table not in SHOP:
                amount = max(1, int(rows * _OTHER_SHARE))
                self.database.load(table.name, [self.fresh(table) for _ in range(amount)])
        for name, share in _STARTING_SHARES.items():
            if name in present:
                amount = max(_CUSTOMERS_MIN, int(rows * share))
                self.database.load(name, [self.fresh(present[name]) for _ in range(amount)])

    def fresh(self, table: TableSpec) -> Row:
        """Return a new row with a key that was never used."""
        number = self.next_number(table.name)
        if table.name == CUSTOMERS.name:
            return self.whole(table, self.make.customer(number))
        if table.name == PRODUCTS.name:
            return self.whole(table, self.make.product(number))
        values = [self.make.value(column) for column in table.columns]
        for index in table.key_indexes:
            values[index] = self._key_value(table.columns[index], number)
        return tuple(values)

    def _key_value(self, column: Column, number: int) -> Value:
        return f"{column.name}-{number:05d}" if column.type.kind is Primitive.STRING else number

    def _spec(self, table: TableSpec) -> TableSpec:
        return next(spec for spec in self.database.tables if spec.name == table.name)


def restock(desk: Desk) -> None:
    """Change the stock of several products in one statement."""
    amount = desk.random.randint(1, 50)
    keys = desk.some(PRODUCTS, 6, hot=_HOT)
    desk.set(
        PRODUCTS, keys, stock=lambda stock: stock + amount, updated_at=desk.make.moment_micros()
    )


def reprice(desk: Desk) -> None:
    """Set new prices in one statement; some stay the same and make no event."""
    price = desk.make.price()
    desk.set(PRODUCTS, desk.some(PRODUCTS, 4, hot=_HOT), price=price)


def rate(desk: Desk) -> None:
    """Change one product's rating."""
    desk.set(PRODUCTS, desk.some(PRODUCTS, 1, hot=_HOT), rating=desk.random.random() * 5)


def list_product(desk: Desk) -> None:
    """Insert a product."""
    desk.insert(PRODUCTS, [desk.make.product(desk.next_number(PRODUCTS.name))])


def sign_up(desk: Desk) -> None:
    """Insert one to three customers in one statement."""
    numbers = [desk.next_number(CUSTOMERS.name) for _ in range(desk.random.randint(1, 3))]
    desk.insert(CUSTOMERS, [desk.make.customer(number) for number in numbers])


def edit_customer(desk: Desk) -> None:
    """Change a customer's details; sometimes the same row twice in one transaction."""
    keys = desk.some(CUSTOMERS, 1)
    with desk.database.transaction():
        desk.set(CUSTOMERS, keys, prefs=desk.make.preferences(), note=desk.make.note())
        if desk.random.random() < 0.3:
            desk.set(CUSTOMERS, keys, balance=lambda balance: balance - 1)


def log_in(desk: Desk) -> None:
    """Record a customer's visit."""
    desk.set(
        CUSTOMERS, desk.some(CUSTOMERS, 2), last_login=desk.make.moment_micros(3), status="active"
    )


def renumber_customer(desk: Desk) -> None:
    """Change a customer's key."""
    number = desk.next_number(CUSTOMERS.name)
    desk.set(CUSTOMERS, desk.some(CUSTOMERS, 1), id=number)


def leave(desk: Desk) -> None:
    """Delete a customer, unless few are left."""
    if len(desk.database.rows(CUSTOMERS.name)) > _CUSTOMERS_MIN:
        desk.database.delete(CUSTOMERS.name, desk.some(CUSTOMERS, 1))


def fill_cart(desk: Desk) -> None:
    """Put a product into a cart; a product that was removed may come back with its old key."""
    customer, product = desk.any(CUSTOMERS), desk.any(PRODUCTS, hot=_HOT)
    if customer is None or product is None:
        return
    key: Key = (customer[0], product[0])
    if desk.forgotten_carts and desk.random.random() < 0.5:
        key = desk.forgotten_carts.pop()
    if key in desk.database.rows(CARTS.name):
        desk.set(CARTS, [key], quantity=lambda quantity: (quantity or 0) + 1)
    else:
        desk.insert(CARTS, [(*key, desk.random.randint(1, 5), desk.make.moment_micros(3))])


def empty_cart(desk: Desk) -> None:
    """Remove products from a cart, several in one statement."""
    keys = desk.some(CARTS, 3)
    if keys:
        desk.database.delete(CARTS.name, keys)
        desk.forgotten_carts = [*desk.forgotten_carts[-100:], *keys]


def order(desk: Desk) -> None:
    """In one transaction insert an order, insert its lines in one statement, and reduce the
    products' stock.
    """
    customer, products = desk.any(CUSTOMERS), desk.some(PRODUCTS, 4, hot=_HOT)
    if customer is None:
        return
    number = desk.next_number(ORDERS.name)
    price_at = PRODUCTS.index("price")
    lines = [
        (
            number,
            line,
            *key,
            desk.random.randint(1, 4),
            desk.database.values(PRODUCTS.name, key)[price_at],
        )
        for line, key in enumerate(products, 1)
    ]
    total, placed = desk.random.randrange(1_000_000), desk.make.moment_micros()
    with desk.database.transaction():
        desk.insert(ORDERS, [(number, customer[0], "new", total, desk.make.note(), placed, None)])
        desk.insert(ORDER_LINES, lines)
        for key in products:
            desk.set(PRODUCTS, [key], stock=lambda stock: stock - 1)


def advance_orders(desk: Desk) -> None:
    """Move orders to their next state, several in one statement."""

    def following(state: Value) -> Value:
        return ORDER_STATES[min(ORDER_STATES.index(str(state)) + 1, len(ORDER_STATES) - 1)]

    keys = desk.some(ORDERS, 5)
    desk.set(ORDERS, keys, status=following, changed_at=desk.make.moment_micros(0))


def _lines_of(desk: Desk, order_number: Value) -> list[Key]:
    rows = desk.database.rows(ORDER_LINES.name)
    return [key for line in range(1, _LINE_MAX + 1) if (key := (order_number, line)) in rows]


def cancel_order(desk: Desk) -> None:
    """Delete an order's lines, and sometimes the order."""
    key = desk.any(ORDERS)
    if key is None:
        return
    with desk.database.transaction():
        lines = _lines_of(desk, key[0])
        if lines:
            desk.database.delete(ORDER_LINES.name, lines)
        if desk.random.random() < 0.5:
            desk.database.delete(ORDERS.name, [key])
        else:
            desk.set(ORDERS, [key], status="cancelled")


def shift_lines(desk: Desk) -> None:
    """Renumber all lines of an order by one: in one statement a row gives up a key and another
    takes it.
    """
    key = desk.any(ORDERS)
    lines = _lines_of(desk, key[0]) if key else []
    if lines and lines[-1][1] != _LINE_MAX:
        desk.set(ORDER_LINES, lines[::-1], line_no=lambda line: line + 1)


def touch_any(names: Sequence[str]) -> Callable[[Desk], None]:
    """Return random work on any tables: updates of two columns, inserts, a few deletes."""

    def act(desk: Desk) -> None:
        name = desk.random.choice(names)
        table = next(spec for spec in desk.database.tables if spec.name == name)
        dice = desk.random.random()
        if dice < 0.2 or not table.key or not len(desk.database.rows(name)):
            desk.database.insert(name, [desk.fresh(table)])
        elif dice < 0.25:
            desk.database.delete(name, desk.some(table, 2))
        else:
            columns = (
                table.columns[-2:]
                if len(table.columns) > len(table.key) + 1
                else table.columns[-1:]
            )
            values = {c.name: desk.make.value(c) for c in columns if c.name not in table.key}
            desk.set(table, desk.some(table, 3), **values)

    return act


@dataclass(frozen=True)
class Activity:
    """An activity with its frequency, and the tables that it needs."""

    act: Callable[[Desk], None]
    weight: float
    needs: frozenset[str]


def _activity(act: Callable[[Desk], None], weight: float, *needs: TableSpec) -> Activity:
    return Activity(act, weight, frozenset(table.name for table in needs))


ACTIVITIES = (
    _activity(restock, 25, PRODUCTS),
    _activity(reprice, 12, PRODUCTS),
    _activity(rate, 8, PRODUCTS),
    _activity(list_product, 1, PRODUCTS),
    _activity(sign_up, 5, CUSTOMERS),
    _activity(edit_customer, 6, CUSTOMERS),
    _activity(log_in, 8, CUSTOMERS),
    _activity(renumber_customer, 1, CUSTOMERS),
    _activity(leave, 1, CUSTOMERS),
    _activity(fill_cart, 20, CUSTOMERS, PRODUCTS, CARTS),
    _activity(empty_cart, 10, CUSTOMERS, PRODUCTS, CARTS),
    _activity(order, 10, CUSTOMERS, PRODUCTS, ORDERS, ORDER_LINES),
    _activity(advance_orders, 10, CUSTOMERS, PRODUCTS, ORDERS, ORDER_LINES),
    _activity(cancel_order, 2, CUSTOMERS, PRODUCTS, ORDERS, ORDER_LINES),
    _activity(shift_lines, 1, CUSTOMERS, PRODUCTS, ORDERS, ORDER_LINES),
)
