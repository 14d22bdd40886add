"""Types from the source's schema changes: each change is read with the types at its position."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakesplice.formats.events import DecodeContext, TypeHistory, TypeVersion, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Record,
    compact,
    dead,
    decode_all,
    image,
    images,
    money,
    payload,
)
from tests.support.schema_changes import connect_record

_BORN, _ALTERED = Position.of(0, 3, 10, 0, 0), Position.of(0, 3, 200, 0, 0)


def _history(*versions: tuple[Position, Mapping[str, str]], ordered: bool = True) -> TypeHistory:
    return TypeHistory(
        tuple(TypeVersion(place, declare(types)) for place, types in versions), ordered
    )


def _two(price: str, *, ordered: bool = True) -> TypeHistory:
    """The table's types, and from `_ALTERED` on another one of its price."""
    after = {**DECLARED, "price": price}
    return _history((_BORN, DECLARED), (_ALTERED, after), ordered=ordered)


def _created(row: int, pos: int, **changed: object) -> Record:
    return compact({"id": row}), compact(payload("c", None, image(row, **changed), pos=pos))


def _price_types(records: list[Record], context: DecodeContext) -> dict[int, str]:
    decoded = decode_all(records, context)
    assert (decoded.stops, dead(decoded)) == ((), {})
    return {
        row: field.source_type
        for block in decoded.blocks
        for row in block.rows.tolist()
        for field in block.schema.fields
        if field.name == "price"
    }


def test_a_change_of_type_is_noticed_although_the_bytes_still_fit() -> None:
    records = [_created(at, pos) for at, pos in enumerate((100, 199, 200, 300))]
    context = DecodeContext(TABLE, history=_two("decimal(8,4)"))
    decoded = decode_all(records, context)
    prices = {row: str(after["price"]) for row, (_, after) in images(decoded).items() if after}
    assert prices == {0: "0.00", 1: "1.00", 2: "0.0200", 3: "0.0300"}
    assert _price_types(records, context) == {
        0: "declared:decimal(8,2)",
        1: "declared:decimal(8,2)",
        2: "declared:decimal(8,4)",
        3: "declared:decimal(8,4)",
    }


def test_changes_that_come_late_are_read_with_the_types_of_their_place() -> None:
    places = [300, 100, 301, 101, 302]
    records = [_created(at, pos) for at, pos in enumerate(places)]
    types = _price_types(records, DecodeContext(TABLE, history=_two("decimal(9,2)")))
    assert [types[at].endswith("(9,2)") for at in range(5)] == [pos >= 200 for pos in places]


def test_values_that_the_other_types_refuse_harm_nothing() -> None:
    records = [
        _created(0, 100),
        _created(1, 300, price="twelve"),
        _created(2, 101),
        _created(3, 301, price=money(5)),
    ]
    decoded = decode_all(records, DecodeContext(TABLE, history=_two("string")))
    prices = {row: after["price"] for row, (_, after) in images(decoded).items() if after}
    assert {row: str(price) for row, price in prices.items()} == {
        0: "0.00",
        1: "twelve",
        2: "2.00",
        3: money(5),
    }
    assert dead(decoded) == {}


def test_a_change_from_before_the_history_stops_the_table_unless_its_types_are_declared() -> None:
    history = _two("decimal(8,4)")
    records = [_created(0, 300), _created(1, 5)]
    (stop,) = decode_all(records, DecodeContext(TABLE, history=history)).stops
    assert (stop.row, stop.code) == (1, ParkCode.TYPES_UNDECLARED)
    assert "the schema-change topic begins at 0:3:10:0:0" in stop.detail
    declared = DecodeContext(TABLE, declare(DECLARED), history=history)
    assert _price_types(records, declared) == {
        0: "declared:decimal(8,4)",
        1: "declared:decimal(8,2)",
    }


def test_types_of_the_source_count_before_declared_ones() -> None:
    context = DecodeContext(
        TABLE, declare({**DECLARED, "price": "decimal(8,3)"}), history=_history((_BORN, DECLARED))
    )
    assert _price_types([_created(0, 100)], context) == {0: "declared:decimal(8,2)"}


def test_a_column_without_a_type_from_the_source_may_be_declared() -> None:
    told = {name: type_ for name, type_ in DECLARED.items() if name != "price"}
    history = _history((_BORN, told))
    (stop,) = decode_all([_created(0, 100)], DecodeContext(TABLE, history=history)).stops
    assert stop.code is ParkCode.TYPES_UNDECLARED
    assert '"price": TYPE' in stop.detail
    context = DecodeContext(TABLE, declare({"price": "decimal(8,2)"}), history=history)
    assert _price_types([_created(0, 100)], context) == {0: "declared:decimal(8,2)"}


def test_without_comparable_positions_only_types_that_never_changed_are_known() -> None:
    records = [_created(0, 100)]
    same = _two("decimal(8,2)", ordered=False)
    assert _price_types(records, DecodeContext(TABLE, history=same)) == {0: "declared:decimal(8,2)"}
    changed = _two("decimal(8,4)", ordered=False)
    (stop,) = decode_all(records, DecodeContext(TABLE, history=changed)).stops
    assert "price: it was decimal(8,2) and decimal(8,4)" in stop.detail


def test_a_delete_with_only_its_key_has_the_columns_of_its_place() -> None:
    before = {**DECLARED, "note": "string"}
    history = _history((_BORN, before), (_ALTERED, DECLARED))
    records = [
        (compact({"id": 0}), compact(payload("c", None, image(0, note="x"), pos=100))),
        (compact({"id": 0}), compact(payload("d", None, None, pos=300))),
    ]
    decoded = decode_all(records, DecodeContext(TABLE, history=history))
    assert (decoded.stops, dead(decoded)) == ((), {})
    assert sum(map(len, decoded.blocks)) == 2


def _flattened(row: int, pos: int | None) -> Record:
    place = {} if pos is None else {"__file": "b.000003", "__pos": pos, "__row": 0}
    added = {"__deleted": "false", "__op": "c", **place}
    return compact({"id": row}), compact({**image(row), **added})


def test_flattened_changes_are_read_with_the_types_of_their_place() -> None:
    records = [_flattened(at, pos) for at, pos in enumerate((100, 300, 101))]
    types = _price_types(records, DecodeContext(TABLE, history=_two("decimal(8,4)")))
    assert [types[at][-4:] for at in range(3)] == ["8,2)", "8,4)", "8,2)"]


def test_flattened_changes_without_places_know_only_what_never_changed() -> None:
    context = DecodeContext(TABLE, history=_two("decimal(8,4)"))
    (stop,) = decode_all([_flattened(0, None)], context).stops
    assert stop.code is ParkCode.TYPES_UNDECLARED


def _told(*statements: str, handling: ConverterSettings | None = None) -> TypeHistory:
    read = [
        read_schema_change(connect_record(sql, pos=100 * (at + 1), changes=None))
        for at, sql in enumerate(statements)
    ]
    changes = [change for change in read if isinstance(change, SchemaChange)]
    found = types_of(history_of(changes), TABLE, handling or ConverterSettings())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("written", "type_", "fill"),
    [
        ("int NOT NULL DEFAULT 7", "integer", "7"),
        ("int", "integer", None),
        ("int NOT NULL", "integer", "0"),
        ("decimal(5,2) NOT NULL DEFAULT 1.5", "decimal(5,2)", "1.50"),
        ("varchar(9) DEFAULT 'n/a'", "string", "n/a"),
        ("text NOT NULL", "string", ""),
        ("enum('a','b') NOT NULL", "string", "a"),
        ("timestamp DEFAULT CURRENT_TIMESTAMP", "timestamp", None),
        ("decimal(65,30) NOT NULL", "string", f"0.{'0' * 30}"),
        ("double DEFAULT (rand())", "double", None),
        ("json", "string", None),
        ("char(3) CHARACTER SET binary", "binary", None),
        ("float(53)", "double", None),
        ("decimal", "decimal(10,0)", None),
        ("tinyint(1) NOT NULL DEFAULT TRUE", "byte", "1"),
        ("int NOT NULL DEFAULT (1 + 1)", "integer", None),
        ("int AS (id + 1) STORED NOT NULL", "integer", None),
        ("varchar(36) NOT NULL DEFAULT uuid()", "string", None),
        ("int NOT NULL AUTO_INCREMENT", "integer", None),
        ("time NOT NULL DEFAULT '01:02:03'", "long", "3723000000"),
        ("time(3) NOT NULL DEFAULT '-00:00:01.5'", "long", "-1500000"),
        ("time NOT NULL DEFAULT '1:2'", "long", None),
        ("time NOT NULL", "long", "0"),
        ("date NOT NULL DEFAULT '1970-01-03'", "date", "2"),
        ("year NOT NULL DEFAULT 2026", "integer", "2026"),
        ("year NOT NULL DEFAULT 26", "integer", None),
        ("binary(3) NOT NULL DEFAULT 'a'", "binary", "YQAA"),
        ("varbinary(3) NOT NULL DEFAULT 'a'", "binary", "YQ=="),
        ("bit(9) NOT NULL", "binary", "AAA="),
        ("bit(1) NOT NULL", "boolean", "false"),
    ],
)
def test_a_column_that_was_added_says_what_rows_got_in_it(
    written: str, type_: str, fill: str | None
) -> None:
    added = _told("CREATE TABLE items (id int)", f"ALTER TABLE items ADD v {written}").versions[1]
    assert (added.columns["v"].type.name, added.columns["v"].fill) == (type_, fill)


def test_a_fill_stays_with_its_column_after_the_default_changes() -> None:
    history = _told(
        "CREATE TABLE items (id int, old int DEFAULT 1)",
        "ALTER TABLE items ADD v int NOT NULL DEFAULT 7",
        "ALTER TABLE items CHANGE v w decimal(9,2) NOT NULL DEFAULT 8",
        "ALTER TABLE items DROP w, ADD x int",
    )
    fills = [
        {name: type_.fill for name, type_ in version.columns.items() if type_.fill}
        for version in history.versions
    ]
    assert fills == [{}, {"v": "7"}, {"w": "7.00"}, {}]


@pytest.mark.parametrize(
    ("written", "fill"), [("date NOT NULL DEFAULT '1970-01-03'", "2"), ("bit(1) NOT NULL", "false"),
                          ("varbinary(3) NOT NULL", "")]
)  # fmt: skip
def test_a_fill_stays_with_a_column_that_keeps_its_type_while_others_change(
    written: str, fill: str
) -> None:
    history = _told(
        "CREATE TABLE items (id int)",
        f"ALTER TABLE items ADD v {written}",
        "ALTER TABLE items ADD w int",
    )
    assert [version.columns["v"].fill for version in history.versions[1:]] == [fill, fill]


def test_a_default_in_local_time_is_unknown_once_the_column_is_a_timestamp() -> None:
    history = _told(
        "CREATE TABLE items (id int)",
        "ALTER TABLE items ADD v datetime NOT NULL DEFAULT '1970-01-01 00:00:01'",
        "ALTER TABLE items MODIFY v timestamp NOT NULL",
    )
    fills = [version.columns["v"].fill for version in history.versions[1:]]
    assert fills == ["1000000", None]


def test_a_column_is_known_by_all_its_names_from_anywhere() -> None:
    history = _told(
        "CREATE TABLE items (id int, a int)",
        "ALTER TABLE items RENAME COLUMN a TO b, ADD c int",
        "ALTER TABLE items CHANGE b d bigint, DROP c, ADD a text",
        "ALTER TABLE items DROP d, RENAME COLUMN a TO d",
    )
    assert [dict(version.formerly) for version in history.versions] == [
        {},
        {"b": ("a",)},
        {"d": ("b", "a")},
        {"d": ("a",)},
    ]
    assert [dict(version.later) for version in history.versions] == [
        {"a": ("b", "d")},
        {"b": ("d",)},
        {"a": ("d",)},
        {},
    ]


def test_a_type_without_an_exact_column_is_named() -> None:
    history = _told("CREATE TABLE items (id int, name inet6, price int, stock int)")
    (stop,) = decode_all([_created(0, 100)], DecodeContext(TABLE, history=history)).stops
    assert "name: INET6 has no exact column without schemas" in stop.detail


def test_a_table_whose_ddl_was_not_read_stops_with_the_reason() -> None:
    history = _told("CREATE TABLE items (id int)", "ALTER TABLE items FROBNICATE")
    (stop,) = decode_all([_created(0, 300)], DecodeContext(TABLE, history=history)).stops
    assert "'FROBNICATE' isn't a known part of ALTER TABLE" in stop.detail
