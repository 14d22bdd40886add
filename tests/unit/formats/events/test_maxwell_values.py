"""Maxwell's values: read as the columns' values, or the verdict on their records."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events import (
    DecodeContext,
    TypeHistory,
    TypeVersion,
    declare,
)
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from tests.support.debezium import TABLE, Record, compact, dead, decode_all, images
from tests.support.maxwell_events import (
    TYPES,
    decode,
    event,
    row,
)


def test_undeclared_types_park_the_table() -> None:
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


def test_a_string_is_json_where_maxwell_shows_that_its_column_is() -> None:
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


@pytest.mark.parametrize("written", ["NaN", "-Infinity", '{"of":[1,NaN]}', "[01]"])
def test_what_is_no_json_in_a_json_column_is_a_dead_letter_in_any_company(written: str) -> None:
    decoded = decode(
        *(_with_document(one) for one in ("[1]", written, "null")), types={**TYPES, "name": "json"}
    )
    assert list(dead(decoded)) == [1]


def test_a_geometry_is_text_if_it_is_declared_so() -> None:
    record = event("insert", row(1, name="POINT (3 2)"))
    assert images(decode(record))[0][1] == {
        "id": 1, "name": "POINT (3 2)", "price": Decimal("1.50"), "stock": 1,
    }  # fmt: skip
    (stop,) = decode(record, types={**TYPES, "name": "point"}).stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "declare it string" in stop.detail


@pytest.mark.parametrize("whole", [False, True])
def test_an_encrypted_row_is_a_dead_letter_that_says_so(whole: bool) -> None:
    within = {"encrypted": {"iv": "AAAA", "bytes": "AAAA"}}
    _, value = event("insert", row(1), None, "data", **within)
    decoded = decode(event("insert", row(2)), (None, compact(within) if whole else value))
    assert dead(decoded) == {1: DeadReason.MISSING_IMAGE}
    assert "encrypt=none" in decoded.dead.detail[0]


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


@pytest.mark.slow
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
