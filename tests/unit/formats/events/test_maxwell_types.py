"""Columns in Maxwell's records of schema changes, and contradicting declarations."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.names import DEFAULT_DATABASE, TableName
from tests.support.debezium import Record, compact, dead, images
from tests.support.maxwell import row_record, schema_record
from tests.support.maxwell_types import (
    BORN,
    CREATED,
    NOTED,
    RETYPED,
    at,
    decode,
    stopped,
    types,
    written,
)

EVERY_TYPE = {
    "tinyint": "tinyint", "smallint unsigned": "smallintunsigned", "int": "int",
    "bigint unsigned": "bigintunsigned", "boolean": "tinyint", "decimal(12,2)": "decimal(12,2)",
    "numeric(5)": "decimal(5,0)", "float": "float", "float(53)": "double", "double": "double",
    "bit": "bit(1)", "bit(8)": "bit(8)", "char(3)": "string", "varchar(9) binary": "string",
    "text": "string", "char(3) character set binary": "binary", "blob": "binary",
    "enum('a','b')": "enum", "set('a','b')": "set", "date": "date", "time(3)": "time",
    "datetime": "datetime(0)", "datetime(6)": "datetime(6)", "timestamp(6)": "timestamp",
    "year": "year", "json": "json",
}  # fmt: skip


@pytest.mark.parametrize(("type_", "expected"), EVERY_TYPE.items())
def test_a_created_table_has_the_types_of_its_statement(type_: str, expected: str) -> None:
    shown = {"boolean": "tinyint", "numeric(5)": "decimal", "varchar(9) binary": "varchar"}
    sql = f"CREATE TABLE items (id bigint, c {type_})"
    history = types(schema_record(sql, 10, after={"id": "bigint", "c": shown.get(type_, type_)}))
    assert written(history, 10) == {"id": "bigint", "c": expected}


def test_a_decimal_of_more_digits_than_any_column_has_is_not_known() -> None:
    history = types(schema_record("CREATE TABLE items (c decimal(65,2))", 10, after=BORN))
    assert "price" not in written(history, 10)


PRICES = ("decimal(10,2)", "decimal(12,4)", "int", "bigint unsigned", "varchar(9)", "double")
VALUES = (7, -7, 1.5, 1.2345, 18446744073709551615, "1.5", None)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(PRICES), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(10, 59), st.sampled_from(VALUES)), min_size=1, max_size=12),
)
def test_each_row_is_read_with_the_type_at_its_position(
    prices: Sequence[str], rows: Sequence[tuple[int, object]]
) -> None:
    kinds = [price.partition("(")[0] for price in prices]
    records = [
        schema_record(
            f"CREATE TABLE items (id bigint primary key, price {price})"
            if not number
            else f"ALTER TABLE items MODIFY price {price}",
            10 * (number + 1),
            before={**BORN, "price": kinds[number - 1]} if number else None,
            after={**BORN, "price": kinds[number]},
        )
        for number, price in enumerate(prices)
    ]
    events = [
        row_record("insert", {"id": row, "price": price}, pos)
        for row, (pos, price) in enumerate(rows)
    ]
    together = decode(events, types(*records))
    assert together.stops == ()
    found, refused = images(together), dead(together)
    for row, (pos, _) in enumerate(rows):
        price = prices[min(pos // 10, len(prices)) - 1].replace("varchar(9)", "string")
        alone = decode(events[row : row + 1], None, {"id": "bigint", "price": price})
        assert found.get(row) == images(alone).get(0)
        assert refused.get(row) == dead(alone).get(0)


def test_a_wall_clock_that_becomes_a_moment_is_another_type_from_its_place_on() -> None:
    history = types(
        schema_record(
            "CREATE TABLE items (id bigint, c datetime(3))",
            10,
            after={"id": "bigint", "c": "datetime(3)"},
        ),
        schema_record(
            "ALTER TABLE items MODIFY c timestamp(3)",
            20,
            before={"id": "bigint", "c": "datetime(3)"},
            after={"id": "bigint", "c": "timestamp(3)"},
        ),
    )
    row = {"id": 1, "c": "2024-02-29 23:59:59.123"}
    decoded = decode([row_record("insert", row, pos) for pos in (25, 15, 26)], history)
    found = {
        int(at): field.source_type
        for block in decoded.blocks
        for at in block.rows
        for field in block.schema.fields
        if field.name == "c"
    }
    assert found == {
        0: "declared:timestamp",
        1: "declared:timestamp_millis",
        2: "declared:timestamp",
    }


def test_the_first_alteration_reports_the_columns_before_it() -> None:
    history = types(
        schema_record(
            "ALTER TABLE items MODIFY stock bigint unsigned",
            20,
            before={"id": "bigint", "stock": "int"},
            after={"id": "bigint", "stock": "bigint unsigned"},
        )
    )
    assert written(history, 1) == {"id": "bigint", "stock": "int"}
    assert written(history, 20) == {"id": "bigint", "stock": "bigintunsigned"}
    # What is declared is the state after it, and counts for nothing.
    declared = {"id": "bigint", "stock": "bigint unsigned"}
    decoded = decode([row_record("insert", {"id": 1, "stock": 5}, 1)], history, declared)
    assert images(decoded)[0][1] == {"id": 1, "stock": 5}
    assert decoded.blocks[0].schema.fields[1].source_type == "declared:integer"


def test_columns_of_a_topic_that_lost_its_beginning_are_known_from_the_first_record_on() -> None:
    history = types(
        schema_record("CREATE TABLE other (id int)", 15, table="other", after={"id": "int"}),
        schema_record(NOTED, 20, before={"id": "int"}, after={"id": "int", "note": "varchar"}),
        whole=False,
    )
    assert written(history, 14) == {}
    assert written(history, 15) == {"id": "int"}


def test_a_renamed_column_keeps_its_digits_and_its_next_type_is_known_by_its_new_name() -> None:
    history = types(
        schema_record(
            "ALTER TABLE items RENAME COLUMN price TO cost",
            20,
            before=BORN,
            after={"id": "bigint", "cost": "decimal"},
        ),
        schema_record(
            "ALTER TABLE items MODIFY cost decimal(12,4)",
            30,
            before={"id": "bigint", "cost": "decimal"},
            after={"id": "bigint", "cost": "decimal"},
        ),
    )
    assert [version.partly for version in history.versions[:2]] == [
        {"price": history.versions[0].partly["price"]},
        {"cost": history.versions[0].partly["price"]},
    ]
    assert history.versions[0].partly["price"].next == "decimal(12,4)"
    assert history.versions[1].formerly == {"cost": ("price",)}


def test_a_statement_that_cannot_be_read_costs_the_digits_and_nothing_else() -> None:
    history = types(
        schema_record(CREATED, 10, after=BORN),
        schema_record(
            "ALTER TABLE items FROBNICATE",
            20,
            before=BORN,
            after={**BORN, "stock": "int unsigned"},
        ),
        schema_record(RETYPED, 30, before=BORN, after={**BORN, "stock": "int unsigned"}),
    )
    assert written(history, 10) == {"id": "bigint", "price": "decimal(10,2)"}
    assert written(history, 20) == {"id": "bigint", "stock": "intunsigned"}
    assert written(history, 30)["price"] == "decimal(12,4)"


def test_maxwells_columns_count_if_they_differ_from_the_statement() -> None:
    history = types(
        schema_record(
            "CREATE TABLE items (id bigint, c int, d decimal(10,2))",
            10,
            after={"id": "bigint", "c": "varbinary", "d": "decimal", "e": "int"},
        )
    )
    expected = {"id": "bigint", "c": "binary", "d": "decimal(10,2)", "e": "int"}
    assert written(history, 10) == expected


def test_a_swap_of_tables_in_one_statement_is_reported_in_a_record_each() -> None:
    swap = (
        "rename table `shop`.`items` to `shop`.`_items_del`, `shop`.`_items_gho` to `shop`.`items`"
    )
    copy = {"id": "bigint", "cost": "decimal"}
    history = types(
        schema_record(CREATED, 10, after=BORN),
        schema_record(
            "create table `shop`.`_items_gho` like `shop`.`items`",
            20,
            table="_items_gho",
            after=BORN,
        ),
        schema_record(
            "alter table `shop`.`_items_gho` change price cost decimal(12,4)",
            30,
            table="_items_gho",
            before=BORN,
            after=copy,
        ),
        schema_record(swap, 40, before=BORN, after=BORN, became="_items_del"),
        schema_record(swap, 40, table="_items_gho", before=copy, after=copy, became="items"),
    )
    assert [version.position.parts[2] for version in history.versions] == [10, 40]
    assert written(history, 40) == {"id": "bigint", "cost": "decimal(12,4)"}
    assert history.versions[1].formerly == {"cost": ("price",)}


def test_a_swap_with_an_unreported_copy_is_known_by_what_is_shown() -> None:
    swap = "RENAME TABLE items TO items_old, items_new TO items"
    copy = {"id": "bigint", "price": "decimal", "stock": "int"}
    history = types(
        schema_record(CREATED, 10, after=BORN),
        schema_record(swap, 40, before=BORN, after=BORN, became="items_old"),
        schema_record(swap, 40, table="items_new", before=copy, after=copy, became="items"),
    )
    assert written(history, 40) == {"id": "bigint", "stock": "int"}
    assert set(history.at(at(40))[0].partly) == {"price"}


def test_records_that_come_again_change_nothing() -> None:
    records = [
        schema_record(CREATED, 10, after=BORN),
        schema_record(RETYPED, 20, before=BORN, after=BORN),
        schema_record(NOTED, 30, before=BORN, after={**BORN, "note": "varchar"}),
    ]
    assert types(*records, *records[1:]) == types(*records)


def test_names_in_capitals_are_the_same_names() -> None:
    history = types(
        schema_record("CREATE TABLE ITEMS (id bigint, price decimal(10,2))", 10, after=BORN),
        schema_record(
            "ALTER TABLE Shop.Items MODIFY price decimal(12,4)", 20, before=BORN, after=BORN
        ),
    )
    assert written(history, 20)["price"] == "decimal(12,4)"


def test_names_without_a_database_are_in_that_of_the_session_which_nothing_tells() -> None:
    # The session was in another database, whose `likes` has other digits.
    history = types(
        schema_record(
            "CREATE TABLE likes (price decimal(10,2))",
            10,
            table="likes",
            after={"price": "decimal"},
        ),
        schema_record("CREATE TABLE shop.items LIKE likes", 20, after={"price": "decimal"}),
    )
    assert set(history.at(at(20))[0].partly) == {"price"}
    found = types(
        schema_record(
            "CREATE TABLE likes (price decimal(10,2))",
            10,
            table="likes",
            after={"price": "decimal"},
        ),
        schema_record("CREATE TABLE items LIKE likes", 20, after={"price": "decimal"}),
    )
    assert written(found, 20) == {"price": "decimal(10,2)"}


def test_a_table_that_is_dropped_and_re_created_is_another_one() -> None:
    history = types(
        schema_record(CREATED, 10, after=BORN),
        schema_record("DROP TABLE items", 20),
        schema_record(
            "CREATE TABLE items (id bigint, price bigint)",
            30,
            after={"id": "bigint", "price": "bigint"},
        ),
    )
    assert history.at(at(25))[0].gap == "the table was dropped"
    assert written(history, 30) == {"id": "bigint", "price": "bigint"}


def test_without_positions_only_types_that_never_changed_are_known() -> None:
    grown = {**BORN, "note": "varchar"}
    history = types(
        schema_record(CREATED, None, after=BORN),
        schema_record(NOTED, None, before=BORN, after=grown),
    )
    rows = [row_record("insert", {"id": 1, "price": 1.5}, None)]
    assert images(decode(rows, history))[0][1] == {"id": 1, "price": Decimal("1.50")}
    history = types(
        schema_record(CREATED, None, after=BORN),
        schema_record(RETYPED, None, before=BORN, after=BORN),
    )
    assert "it was decimal(10,2) and decimal(12,4)" in stopped(decode(rows, history))
    history = types(
        schema_record(
            "ALTER TABLE items MODIFY price bigint",
            None,
            before={"id": "bigint", "price": "int"},
            after={"id": "bigint", "price": "bigint"},
        )
    )
    assert "it was integer and long" in stopped(decode(rows, history))


def test_a_topic_that_names_no_database_finds_the_table_if_only_one_has_its_name() -> None:
    history = types(
        schema_record(CREATED, 10, after=BORN), table=TableName(DEFAULT_DATABASE, "items")
    )
    assert written(history, 10) == {"id": "bigint", "price": "decimal(10,2)"}


def test_schema_changes_among_the_rows_are_passed_over() -> None:
    rows: list[Record] = [row_record("insert", {"id": n, "price": 1.5}, 30 + n) for n in range(3)]
    changes: list[Record] = [
        (b"uuid", schema_record(CREATED, 10, after=BORN)),
        (b"uuid", schema_record(CREATED, 10, table="others", after=BORN)),
        (b"uuid", schema_record("DROP TABLE others", 40, table="others")),
        (
            b"uuid",
            compact({"type": "database-create", "database": "x", "ts": 1, "sql": "create …"}),
        ),
    ]
    mixed = [changes[0], rows[0], changes[1], rows[1], changes[2], rows[2], changes[3]]
    decoded = decode(mixed, types(changes[0][1] or b""))
    assert sorted(images(decoded)) == [1, 3, 5]
    assert decoded.ignored == {"schema-change": 4}
    assert dead(decoded) == {}
