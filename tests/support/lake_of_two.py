"""A lake of two tables, one of them parked, for tests of commands."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from lakesplice.model.change import Op
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.table.protocol.intents import Redirect
from tests.support.indexed import IndexedTable
from tests.support.made import GENERATION

SCHEMA = TableSchema(
    (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "name", "name", ColumnType(Primitive.STRING), "TEXT"),
        Column(2, "price", "price", ColumnType(Primitive.DECIMAL, 10, 2), "DECIMAL(10,2)"),
        Column(3, "photo", "photo", ColumnType(Primitive.BINARY), "BLOB"),
    ),
    ("id",),
    (0, 4),
)


def item(key: int, name: str | None) -> dict[str, Any]:
    return {"id": key, "name": name, "price": Decimal("1.50"), "photo": b"\x00\xff"}


def items_of(lake: Path) -> IndexedTable:
    """Versions: 0 created, 1 rows 0 to 9, 2 their index, 3 an update of 3 and a delete of 4."""
    made = IndexedTable(lake / "shop" / "items", SCHEMA)
    made.insert([item(at, f"name {at}") for at in range(10)])
    made.change([(Op.UPDATE, item(3, "changed")), (Op.DELETE, item(4, "name 4"))])
    return made


def parked_of(lake: Path) -> IndexedTable:
    made = IndexedTable(lake / "shop" / "no_key", TableSchema())
    detail = "the table has no primary key"
    reason = ParkReason(ParkCode.NO_KEY, detail, "a.shop.no_key", 0, Offset(7))
    made._commit(Redirect(GENERATION, made.snapshot.version, parked=reason))
    return made


def root(table: IndexedTable) -> Path:
    return table.store.root
