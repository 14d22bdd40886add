"""Maxwell's events: what they say, what follows from it, and what stops for want of it."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events import (
    DecodeContext,
    Decoded,
    TypeHistory,
    TypeVersion,
    declare,
)
from lakesplice.model.change import Op
from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import ParkCode
from lakesplice.model.position import Ordering, Position
from tests.support.debezium import DECLARED, TABLE, Record, compact, dead, decode_all, images

TYPES = {**DECLARED, "stock": "int"}
CONTEXT = DecodeContext(TABLE, declare(TYPES))
Json = dict[str, Any]


def row(key: int, **changed: object) -> Json:
    return {"id": key, "name": f"item {key}", "price": 1.5, "stock": key, **changed}


def event(kind: str, data: Json, old: Json | None = None, *without: str, **more: object) -> Record:
    head = {"database": "shop", "table": "items", "type": kind, "ts": 1795247776, "xid": 5}
    place = {"xoffset": 0, "position": "binlog.000003:400", "server_id": 1, "thread_id": 0}
    members = {**head, **place, **more, "data": data}
    if old is not None:
        members["old"] = old
    kept = {name: value for name, value in members.items() if name not in without}
    return compact({"database": "shop", "table": "items", "pk.id": data.get("id")}), compact(kept)


def decode(*records: Record, types: dict[str, str] | None = None) -> Decoded:
    context = CONTEXT if types is None else DecodeContext(TABLE, declare(types))
    return decode_all(records, context)


def places(decoded: Decoded) -> list[tuple[Op, Position]]:
    return [
        (Op(block.op[at]), Position(int(block.position_file[at]), int(block.position_offset[at])))
        for block in decoded.blocks
        for at in range(len(block))
    ]


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


def test_rows_of_one_statement_are_told_apart_and_the_last_commits() -> None:
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
def test_a_change_whose_place_can_not_be_told_parks_the_table(without: str) -> None:
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


def test_a_change_of_the_schema_is_passed_over() -> None:
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


def test_types_that_nobody_declared_park_the_table() -> None:
    decoded = decode(event("insert", row(1)), types={"id": "long"})
    assert decoded.stops[0].code is ParkCode.TYPES_UNDECLARED
    assert '"price": TYPE' in decoded.stops[0].detail


def test_a_time_that_may_be_another_one_parks_the_table() -> None:
    decoded = decode(event("insert", row(1, v="03:29:08")), types={**TYPES, "v": "time"})
    assert decoded.stops[0].code is ParkCode.UNSUPPORTED
    assert "time_of_day" in decoded.stops[0].detail


def test_nested_json_parks_the_table() -> None:
    decoded = decode(event("insert", row(1, name={"a": 1})))
    assert decoded.stops[0].code is ParkCode.UNSUPPORTED
    assert "column='name'" in decoded.stops[0].detail


DOCUMENTS = [
    '{"a":[1,{"b":"}\\"data\\":{"}], "n":null}', "[]", "1.50", "-7", "true", '{"ü":"😀"}',
    str(2**70), '{"id":2,"old":{"name":null}}',
]  # fmt: skip


def _with_document(written: str, *, was: str | None = None) -> Record:
    """An event whose column `name` holds JSON, written as it is."""
    old = None if was is None else {"name": "OLD"}
    key, value = event("insert" if was is None else "update", row(1, name="NEW"), old)
    assert value is not None
    return key, value.replace(b'"NEW"', written.encode()).replace(b'"OLD"', (was or "").encode())


def test_nested_json_of_a_column_that_is_json_is_its_text() -> None:
    types = {**TYPES, "name": "json"}
    changes = list(itertools.pairwise(DOCUMENTS))
    decoded = decode(
        *(_with_document(written) for written in DOCUMENTS),
        *(_with_document(written, was=was) for written, was in changes),
        _with_document('"{\\"of\\":\\"MariaDB\\"}"'),
        _with_document("null", was="[1]"),
        types=types,
    )
    assert (dead(decoded), decoded.stops) == ({}, ())
    found = [[image and image["name"] for image in pair] for pair in images(decoded).values()]
    assert found == [
        *([None, written] for written in DOCUMENTS),
        *([was, written] for written, was in changes),
        [None, '{"of":"MariaDB"}'],
        ["[1]", None],
    ]


def test_a_string_is_json_where_maxwell_told_that_its_column_is() -> None:
    def read(*told: dict[str, str]) -> object:
        places = (Position.of(0, 3, 10 * at, 0, 0) for at in range(1, 9))
        versions = [TypeVersion(place, declare({**TYPES, **types})) for place, types in
                    zip(places, told, strict=False)]  # fmt: skip
        context = DecodeContext(TABLE, history=TypeHistory(tuple(versions)))
        (_, after), *_ = images(decode_all([_with_document('"5"')], context)).values()
        return after and after["name"]

    assert read({"name": "json"}) == '"5"'
    assert read({"name": "string"}, {"name": "json"}) == "5"
    assert read({"name": "string"}) == "5"


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b'{"data":{"name":[1', b'{"data":{1:2}}', b'{[]:1}', b'{"data":7}',
                b"\xff", b'{"data":{"name":{}}} x', b"[" * 9999]
)  # fmt: skip
def test_damage_beside_json_costs_only_itself(damaged: bytes) -> None:
    decoded = decode(
        _with_document("[1]"),
        (b"{}", damaged),
        _with_document("[2]"),
        types={**TYPES, "name": "json"},
    )
    assert list(dead(decoded)) == [1]
    assert sorted(images(decoded)) == [0, 2]


def test_a_geometry_is_text_if_it_is_declared_so() -> None:
    record = event("insert", row(1, name="POINT (3 2)"))
    assert images(decode(record))[0][1] == {
        "id": 1, "name": "POINT (3 2)", "price": Decimal("1.50"), "stock": 1,
    }  # fmt: skip
    (stop,) = decode(record, types={**TYPES, "name": "point"}).stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "declare it string" in stop.detail


def test_key_values_of_several_types_park_the_table() -> None:
    decoded = decode(event("insert", row(1), primary_key=[1, "a"]))
    assert decoded.stops[0].code is ParkCode.UNSUPPORTED
    assert "output_primary_keys" in decoded.stops[0].detail


VALUES: dict[str, tuple[str, object, object]] = {
    "an unsigned bigint": ("bigint unsigned", 2**64 - 1, Decimal(2**64 - 1)),
    "a decimal as a number": ("decimal(30,18)", 0.5, Decimal("0.5")),
    "a decimal as text": ("decimal(30,18)", "-0.000000000000000001", Decimal("-1e-18")),
    "the largest decimal": (
        "decimal(38,18)", f"{'9' * 20}.{'9' * 18}", Decimal(f"{'9' * 20}.{'9' * 18}"),
    ),
    "a decimal with an exponent": ("decimal(38,18)", 1e-18, Decimal("1e-18")),
    "a bit": ("bit(1)", 1, True),
    "bits": ("bit(12)", 0x8A5, b"\xa5\x08"),
    "all bits": ("bit(64)", 2**64 - 1, b"\xff" * 8),
    "a boolean": ("boolean", 0, False),
    "bytes": ("blob", "yv4=", b"\xca\xfe"),
    "a date": ("date", "9999-12-31", date(9999, 12, 31)),
    "a datetime": ("datetime", "1000-01-01 00:00:00", datetime(1000, 1, 1, tzinfo=UTC)),
    "a fraction": (
        "datetime(6)", "2024-02-29 23:59:59.12", datetime(2024, 2, 29, 23, 59, 59, 120000, UTC),
    ),
    "a timestamp": (
        "timestamp", "2038-01-19 03:14:07.5", datetime(2038, 1, 19, 3, 14, 7, 500000, UTC),
    ),
    "the latest time": ("time_of_day", "23:59:59.000001", 86399000001),
    "a time": ("time_of_day", "00:00:00.5", 500000),
    "a set": ("set", ["a", "b"], "a,b"),
    "an empty set": ("set", [], ""),
    "a member": ("enum", "a", "a"),
    "a year": ("year", 2155, 2155),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_what_the_database_had(kind: str) -> None:
    declared, sent, value = VALUES[kind]
    types = {**TYPES, "v": declared}
    decoded = decode(
        event("insert", row(1, v=sent)),
        event("update", row(1, v=sent), {"v": None}),
        event("update", row(1, v=None), {"v": sent}),
        types=types,
    )
    assert dead(decoded) == {}, decoded.dead.detail
    found = images(decoded)
    rows = [found[0][1], found[1][0], found[1][1], found[2][0], found[2][1]]
    assert [r and r["v"] for r in rows] == [value, None, value, value, None]


REFUSED: dict[str, tuple[str, object]] = {
    "a decimal with more digits": ("decimal(4,2)", 1.234),
    "a decimal too large": ("decimal(4,2)", 100.5),
    "a decimal far too large": ("decimal(38,18)", 10**30),
    "a decimal whose zeros overflow": ("decimal(38,18)", 10**57),
    "a decimal whose exponent overflows": ("decimal(38,38)", "1E+39"),
    "a decimal beyond any": ("decimal(38,0)", "1E+300"),
    "a decimal just beyond any": ("decimal(38,1)", 10**37),
    "a decimal that is none": ("decimal(4,2)", "x"),
    "an unsigned bigint that is none": ("bigint unsigned", -(2**70)),
    "bits beyond their number": ("bit(4)", 16),
    "negative bits": ("bit(4)", -1),
    "a boolean beyond 1": ("boolean", 2),
    "no base64": ("blob", "?"),
    "more bytes than a binary has": ("binary(2)", "AQID"),
    "a zero date": ("date", "0000-00-00"),
    "a day that is none": ("date", "2023-02-29"),
    "a zero datetime": ("datetime", "0000-00-00 00:00:00"),
    "an hour that is none": ("datetime", "2024-01-01 24:00:00"),
    "a date with something behind it": ("date", "2024-01-01x"),
    "a time that is none": ("time_of_day", "1 day"),
    "a set with a null": ("set", ["a", None]),
    "a set of numbers": ("set", [1]),
    "a text that is a number": ("text", 1),
}


@pytest.mark.parametrize("where", ["data", "old"])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_value_that_is_not_of_its_type_costs_only_its_record(kind: str, where: str) -> None:
    declared, sent = REFUSED[kind]
    good = row(1, v=None)
    bad = row(2, v=sent if where == "data" else None)
    decoded = decode(
        event("update", good, {"v": None}),
        event("update", bad, {"v": sent if where == "old" else None}),
        event("update", row(3, v=None), {"stock": None}),
        types={**TYPES, "v": declared},
    )
    assert sorted(dead(decoded)) == [1], decoded.stops
    assert sorted(images(decoded)) == [0, 2]


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


_texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"old":{', '"data":{', ":null", '"name":null', '",\\"name\\":null', "}}", "},", "}{", "\n"]
)
_names = st.none() | _texts
_changes = st.fixed_dictionaries(
    {"data": st.fixed_dictionaries({"name": _names, "stock": st.none() | st.integers(0, 9)})},
    optional={
        "old": st.fixed_dictionaries(
            {}, optional={"name": _names, "stock": st.none() | st.integers(0, 9)}
        )
    },
)


@given(st.lists(_changes, min_size=1, max_size=6), st.booleans())
def test_a_null_before_is_never_taken_for_a_column_that_stayed(
    changes: list[Json], spaced: bool
) -> None:
    records = []
    for at, change in enumerate(changes):
        key, value = event("update", row(at, **change["data"]), change.get("old"))
        assert value is not None
        records.append((key, value.replace(b'"old":{', b'"old": {') if spaced else value))
    decoded = decode(*records)
    assert dead(decoded) == {}
    for at, (before, after) in images(decoded).items():
        expected = {**row(at, **changes[at]["data"]), "price": Decimal("1.50")}
        assert after == expected
        old = changes[at].get("old")
        assert before == (None if old is None else {**expected, **old})


_ALIKE = ("a", "aa", "ba", "a,a", '",a', '{"a', "é", "aé", "a:", "a,", "a\\")


@given(
    st.permutations(_ALIKE),
    st.lists(st.dictionaries(st.sampled_from(_ALIKE), st.none() | st.integers(0, 9)), max_size=4),
    st.integers(1, len(_ALIKE)),
    st.booleans(),
)
def test_a_null_before_is_of_the_column_of_that_whole_name(
    names: list[str], olds: list[Json], count: int, escaped: bool
) -> None:
    names = names[:count]
    after = {"id": 1, **dict.fromkeys(names, 5)}
    olds = [{name: value for name, value in old.items() if name in names} for old in olds]
    records = [event("update", after, old) for old in olds]
    if escaped:
        escape = "é".encode(), b"\\u00e9"
        records = [(key, value and value.replace(*escape)) for key, value in records]
    decoded = decode(*records, types={"id": "int", **dict.fromkeys(_ALIKE, "int")})
    assert dead(decoded) == {}
    found = images(decoded)
    assert [found[at] for at in range(len(olds))] == [({**after, **old}, after) for old in olds]


def test_events_that_were_read_by_the_book_keep_their_places_among_the_others() -> None:
    records = []
    for at in range(6):
        key, value = event("update", row(at, name="}{" if at % 2 else "x"), {"stock": None})
        records.append((key, value))
    decoded = decode(*records)
    assert dead(decoded) == {}
    found = images(decoded)
    for at in range(6):
        after = {**row(at, name="}{" if at % 2 else "x"), "price": Decimal("1.50")}
        assert found[at] == ({**after, "stock": None}, after)


@given(st.lists(st.sampled_from(["name", "stock", None]), min_size=1, max_size=6), _names)
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


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(1, 38), st.data())
def test_a_decimal_is_exactly_what_was_sent_or_a_dead_letter(
    sent: Decimal, precision: int, data: st.DataObject
) -> None:
    scale = data.draw(st.integers(0, precision))
    text = data.draw(st.sampled_from([str(sent), f"{sent:f}"]))
    declared = {**TYPES, "v": f"decimal({precision},{scale})"}
    decoded = decode(event("insert", row(1, v=text)), types=declared)
    digits = len(sent.as_tuple().digits)
    exact = Context(prec=400, Emin=-(10**6), Emax=10**6)
    shifted = exact.scaleb(sent, scale) if abs(sent.adjusted()) < 100 and digits < 100 else None
    fits = (
        shifted is not None
        and shifted == shifted.to_integral_value()
        and (abs(shifted) < 10**precision)
    )
    if not fits:
        assert sorted(dead(decoded)) == [0] or sent == 0
    elif not dead(decoded):
        after = images(decoded)[0][1]
        assert after is not None
        assert after["v"] == sent


@pytest.mark.parametrize(
    "more",
    [
        {"push_ts": 1795247776558}, {"push_ts": None}, {"cluster": "eu", "ratio": 0.5},
        {"attributes": {"data": {"name": None}, "old": {"stock": None}}}, {"path": [1, None]},
    ],
    ids=repr,
)  # fmt: skip
def test_members_that_nobody_knows_yet_are_passed_over(more: Json) -> None:
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
