"""Declared types together with Maxwell's records of schema changes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from lakesplice.formats.events import TypeHistory
from lakesplice.model.parking import ParkCode
from lakesplice.model.types import ColumnType
from tests.support.debezium import images
from tests.support.maxwell import row_record, schema_record
from tests.support.maxwell_types import (
    BORN,
    CREATED,
    NOTED,
    RETYPED,
    decode,
    stopped,
    types,
)


def altered(sql: str, after: Mapping[str, str], before: Mapping[str, str] = BORN) -> TypeHistory:
    """A table that was there before Maxwell, and the first change of it."""
    return types(schema_record(sql, 20, before=before, after=after))


def test_unknown_digits_are_taken_from_the_declaration() -> None:
    history = altered(NOTED, {**BORN, "note": "varchar"})
    event = {"id": 1, "price": 1.5}
    records = [
        row_record("insert", event, 10),
        row_record("insert", {**event, "note": "x"}, 30),
    ]
    assert "price: DECIMAL, whose digits are not known" in stopped(decode(records, history))
    decoded = decode(records, history, {"price": "decimal(10,2)"})
    assert decoded.stops == ()
    assert [image[1]["price"] for image in images(decoded).values() if image[1]] == [
        Decimal("1.50"),
        Decimal("1.50"),
    ]


@pytest.mark.parametrize(
    ("declared", "why"),
    [("decimal(12,4)", "which only a later statement gave it"), ("int", "which isn't a type")],
)
def test_a_declaration_that_cannot_be_of_before_the_alteration_counts_for_nothing_there(
    declared: str, why: str
) -> None:
    history = altered(RETYPED, BORN)
    row = {"id": 1, "price": 1.5}
    detail = stopped(decode([row_record("insert", row, 10)], history, {"price": declared}))
    assert why in detail
    after = decode([row_record("insert", row, 30)], history, {"price": declared})
    assert after.blocks[0].schema.fields[1].source_type == "declared:decimal(12,4)"


def test_a_declaration_of_before_the_alteration_counts_before_it_only() -> None:
    rows = [row_record("insert", {"id": at, "price": 1.5}, at) for at in (10, 30, 11)]
    decoded = decode(rows, altered(RETYPED, BORN), {"price": "decimal(10,2)"})
    assert decoded.stops == ()
    found = {
        row: block.schema.fields[1].type for block in decoded.blocks for row in block.rows.tolist()
    }
    before, after = ColumnType.parse("decimal(10,2)"), ColumnType.parse("decimal(12,4)")
    assert found == {0: before, 1: after, 2: before}


CHANGED = "ALTER TABLE items ADD at_ time, ADD yes tinyint(1) not null default 1"
FLAGGED = {"id": "bigint", "at_": "time", "yes": "tinyint"}


def test_a_declaration_may_be_more_exact_than_a_definition() -> None:
    history = altered(CHANGED, FLAGGED, {"id": "bigint"})
    records = [row_record("insert", {"id": 1, "at_": "23:59:59", "yes": 1}, 30)]
    (stop,) = decode(records, history).stops
    assert stop.code is ParkCode.UNSUPPORTED
    decoded = decode(records, history, {"at_": "time_of_day", "yes": "boolean"})
    assert images(decoded)[0][1] == {"id": 1, "at_": 86_399_000_000, "yes": True}
    fills = {field.name: field.fill for field in decoded.blocks[0].schema.fields}
    assert fills == {"id": None, "at_": None, "yes": "true"}


def test_a_column_that_was_added_has_its_default_in_the_rows_that_were_there() -> None:
    history = altered(
        "ALTER TABLE items ADD n int not null, ADD t varchar(9) default 'x'",
        {"id": "bigint", "n": "int", "t": "varchar"},
        {"id": "bigint"},
    )
    decoded = decode([row_record("insert", {"id": 1, "n": 1, "t": "y"}, 30)], history)
    assert [field.fill for field in decoded.blocks[0].schema.fields] == [None, "0", "x"]


def test_a_column_that_the_table_has_and_the_row_lacks_was_not_sent() -> None:
    history = types(schema_record(CREATED, 10, after=BORN))
    decoded = decode([row_record("insert", {"id": 1}, 30)], history, {"gone": "int"})
    assert [field.name for field in decoded.blocks[0].schema.omitted] == ["price"]
