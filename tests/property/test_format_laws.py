"""Laws of all formats: any bytes get a verdict, and affect no other record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.decode import EVENT_FORMATS, recognise
from lakesplice.model.choices import FormatName
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.metadata_columns import MetadataContent, RecordOrigin
from lakesplice.planning.shape.shaping import Shape, shaped
from tests.support.avro import SCHEMAS, avro_record, flattened_record
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Record,
    compact,
    decode_all,
    image,
    images,
    payload,
)
from tests.support.drawing import examples


@dataclass(frozen=True)
class Sample:
    """A format and a sound record of it for a row; `columns` are what the row has in it."""

    format: FormatName
    record: Callable[[int], Record]
    declared: dict[str, str]


def _envelope(row: int) -> Record:
    return compact({"id": row}), compact(payload("c", None, image(row), pos=100 + row))


def _flattened(row: int) -> Record:
    added = {"__deleted": "false", "__op": "c", "__source_file": "b.000001"}
    place = {"__source_pos": 100 + row, "__source_row": 0}
    return compact({"id": row}), compact({**image(row), **added, **place})


def _avro(row: int) -> Record:
    return avro_record(payload("c", None, image(row), pos=100 + row), row)


def _flattened_avro(row: int) -> Record:
    added = {"__deleted": "false", "__op": "c", "__source_file": "b.000001"}
    return flattened_record(image(row), row, **added, __source_pos=100 + row, __source_row=0)


def ticdc_debezium(row: int, op: str = "u") -> Record:
    """An event as TiCDC's encoder writes it: a decimal through a double, the schema at the end."""
    before = {"id": row, "name": None, "price": 1.5, "stock": 5}
    after = {"id": row, "name": f"item {row}", "price": 1.25, "stock": row}
    source = {
        "version": "2.4.0.Final", "connector": "TiCDC", "name": "default", "ts_ms": 1707103832263,
        "snapshot": "false", "db": "shop", "table": "items", "server_id": 0, "gtid": None,
        "file": "", "pos": 0, "row": 0, "thread": 0, "query": None,
        "commit_ts": 447507027004751877 + row, "cluster_id": "default",
    }  # fmt: skip
    event = {"ts_ms": 1707103832957, "transaction": None, "op": op, "before": before,
             "after": None if op == "d" else after, "source": source}  # fmt: skip
    schema = {"type": "struct", "optional": False, "name": "default.shop.items.Envelope"}
    return (
        compact({"payload": {"id": row}, "schema": {"type": "struct", "name": "Key"}}),
        compact({"payload": event, "schema": schema}),
    )


def maxwell(row: int, kind: str = "update", **more: object) -> Record:
    """An update of a row's stock and name, of which the name was null."""
    data = {"id": row, "name": f"item {row}", "price": float(row), "stock": row}
    head = {"database": "shop", "table": "items", "type": kind, "ts": 1795247776, "xid": row}
    place = {"xoffset": 0, "position": f"binlog.000001:{100 + row}"}
    event = {**head, **place, "data": data, "old": {"name": None, "stock": 5}, **more}
    return compact({"database": "shop", "table": "items", "pk.id": row}), compact(event)


def canal(row: int) -> Record:
    """A message with one update."""
    types = {"id": "bigint", "name": "varchar(40)", "price": "decimal(8,2)", "stock": "int"}
    data = {"id": str(row), "name": f"item {row}", "price": "1.50", "stock": str(row)}
    message = {
        "data": [data], "database": "shop", "es": 1589373560000, "isDdl": False,
        "mysqlType": types, "old": [{"name": None}], "pkNames": ["id"], "table": "items",
        "ts": 1589373560798, "type": "UPDATE",
    }  # fmt: skip
    return None, compact(message)


SAMPLES = {
    sample.format: sample
    for sample in (
        Sample(FormatName.DEBEZIUM, _envelope, DECLARED),
        Sample(FormatName.FLATTENED, _flattened, DECLARED),
        Sample(FormatName.AVRO, _avro, {}),
        Sample(FormatName.FLATTENED_AVRO, _flattened_avro, {}),
        Sample(FormatName.TICDC_DEBEZIUM, ticdc_debezium, DECLARED),
        Sample(FormatName.MAXWELL, maxwell, DECLARED),
        Sample(FormatName.CANAL, canal, DECLARED),
    )
}
FORMATS = pytest.mark.parametrize("format_", EVENT_FORMATS)
_bytes = (
    st.binary(max_size=60)
    | st.binary(max_size=60).map(lambda rest: b"\0\0\0\0\4" + rest)
    | st.text('{}[]":,\\ntrue01.e-ip \n\r\t\0', max_size=60).map(str.encode)
    | st.sampled_from([b"null", b"}null", b"{}", b'{"schema":', b'{"schema":{},"payload":{}}'])
)


@FORMATS
def test_a_sound_record_is_recognised_as_of_its_format_and_of_no_other(format_: FormatName) -> None:
    value = SAMPLES[format_].record(1)[1]
    assert value is not None
    assert recognise(value, SCHEMAS) is format_


@FORMATS
@settings(max_examples=examples(100))
@given(st.data())
def test_any_bytes_are_settled_and_harm_no_neighbour(
    format_: FormatName, data: st.DataObject
) -> None:
    sample = SAMPLES[format_]
    sound = {row: sample.record(row) for row in range(4)}
    good_key, good = sample.record(9)
    assert good is not None
    changed = st.builds(
        lambda at, cut, junk: good[: at % len(good)] + junk + good[at % len(good) + cut :],
        st.integers(0, 5000), st.integers(0, 9), _bytes | st.just(b""),
    )  # fmt: skip
    others = st.sampled_from([other.record(7)[1] for other in SAMPLES.values()])
    values = st.none() | _bytes | changed | others
    strangers = data.draw(
        st.lists(st.tuples(st.none() | _bytes | st.just(good_key), values), max_size=8)
    )
    places = data.draw(st.permutations([*sound, *(None for _ in strangers)]))
    left = list(strangers)
    records = [left.pop() if place is None else sound[place] for place in places]
    stated = data.draw(st.sampled_from([format_, None]))
    context = DecodeContext(TABLE, declare(sample.declared), stated, schemas=SCHEMAS)
    decoded = decode_all(records, context)
    if decoded.format is not format_:
        return
    end = min((stop.row for stop in decoded.stops), default=len(records))
    found = images(decoded)
    for at, row in enumerate(places):
        if row is not None and at < end:
            after = found[at][1]
            assert after is not None
            assert (after["id"], after["name"], after["stock"]) == (row, f"item {row}", row)


@FORMATS
def test_columns_that_are_reported_or_computed_are_of_their_types(format_: FormatName) -> None:
    sample = SAMPLES[format_]
    context = DecodeContext(TABLE, declare(sample.declared), format_, schemas=SCHEMAS)
    decoded = decode_all([sample.record(row) for row in range(3)], context)
    metadata = tuple((f"m_{what}", what) for what in MetadataContent)
    shape = Shape(metadata=metadata, computed=(("loud", parse("upper(name)")),))
    (block,) = shaped(decoded, shape, RecordOrigin("a topic", TABLE)).blocks
    types = {field.name: field.type and field.type.arrow for field in block.schema.fields}
    for one in (block.before, block.after):
        assert dict(zip(one.column_names, one.schema.types, strict=True)) == types
    assert block.after.column("loud").to_pylist() == ["ITEM 0", "ITEM 1", "ITEM 2"]
    assert block.after.column("m_op_ts").to_pylist() == block.source_ts.to_pylist()
    assert set(block.after.column("m_op").to_pylist()) <= {"c", "u"}
    assert block.after.column("m_topic").to_pylist() == ["a topic"] * 3
