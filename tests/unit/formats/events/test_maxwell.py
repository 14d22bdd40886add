"""Maxwell's events: rows before and after, their order, keys and schemas, and malformed ones."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering, Position
from tests.support.debezium import Record, compact, dead, images
from tests.support.maxwell_events import (
    Json,
    decode,
    event,
    names,
    places,
    row,
)


def test_the_row_before_is_the_row_after_with_what_changed_laid_over_it() -> None:
    decoded = decode(
        event("insert", row(1)),
        event("update", row(1, name="new", stock=None), {"name": "old", "stock": 7}),
        event("update", row(1, name="new"), {"name": None}),
        event("delete", row(1)),
    )
    assert decoded.format is FormatName.MAXWELL
    found = images(decoded)
    after = {"id": 1, "name": "item 1", "price": Decimal("1.50"), "stock": 1}
    assert found[0] == (None, after)
    assert found[1] == (
        {**after, "name": "old", "stock": 7},
        {**after, "name": "new", "stock": None},
    )
    assert found[2] == ({**after, "name": None}, {**after, "name": "new"})
    assert found[3] == (after, None)


def test_an_update_of_the_key_is_a_delete_and_a_create_at_one_place() -> None:
    decoded = decode(event("insert", row(3)), event("update", row(2), {"id": 1, "name": "was"}))
    (block,) = decoded.blocks
    assert block.rows.tolist() == [0, 1, 1]
    (_, (gone, deleted), (came, created)) = places(decoded)
    assert (gone, came) == (Op.DELETE, Op.CREATE)
    assert deleted == Position.of(0, 3, 400, 0, 0)
    assert created == Position.of(0, 3, 400, 0, 1)
    assert block.before.to_pylist()[1]["id"] == 1
    assert block.before_present.tolist() == [False, True, False]
    assert block.after_present.tolist() == [True, False, True]


def test_rows_of_one_statement_are_distinguished_and_the_last_commits() -> None:
    decoded = decode(
        event("insert", row(1), xoffset=7), event("insert", row(2), None, "xoffset", commit=True)
    )
    assert [position for _, position in places(decoded)] == [
        Position.of(0, 3, 400, 7, 1),
        Position.of(0, 3, 400, (1 << 21) - 1, 1),
    ]


def test_without_positions_the_order_is_that_of_the_records() -> None:
    decoded = decode(
        event("insert", row(1), None, "position"), event("insert", row(2), None, "position")
    )
    (block,) = decoded.blocks
    assert block.ordering is Ordering.KAFKA
    assert [position for _, position in places(decoded)] == [
        Position.of(0, 0, 0, 0, 1),
        Position.of(0, 0, 1, 0, 1),
    ]


@pytest.mark.parametrize("without", ["xoffset", "position"])
def test_a_change_whose_position_is_unknown_parks_the_table(without: str) -> None:
    decoded = decode(event("insert", row(1)), event("insert", row(2), None, without))
    assert [(stop.row, stop.code) for stop in decoded.stops] == [(1, ParkCode.ORDER_UNKNOWN)]
    assert sorted(images(decoded)) == [0]
    assert "output_" in decoded.stops[0].detail


def test_rows_of_a_bootstrap_are_read_and_its_marks_passed_over() -> None:
    marks = [event(f"bootstrap-{kind}", {}, None, "position") for kind in ("start", "complete")]
    read = event("bootstrap-insert", row(1), None, "position", "xoffset", "xid")
    decoded = decode(marks[0], read, marks[1])
    assert [op for op, _ in places(decoded)] == [Op.READ]
    assert decoded.ignored == {"bootstrap": 2}


def test_a_change_of_the_schema_is_skipped() -> None:
    ddl = {"type": "table-alter", "database": "shop", "table": "items", "ts": 1, "sql": "alter …"}
    decoded = decode((b"uuid", compact(ddl)), event("insert", row(1)))
    assert decoded.ignored == {"schema-change": 1}
    assert sorted(images(decoded)) == [1]


@pytest.mark.parametrize(
    "key",
    [
        b'["shop","items",[{"name":"x"},{"id":1}]]',
        b'{"database":"shop","table":"items","pk.name":"x","pk.id":1}',
    ],
)
def test_the_key_is_named_by_the_records_key(key: bytes) -> None:
    (block,) = decode((key, event("insert", row(1))[1])).blocks
    assert block.schema.key == ("name", "id")


@pytest.mark.parametrize(
    "key",
    [
        b'["shop","items",[{"itemid":1},{"tags":["a","b]"]}]]',
        b'{"database":"shop","table":"items","pk.itemid":1,"pk.tags":["a","b]"]}',
        b'{"database":"shop","table":"items","pk.itemid":1,"pk.tags":[]}',
    ],
)
def test_a_records_key_has_small_letters_and_sets_as_arrays(key: bytes) -> None:
    _, value = event("insert", {"ItemID": 1, "Tags": ["a", "b]"], "x": 1})
    types = {"ItemID": "int", "Tags": "set", "x": "int"}
    decoded = decode((key, value), (key, value), types=types)
    assert dead(decoded) == {}
    (block,) = decoded.blocks
    assert (len(block), block.schema.key) == (2, ("ItemID", "Tags"))


def test_the_key_is_rather_named_by_the_event() -> None:
    _, value = event("insert", row(1), primary_key_columns=["name"], primary_key=["item 1"])
    for key in (None, b"anything"):
        (block,) = decode((key, value)).blocks
        assert block.schema.key == ("name",)


def test_records_whose_key_has_other_columns_are_of_another_schema() -> None:
    one, other = event("insert", row(1)), event("insert", row(2))
    other = (b'{"database":"shop","table":"items","pk.name":"item 2"}', other[1])
    stated = event("insert", row(3), primary_key_columns=["id", "name"])
    keys = {block.schema.key for block in decode(one, other, stated).blocks}
    assert keys == {("id",), ("name",), ("id", "name")}


def test_a_table_without_a_key_says_so() -> None:
    key = b'{"database":"shop","table":"items","_uuid":"6e1e"}'
    (block,) = decode((key, event("insert", row(1))[1])).blocks
    assert block.schema.key == ()


MALFORMED: dict[str, tuple[Record, str]] = {
    "another table": (event("insert", row(2), table="other"), "wrong-table"),
    "another database": (event("insert", row(2), database="other"), "wrong-table"),
    "an unknown type": (event("replace", row(2)), "unknown-op"),
    "no row": (event("insert", {}), "missing-image"),
    "a null key": (event("insert", row(2, id=None)), "missing-key"),
    "a null key before": (event("update", row(2), {"id": None}), "missing-key"),
    "a place that is none": (event("insert", row(2), position="here"), "missing-position"),
    "a place without a file number": (event("insert", row(2), position="b:1"), "missing-position"),
    "a row beyond its bits": (event("insert", row(2), xoffset=1 << 21), "out-of-range"),
    "the row that is kept for the last": (
        event("insert", row(2), xoffset=(1 << 21) - 1), "out-of-range",
    ),
    "a time beyond years": (event("insert", row(2), ts=1 << 50), "out-of-range"),
    "an unreadable key": ((b"{", event("insert", row(2))[1]), "missing-key"),
    "a key that names nothing": ((b"5", event("insert", row(2))[1]), "missing-key"),
    "a key that the row hasn't": (
        (b'{"database":"shop","table":"items","pk.other":1}', event("insert", row(2))[1]),
        "missing-key",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_event_costs_only_itself(kind: str) -> None:
    record, reason = MALFORMED[kind]
    decoded = decode(event("insert", row(1)), record, event("insert", row(3)))
    assert dead(decoded) == {1: reason}, decoded.dead.detail
    assert sorted(images(decoded)) == [0, 2]


@pytest.mark.slow
@given(st.lists(st.sampled_from(["name", "stock", None]), min_size=1, max_size=6), names)
def test_a_column_that_is_absent_from_the_row_is_another_schema(
    left_out: list[str | None], old: str | None
) -> None:
    records = []
    for at, name in enumerate(left_out):
        data = {column: value for column, value in row(at).items() if column != name}
        records.append(event("update", data, {} if name == "name" else {"name": old}))
    decoded = decode(*records)
    assert dead(decoded) == {}
    for block in decoded.blocks:
        names = {field.name for field in block.schema.fields}
        assert all(names == {"id", "name", "price", "stock"} - {left_out[at]} for at in block.rows)


@pytest.mark.parametrize(
    "more",
    [
        {"push_ts": 1795247776558}, {"push_ts": None}, {"cluster": "eu", "ratio": 0.5},
        {"attributes": {"data": {"name": None}, "old": {"stock": None}}}, {"path": [1, None]},
    ],
    ids=repr,
)  # fmt: skip
def test_unknown_members_are_skipped(more: Json) -> None:
    """A filter in JavaScript adds what it likes, and later versions add their own."""
    decoded = decode(
        event("insert", row(1)),
        event("update", row(1, name=None), {"name": "item 1"}, **more),
        event("insert", row(2), **more),
    )
    assert dead(decoded) == {}
    found = [
        (before and before["name"], after and after["name"])
        for before, after in images(decoded).values()
    ]
    assert found == [(None, "item 1"), ("item 1", None), (None, "item 2")]
