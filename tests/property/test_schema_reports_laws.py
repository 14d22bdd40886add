"""Reports of schema changes: however they are divided into partitions and reads, a table has the
types that its changes have in the order of the binlog. It is parked exactly if a change was
reported too late.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events.ddl import SchemaChange, read_schema_change
from lakesplice.formats.events.maxwell.ddl_types import types_of
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.sources.schema_reports import SchemaReports, reporting_topic
from tests.support.drawing import examples
from tests.support.maxwell import schema_record

TABLES = ("items", "orders")
PARTITIONS, LOOKS, FIRST = 2, 3, 10
COLUMNS = {"id": "int", "price": "decimal"}
UNDESCRIBED = TableSchema(
    (Column(0, "id", "id", ColumnType(Primitive.LONG), "declared:long"),), ("id",), (0, 1)
)


def change(number: int, table: str) -> SchemaChange:
    """The change at a place: it gives the price digits that it has at no other place."""
    what = f"MODIFY price decimal(30,{number})" if number > len(TABLES) else "CREATE"
    sql = f"ALTER TABLE {table} {what}"
    if what == "CREATE":
        sql = f"CREATE TABLE {table} (id int, price decimal(30,{number}))"
    before = None if what == "CREATE" else COLUMNS
    record = schema_record(sql, FIRST * number, table=table, before=before, after=COLUMNS)
    read = read_schema_change(record)
    assert isinstance(read, SchemaChange)
    return read


def prices(reports: SchemaReports, table: str) -> list[str]:
    types = reports.types(source(table, 0), TableName("shop", table))
    assert types is not None
    assert types.ordered
    return [version.columns["price"].name for version in types.versions]


def source(table: str, number: int) -> SourceState:
    """A table's topic, read up to just behind the change at a place."""
    reached = Position.of(0, 3, FIRST * number + 1, 0, 1)
    return SourceState(f"mx.shop.{table}", "t", {0: PartitionState(Offset(9), reached)})


@settings(max_examples=examples(100))
@given(data=st.data())
def test_however_reports_are_divided_types_and_overtaken_tables_are_those_of_their_places(
    data: st.DataObject,
) -> None:
    later = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(TABLES), st.integers(0, PARTITIONS - 1), st.integers(0, LOOKS - 1)
            ),
            max_size=8,
        )
    )
    # Both tables' beginning is read at the first look. A partition is read in its own order.
    begun = [(table, 0, 0) for table in TABLES]
    reports = SchemaReports(types_of, whole=True, partitioned=True)
    looks: list[dict[int, list[SchemaChange]]] = [{} for _ in range(LOOKS)]
    expected: dict[str, list[str]] = {table: [] for table in TABLES}
    late: dict[str, list[int]] = {table: [] for table in TABLES}
    read_by = dict.fromkeys(range(PARTITIONS), 0)
    for number, (table, partition, drawn) in enumerate([*begun, *later], start=1):
        look = read_by[partition] = max(read_by[partition], drawn)
        looks[look].setdefault(partition, []).append(change(number, table))
        expected[table].append(f"decimal(30,{number})")
        if look:
            late[table].append(number)
    for fresh in looks:
        assert reports.learn(fresh) == ()
    for table in TABLES:
        assert prices(reports, table) == expected[table]
        reached = data.draw(st.integers(1, len(begun) + len(later)))
        reason = reports.take_overtaken(
            source(table, reached), TableName("shop", table), UNDESCRIBED
        )
        assert (reason is not None) == any(number <= reached for number in late[table])
        again = reports.take_overtaken(
            source(table, reached), TableName("shop", table), UNDESCRIBED
        )
        assert again is None


def test_a_maxwell_that_is_set_for_a_table_reports_before_the_connector_of_its_prefix() -> None:
    globs = (("first", "mx.shop.*"), ("second", "mx.*"))
    topics = ("mx.shop.items", "mx.other.items", "db.shop.items")
    assert [reporting_topic(one, globs) for one in topics] == ["first", "second", "db"]


@pytest.mark.parametrize("partitioned", [False, True])
def test_positions_that_start_over_are_said_once(partitioned: bool) -> None:
    reports = SchemaReports(types_of, whole=True, partitioned=partitioned)
    changes = [change(number, "items") for number in (1, 3, 2)]
    again = replace(changes[2], ddl="other")
    positions = [reports.learn({0: [one]}) for one in [*changes, again]]
    assert positions == [(), (), (changes[2].position,), ()]
    # At the highest position that was read, so nothing has to be put before it.
    assert reports.learn({1: [replace(changes[1], ddl="other")]}) == ()
