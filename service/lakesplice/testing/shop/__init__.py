"""A seeded simulator of a small shop, whose database sends change events as Debezium does.

    shop = Shop(seed=1)
    events = shop.snapshot() + shop.step(1_000)
    shop.truth("orders")  # what a lake must hold after it applied all of them

`Database` has no workload, for tests that choose their statements; `WideTable` makes millions of
events for benchmarks.
"""

from lakesplice.testing.shop.columns import Column, Value
from lakesplice.testing.shop.database import Database, Key, Row
from lakesplice.testing.shop.events import Event
from lakesplice.testing.shop.simulator import Shop
from lakesplice.testing.shop.tables import (
    CARTS,
    CUSTOMERS,
    ORDER_LINES,
    ORDERS,
    PRODUCTS,
    SHOP,
    VISITS,
    WIDE,
    TableSpec,
    small_tables,
)
from lakesplice.testing.shop.wide import WideTable

__all__ = [
    "CARTS",
    "CUSTOMERS",
    "ORDERS",
    "ORDER_LINES",
    "PRODUCTS",
    "SHOP",
    "VISITS",
    "WIDE",
    "Column",
    "Database",
    "Event",
    "Key",
    "Row",
    "Shop",
    "TableSpec",
    "Value",
    "WideTable",
    "small_tables",
]
