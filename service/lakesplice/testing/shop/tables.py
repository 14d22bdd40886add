"""The tables of the simulated shop, and further ones for tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lakesplice.testing.shop.columns import (
    Column,
    bigint,
    blob,
    boolean,
    date,
    datetime_micros,
    datetime_millis,
    decimal,
    double,
    enum,
    integer,
    json_text,
    real,
    smallint,
    time,
    timestamp,
    varchar,
)

ORDER_STATES = ("new", "paid", "packed", "shipped", "returned", "cancelled")


@dataclass(frozen=True)
class TableSpec:
    """A table of the source: its columns in the source's order, and its key (empty if it has
    none).
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @cached_property
    def key_indexes(self) -> tuple[int, ...]:
        """The indexes of the key's columns among all columns."""
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in self.key)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The table as the lake stores it, without system columns, in the source's column order."""
        return pa.schema(
            [
                pa.field(column.name, column.type.arrow, nullable=column.name not in self.key)
                for column in self.columns
            ]
        )

    def index(self, column: str) -> int:
        """Return the index of a column."""
        return [each.name for each in self.columns].index(column)

    def with_column(self, column: Column) -> TableSpec:
        """Return the table after an ALTER that added `column` at the end."""
        return replace(self, columns=(*self.columns, column))

    def without_column(self, column: str) -> TableSpec:
        """Return the table after an ALTER that dropped a column."""
        kept = tuple(each for each in self.columns if each.name != column)
        return replace(self, columns=kept)


CUSTOMERS = TableSpec(
    "customers",
    (
        bigint("id", optional=False),
        varchar("email", optional=False),
        varchar("name"),
        decimal("balance", 12, 2, optional=False, default=0),
        decimal("loyalty", 30, 18),
        enum("status", ("new", "active", "blocked"), optional=False, default="new"),
        json_text("prefs"),
        boolean("newsletter"),
        date("born"),
        time("calls_after"),
        datetime_millis("last_login"),
        blob("avatar"),
        varchar("note"),
        timestamp("created_at", 3, optional=False, default=0),
    ),
    ("id",),
)
PRODUCTS = TableSpec(
    "products",
    (
        varchar("sku", optional=False),
        varchar("title", optional=False),
        integer("stock", optional=False),
        decimal("price", 10, 4, optional=False),
        real("weight"),
        double("rating"),
        smallint("shelf"),
        datetime_micros("updated_at"),
    ),
    ("sku",),
)
ORDERS = TableSpec(
    "orders",
    (
        bigint("id", optional=False),
        bigint("customer_id", optional=False),
        enum("status", ORDER_STATES, optional=False, default="new"),
        decimal("total", 12, 2, optional=False),
        varchar("remark"),
        timestamp("placed_at", 6, optional=False),
        timestamp("changed_at", 0),
    ),
    ("id",),
)
ORDER_LINES = TableSpec(
    "order_lines",
    (
        bigint("order_id", optional=False),
        integer("line_no", optional=False),
        varchar("sku", optional=False),
        integer("quantity", optional=False),
        decimal("price", 10, 4),
    ),
    ("order_id", "line_no"),
)
CARTS = TableSpec(
    "carts",
    (
        bigint("customer_id", optional=False),
        varchar("sku", optional=False),
        integer("quantity", optional=False),
        datetime_millis("added_at"),
    ),
    ("customer_id", "sku"),
)
SHOP = (CUSTOMERS, PRODUCTS, ORDERS, ORDER_LINES, CARTS)

VISITS = TableSpec("visits", (bigint("customer_id"), varchar("page")), ())
"""A table without a key, which a lake can't hold: its events have no key either."""

WIDE = TableSpec(
    "sales",
    (
        bigint("id", optional=False),
        *(integer(name) for name in ("sold_date", "sold_time", "item", "customer", "household")),
        *(integer(name) for name in ("address", "store", "promotion")),
        bigint("ticket"),
        integer("quantity"),
        *(
            decimal(name, 7, 2)
            for name in (
                "wholesale_cost",
                "list_price",
                "sales_price",
                "discount",
                "ext_sales_price",
                "ext_wholesale_cost",
                "ext_list_price",
                "ext_tax",
                "coupon",
                "net_paid",
            )
        ),
        decimal("net_profit", 7, 2),
        datetime_micros("changed_at"),
    ),
    ("id",),
)
"""23 columns; an update has about 1.4 kB without schemas and changes the last two columns."""


def small_tables(count: int) -> tuple[TableSpec, ...]:
    """Return `count` small tables of one shape, `small_000` onwards, for tests of many tables."""
    columns = (
        bigint("id", optional=False),
        varchar("label"),
        integer("amount"),
        datetime_millis("changed_at"),
    )
    return tuple(TableSpec(f"small_{number:03d}", columns, ("id",)) for number in range(count))
