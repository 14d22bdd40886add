"""Maxwell's records of schema changes: damaged ones, and statements that change no type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events.ddl import SchemaChange, read_schema_change
from lakesplice.formats.events.json_reading.strict import Flaw
from tests.support.debezium import compact
from tests.support.maxwell import schema_record
from tests.support.maxwell_types import (
    types,
    written,
)


@pytest.mark.parametrize(
    "damage", [{"sql": None}, {"def": {"columns": 1}}, {"def": {"columns": []}}]
)
def test_a_damaged_record_is_a_flaw(damage: dict[str, Any]) -> None:
    record = {"type": "table-create", "database": "shop", "table": "items", "sql": "x", **damage}
    assert isinstance(read_schema_change(compact(record)), Flaw)


_MEMBERS = st.sampled_from(("type", "sql", "def", "old", "position", "database"))
_ANYTHING: st.SearchStrategy[object] = (
    st.none() | st.integers() | st.text() | st.just({}) | st.just([])
)


@given(st.dictionaries(_MEMBERS, _ANYTHING))
def test_any_schema_record_is_read_or_reported_as_damaged(members: dict[str, object]) -> None:
    record = {"type": "table-alter", "table": "items", "database": "shop", "sql": "x", **members}
    change = read_schema_change(compact(record))
    assert change is None or isinstance(change, Flaw | SchemaChange)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE items ADD INDEX i (id)",
        "ALTER TABLE items COMMENT='new'",
        "ALTER TABLE items ORDER BY id, price",
        "ALTER TABLE items DROP PARTITION p1, p2",
        "ALTER TABLE items /*!50100 PARTITION BY HASH(id) PARTITIONS 4 */",
        "CREATE INDEX i ON items (id)",
    ],
)
def test_a_statement_that_changes_no_column_leaves_the_types_known(sql: str) -> None:
    made = "CREATE TABLE items (id bigint primary key, price decimal(9,3))"
    columns = {"id": "bigint", "price": "decimal"}
    history = types(
        schema_record(made, 10, after=columns),
        schema_record(sql, 20, before=columns, after=columns),
    )
    assert written(history, 30) == {"id": "bigint", "price": "decimal(9,3)"}


def test_a_statement_that_says_nothing_of_a_column_that_changed_is_unread() -> None:
    made = "CREATE TABLE items (id bigint primary key, price decimal(9,3))"
    columns = {"id": "bigint", "price": "decimal"}
    history = types(
        schema_record(made, 10, after=columns),
        schema_record("ALTER TABLE items COMMENT=''", 20, before=columns, after={"id": "bigint"}),
    )
    assert "price" not in written(history, 30)
