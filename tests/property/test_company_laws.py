"""Records decode to the same values in any batches and beside any other columns.

`tests/support/types.py` has the expected values; no result is only compared with another run of the
decoder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext, SchemaText, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.testing.avro_records import frame, write_value
from tests.conformance.test_types import _GEOMETRY, _ID, avro_type, in_json
from tests.support import avro
from tests.support.debezium import (
    TABLE,
    Record,
    compact,
    decode_all,
    envelope_schema,
    images,
    key_schema,
    payload,
    with_schema,
)
from tests.support.drawing import examples
from tests.support.schema_changes import connect_record
from tests.support.sent_types import DEAD, PARKED, Sent, connect, decimal, unscaled
from tests.support.types import TYPES

# One more than are converted together, and what a batch may bring.
_ROWS = (1, 2, 700, 2048, 2049, 5000)
_WIDE = ((40, 3), (65, 30), (40, 5))
Row = Sequence[Any]
Written = tuple[list[Record], DecodeContext]


def _wide(precision: int, scale: int) -> tuple[Decimal, str]:
    value = Decimal("2.5")
    return value, f"{value:.{scale}f}"


def _by_schema() -> list[Sent]:
    wide = [
        Sent(decimal(*digits), unscaled(_wide(*digits)[0], digits[1]), _wide(*digits)[1], "string")
        for digits in _WIDE
    ]
    bits = [
        Sent(
            connect("bytes", "io.debezium.data.Bits", length=str(n)),
            b"\1" * (n // 8),
            b"\1" * (n // 8),
            "binary",
        )
        for n in (16, 24)
    ]
    return wide + bits


def _points() -> list[Sent]:
    """A POINT's struct has other members than that of other geometries."""
    sides = [{"type": "double", "optional": False, "field": name} for name in ("x", "y")]
    point = {**_GEOMETRY, "fields": [*sides, *_GEOMETRY["fields"]]}
    point["name"] = "io.debezium.data.geometry.Point"
    sent = [one for type_ in TYPES for one in type_.connect if one.type == "Geometry"]
    return [Sent(point, {"x": 1.0, "y": 2.0, **o.value}, o.outcome, o.column) for o in sent]


def _by_ddl() -> list[Sent]:
    wide = [
        Sent(f"decimal({p},{s})", unscaled(_wide(p, s)[0], s), _wide(p, s)[1], "string")
        for p, s in _WIDE
    ]
    bits = [Sent(f"bit({n})", b"\1" * (n // 8), b"\1" * (n // 8), "binary") for n in (16, 24)]
    narrow = Sent("decimal(10,4)", unscaled(Decimal("2.5"), 4), Decimal("2.5000"), "decimal(10,4)")
    return [*wide, *bits, narrow, Sent("varchar(9)", "2.5", "2.5", "string")]


def _numbers() -> list[Sent]:
    bits = [(n, 2**n - 1, b"\xff" * (n // 8)) for n in (8, 16, 24)]
    return [Sent(f"bit({n})", number, octets, "binary") for n, number, octets in bits]


def _of(format_: str, more: Sequence[Sent]) -> list[Sent]:
    sent = [one for type_ in TYPES for one in getattr(type_, format_)]
    return [one for one in (*more, *sent) if one.outcome is not PARKED]


@dataclass(frozen=True)
class Format:
    """A format: what columns it can have, and how rows of such columns are written."""

    sent: Sequence[Sent]
    write: Callable[[Sequence[Sent], Sequence[Row]], Written]


def _events(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        payload("c", None, {"id": at, **{f"v{n}": v for n, v in enumerate(row)}}, pos=at)
        for at, row in enumerate(rows, 1)
    ]


def _described(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    fields = [
        {**(_GEOMETRY if one.type == "Geometry" else one.type), "optional": True, "field": f"v{n}"}
        for n, one in enumerate(columns)
    ]
    schema = envelope_schema([_ID, *fields])
    keys = [compact(with_schema({"id": at + 1}, key_schema([_ID]))) for at in range(len(rows))]
    values = [compact(with_schema(in_json(event), schema)) for event in _events(rows)]
    return list(zip(keys, values, strict=True)), _context()


def _plain(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    events = enumerate(_events(rows), 1)
    return [(compact({"id": at}), compact(in_json(e))) for at, e in events], _context(columns)


def _told(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    types = ", ".join(f"v{n} {one.type}" for n, one in enumerate(columns))
    ddl = f"CREATE TABLE items (id bigint PRIMARY KEY, {types})"
    change = read_schema_change(connect_record(ddl, file="binlog.000001", changes=None))
    assert isinstance(change, SchemaChange)
    history = types_of(history_of([change]), TABLE, ConverterSettings("precise", "precise"))
    return _plain([], rows)[0], DecodeContext(TABLE, history=history)


def _avro(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    schema = SchemaText(json.dumps(avro.envelope({"id": "long", **_avro_types(columns)})))
    context = DecodeContext(TABLE, schemas={**avro.SCHEMAS, 9: schema})
    node = avro.node(schema)
    return [
        (avro.written(avro.KEY_ID, {"id": at}), frame(9, write_value(node, event)))
        for at, event in enumerate(_events(rows), 1)
    ], context


def _avro_types(columns: Sequence[Sent]) -> dict[str, Any]:
    kinds = [avro_type(_GEOMETRY if one.type == "Geometry" else one.type) for one in columns]
    return {f"v{n}": ["null", _own_name(kind, n)] for n, kind in enumerate(kinds)}


def _flattened(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    return [
        (compact({"id": at}), compact(in_json({**event["after"], **_added(at)})))
        for at, event in enumerate(_events(rows), 1)
    ], _context(columns)


def _flattened_avro(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    schema = SchemaText(json.dumps(avro.flattened({"id": "long", **_avro_types(columns)})))
    node = avro.node(schema)
    return [
        (
            avro.written(avro.KEY_ID, {"id": at}),
            frame(9, write_value(node, {**event["after"], **_added(at)})),
        )
        for at, event in enumerate(_events(rows), 1)
    ], DecodeContext(TABLE, schemas={**avro.SCHEMAS, 9: schema})


def _added(place: int) -> dict[str, Any]:
    """What the transform is told to add to a row, beside the default `__deleted`."""
    return {"__deleted": "false", "__op": "c", "__source_file": "binlog.000003",
            "__source_pos": place, "__source_row": 0}  # fmt: skip


def _ticdc(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    schema = {"type": "struct", "optional": False, "name": "default.shop.items.Envelope"}
    source = {"connector": "TiCDC", "db": "shop", "table": "items", "ts_ms": 1707103832263}
    return [
        (
            compact({"payload": {"id": at}, "schema": {"type": "struct", "name": "Key"}}),
            compact({"payload": in_json({**event, "source": {**source, "commit_ts": at}}),
                     "schema": schema}),
        )
        for at, event in enumerate(_events(rows), 1)
    ], _context(columns)  # fmt: skip


def _by_ticdc() -> list[Sent]:
    """What is declared and sent as by Debezium, and decimals, which go through a double."""
    halves = [Sent(f"decimal({p},{s})", 2.5, Decimal(f"{2.5:.{s}f}"), f"decimal({p},{s})")
              for p, s in ((8, 2), (15, 3), (10, 4), (15, 1))]  # fmt: skip
    large = Sent("bigint unsigned", 2**64 - 1, Decimal(2**64 - 1), "decimal(20,0)")
    others = (one for one in _of("declared", []) if "decimal" not in f"{one.type} {one.column}")
    return [*halves, large, *others]


def _own_name(type_: Any, number: int) -> Any:
    """Avro lets a record's name be defined once."""
    named = isinstance(type_, dict) and type_.get("type") == "record"
    return {**type_, "name": f"{type_['name']}{number}"} if named else type_


def _maxwell(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    head = {"database": "shop", "table": "items", "type": "insert", "ts": 1795247776}
    return [
        (
            compact({"database": "shop", "table": "items", "pk.id": at}),
            compact({**head, "xid": at, "position": f"binlog.000001:{100 + at}", "xoffset": 0,
                     "data": {"id": at, **{f"v{n}": in_json(v) for n, v in enumerate(row)}}}),
        )
        for at, row in enumerate(rows, 1)
    ], _context(columns)  # fmt: skip


def _canal(columns: Sequence[Sent], rows: Sequence[Row]) -> Written:
    types = {f"v{n}": one.type.removeprefix("declared ") for n, one in enumerate(columns)}
    own = {name: types[name] for n, name in enumerate(types) if columns[n].type != types[name]}
    head = {
        "database": "shop", "es": 1589373560000, "isDdl": False, "old": None, "pkNames": ["id"],
        "mysqlType": {"id": "bigint", **types}, "table": "items", "ts": 1589373560798,
        "type": "INSERT",
    }  # fmt: skip
    records: list[Record] = [
        (None, compact({**head, "data": [{"id": str(at), **dict(zip(types, row, strict=True))}]}))
        for at, row in enumerate(rows, 1)
    ]
    return records, DecodeContext(TABLE, declare(own) if own else None)


def _context(columns: Sequence[Sent] = ()) -> DecodeContext:
    types = {f"v{n}": one.type for n, one in enumerate(columns)}
    return DecodeContext(TABLE, declare({"id": "bigint", **types}) if types else None)


FORMATS = {
    "debezium with schemas": Format(_of("connect", [*_by_schema(), *_points()]), _described),
    "debezium without": Format(_of("declared", []), _plain),
    "debezium by its ddl": Format(_by_ddl(), _told),
    "debezium in avro": Format(_of("connect", _by_schema()), _avro),
    "flattened": Format(_of("declared", []), _flattened),
    "flattened in avro": Format(_of("connect", _by_schema()), _flattened_avro),
    "debezium of ticdc": Format(_by_ticdc(), _ticdc),
    "maxwell": Format(_of("maxwell", _numbers()), _maxwell),
    "canal": Format(_of("canal", []), _canal),
}


@st.composite
def companies(draw: st.DrawFn, sent: Sequence[Sent]) -> tuple[list[Sent], list[Row], list[Any]]:
    """Columns, some rows of them, and per row what is to come of it: its values, or DEAD."""
    kinds = {str(one.column).partition("(")[0]: one for one in sent}
    of_kind = {kind: [one for one in sent if str(one.column).startswith(kind)] for kind in kinds}
    column = st.sampled_from([*kinds]).flatmap(lambda kind: st.sampled_from(of_kind[kind]))
    columns = draw(st.lists(column, min_size=1, max_size=8))
    rows: list[Row] = []
    outcomes: list[Any] = []
    for _ in range(draw(st.integers(1, 5))):
        given_ = draw(st.lists(st.booleans(), min_size=len(columns), max_size=len(columns)))
        rows.append(
            [one.value if there else None for one, there in zip(columns, given_, strict=True)]
        )
        found = [one.outcome if there else None for one, there in zip(columns, given_, strict=True)]
        outcomes.append(DEAD if DEAD in found else found)
    return columns, rows, outcomes


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_values_do_not_depend_on_the_cut_or_on_other_columns(
    name: str, data: st.DataObject
) -> None:
    columns, rows, outcomes = data.draw(companies(FORMATS[name].sent))
    records, context = FORMATS[name].write(columns, rows)
    count = data.draw(st.sampled_from(_ROWS))
    cut = data.draw(st.integers(0, count))
    many = [records[at % len(records)] for at in range(count)]
    for start, end in ((0, count), (0, cut), (cut, count)):
        if start == end:
            continue
        decoded = decode_all(many[start:end], context)
        assert decoded.stops == ()
        expected = [outcomes[at % len(outcomes)] for at in range(start, end)]
        dead = [at for at, outcome in enumerate(expected) if outcome is DEAD]
        assert decoded.dead.rows.tolist() == dead
        found = images(decoded)
        for at in {*range(min(8, end - start)), *range(max(0, end - start - 8), end - start)}:
            if expected[at] is DEAD:
                continue
            after = found[at][1]
            assert after is not None
            assert [after[f"v{n}"] for n in range(len(columns))] == expected[at]
