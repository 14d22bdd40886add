"""Events without schemas are read by the connector's settings; a value that contradicts one parks
the table.
"""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, Decoded
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings
from lakesplice.model.parking import ParkCode
from tests.support.debezium import TABLE, Record, compact, dead, decode_all, images, payload
from tests.unit.formats.events.test_typed import _told

NOON = datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC)
SECONDS = int(NOON.timestamp())
MILLIS, MICROS = SECONDS * 1_000 + 250, SECONDS * 1_000_000 + 250_000
NANOS = MICROS * 1_000
MOMENT = NOON.replace(microsecond=250_000)
A_TIME = 3_723_250_000


def read(type_: str, sent: Any, **settings: Any) -> Decoded:
    history = _told(f"CREATE TABLE items (id bigint primary key, v {type_})",
                    handling=ConverterSettings(**settings))  # fmt: skip
    event = payload("c", None, {"id": 1, "v": sent}, pos=4000)
    record: Record = compact({"id": 1}), compact(event)
    return decode_all([record], DecodeContext(TABLE, history=history))


VALUES: tuple[tuple[str, str, str, Any, Any], ...] = (
    ("time_precision_mode", "adaptive_time_microseconds", "datetime", MILLIS, MOMENT),
    ("time_precision_mode", "adaptive_time_microseconds", "datetime(6)", MICROS, MOMENT),
    ("time_precision_mode", "adaptive", "datetime(6)", MICROS, MOMENT),
    ("time_precision_mode", "connect", "datetime(6)", MILLIS, MOMENT),
    ("time_precision_mode", "connect", "datetime", MILLIS, MOMENT),
    ("time_precision_mode", "microseconds", "datetime", MICROS, MOMENT),
    ("time_precision_mode", "nanoseconds", "datetime(3)", NANOS, MOMENT),
    ("time_precision_mode", "isostring", "datetime", "2024-02-29T12:30:01Z",
     "2024-02-29T12:30:01Z"),
    ("time_precision_mode", "connect", "date", 19782, date(2024, 2, 29)),
    ("time_precision_mode", "isostring", "date", "2024-02-29Z", "2024-02-29Z"),
    ("time_precision_mode", "connect", "time(6)", 3_723_250, A_TIME),
    ("time_precision_mode", "adaptive", "time(3)", 3_723_250, A_TIME),
    ("time_precision_mode", "adaptive", "time(6)", A_TIME, A_TIME),
    ("time_precision_mode", "microseconds", "time", A_TIME, A_TIME),
    ("time_precision_mode", "nanoseconds", "time", A_TIME * 1000, A_TIME),
    ("time_precision_mode", "isostring", "time", "01:02:03.25Z", "01:02:03.25Z"),
    ("decimal_handling_mode", "double", "decimal(8,2)", 2.5, 2.5),
    ("decimal_handling_mode", "double", "decimal(65,30)", 0.1, 0.1),
    ("decimal_format", "numeric", "decimal(8,2)", 2.5, Decimal("2.50")),
    ("decimal_format", "base64", "decimal(8,2)", "APo=", Decimal("2.50")),
)  # fmt: skip


@pytest.mark.parametrize(("setting", "value", "type_", "sent", "expected"), VALUES)
def test_a_value_is_read_as_the_setting_has_it_written(
    setting: str, value: str, type_: str, sent: Any, expected: Any
) -> None:
    decoded = read(type_, sent, **{setting: value})
    assert (decoded.stops, dead(decoded)) == ((), {})
    _, after = images(decoded)[0]
    assert after is not None
    assert (type(after["v"]), after["v"]) == (type(expected), expected)


UNITS = {"milliseconds": MILLIS, "microseconds": MICROS, "nanoseconds": NANOS}
MODES = (
    ("connect", "datetime(6)", "milliseconds"),
    ("adaptive_time_microseconds", "datetime(3)", "milliseconds"),
    ("adaptive_time_microseconds", "datetime(6)", "microseconds"),
    ("microseconds", "datetime", "microseconds"),
    ("nanoseconds", "datetime", "nanoseconds"),
)


@pytest.mark.parametrize(("mode", "type_", "right"), MODES)
@pytest.mark.parametrize("sent", UNITS)
def test_a_moment_in_another_unit_parks_its_table(
    mode: str, type_: str, right: str, sent: str
) -> None:
    decoded = read(type_, UNITS[sent], time_precision_mode=mode)
    if sent == right:
        assert decoded.stops == ()
        return
    (stop,) = decoded.stops
    assert stop.code is ParkCode.TYPES_UNDECLARED
    assert "time_precision_mode" in stop.detail
    assert not decoded.blocks


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 20, 8, 0, 1, tzinfo=UTC),
        datetime(1000, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
@pytest.mark.parametrize("type_", ["datetime(3)", "datetime(6)"])
def test_early_and_late_moments_of_whole_seconds_are_no_wrong_unit(
    moment: datetime, type_: str
) -> None:
    whole = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    decoded = read(type_, whole * (1_000 if type_ == "datetime(3)" else 1_000_000))
    assert (decoded.stops, dead(decoded)) == ((), {})


def test_points_and_other_geometries_may_stand_in_one_column() -> None:
    wkb = "AQEAAAAAAAAAAADwPwAAAAAAAABA"
    geometry = {"wkb": wkb, "srid": None}
    history = _told("CREATE TABLE items (id bigint primary key, v geometry)")
    sent = [None, geometry, {"x": 1.0, "y": 2.0, **geometry}, geometry, None]
    records: list[Record] = [
        (compact({"id": row}), compact(payload("c", None, {"id": row, "v": v}, pos=4000 + row)))
        for row, v in enumerate(sent)
    ]
    decoded = decode_all(records, DecodeContext(TABLE, history=history))
    assert (decoded.stops, dead(decoded)) == ((), {})
    found = images(decoded)
    stored = [(found[row][1] or {})["v"] for row in range(len(sent))]
    assert stored == [None if value is None else b64decode(wkb) for value in sent]
