"""The log names the columns that statistics cover, whatever columns the table has or gets."""

from __future__ import annotations

from pathlib import Path

from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.table.protocol.intents import Evolve
from tests.support.tables import SCHEMA, TableUnderTest, local_table

PROPERTY = "delta.dataSkippingStatsColumns"


def covered(table: TableUnderTest) -> str | None:
    return table.now().log.metadata.properties.get(PROPERTY)


def test_a_column_that_is_added_is_covered_from_then_on(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.create()
    assert covered(table) == "id"
    price = Column(3, "price", "price", ColumnType(Primitive.DECIMAL, 9, 2), "decimal")
    note = Column(4, "note", "note", ColumnType(Primitive.DOUBLE), "double")
    grown = SCHEMA.with_columns([price, note], SCHEMA.key)
    table.committed(Evolve.of(1, table.now().manifest, grown))
    assert covered(table) == "id,price"


def test_a_table_without_columns_names_none(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.create(schema=TableSchema())
    assert covered(table) is None
