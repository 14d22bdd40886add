"""What decoding makes of the envelope: operations, positions, keys, stops and non-changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.model.change import Op
from lakesplice.model.manifest import ParkCode
from lakesplice.model.names import TableName
from lakesplice.model.position import Ordering, Position
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Flavour,
    Record,
    compact,
    dead,
    decode_all,
    envelope_schema,
    image,
    images,
    key_schema,
    payload,
    rows_after,
    type_name,
    with_schema,
)

SCHEMAS, PLAIN = Flavour(schemas=True), Flavour(schemas=False)
FLAVOURS = pytest.mark.parametrize("flavour", [SCHEMAS, PLAIN], ids=["schemas", "plain"])


def row(number: int) -> dict[str, object]:
    """The image `image(number)` as it is decoded."""
    return {
        "id": number, "name": f"item {number}", "price": Decimal(number).quantize(Decimal("0.01")),
        "stock": number,
    }  # fmt: skip


@FLAVOURS
def test_operations_carry_the_images_they_have(flavour: Flavour) -> None:
    decoded = flavour.decode(
        [
            flavour.record(payload("r", None, image(1), snapshot="first"), 1),
            flavour.record(payload("c", None, image(2)), 2),
            flavour.record(payload("u", image(2), image(2, stock=9)), 2),
            flavour.record(payload("u", None, image(2)), 2),
            flavour.record(payload("d", image(2), None), 2),
            (flavour.key({"id": 2}), None),
        ]
    )
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.READ, Op.CREATE, Op.UPDATE, Op.UPDATE, Op.DELETE]
    assert images(decoded) == {
        0: (None, row(1)),
        1: (None, row(2)),
        2: (row(2), {**row(2), "stock": 9}),
        3: (None, row(2)),
        4: (row(2), None),
    }
    assert decoded.ignored == {"tombstone": 1}
    assert block.schema.key == ("id",)
    assert [field.name for field in block.schema.fields] == list(DECLARED)


@FLAVOURS
def test_a_position_is_file_place_row_and_rank(flavour: Flavour) -> None:
    def event(op: str, **source: Any) -> Record:
        before, after = (image(1), None) if op == "d" else (None, image(1))
        return flavour.record(payload(op, before, after, **source), 1)

    decoded = flavour.decode(
        [
            event("c", file="binlog.000001", pos=4, row=0),
            event("d", file="mysql-bin.999999", pos=2**41 - 1, row=2**21 - 1),
            event("u", file="with.dots.in.it.1000000", pos=5, row=2),
            event("r", file="binlog.4294967295", pos=0, row=0, snapshot="last", gtid=None),
        ]
    )
    (block,) = decoded.blocks
    pairs = zip(block.position_file.tolist(), block.position_offset.tolist(), strict=True)
    assert [Position(*pair) for pair in pairs] == [
        Position.of(0, 1, 4, 0, 1),
        Position.of(0, 999_999, 2**41 - 1, 2**21 - 1, 0),
        Position.of(0, 1_000_000, 5, 2, 1),
        Position.of(0, 2**32 - 1, 0, 0, 1),
    ]
    assert block.gtid.to_pylist() == ["0-1-7", "0-1-7", "0-1-7", None]


@FLAVOURS
def test_source_time_is_in_microseconds_where_the_source_says_them(flavour: Flavour) -> None:
    times = [(1_000, 1_000_001), (1_000, None), (None, None), (-1, None)]
    records = [
        flavour.record(payload("c", None, image(1), ts_ms=ms, ts_us=us), 1) for ms, us in times
    ]
    (block,) = flavour.decode(records).blocks
    assert block.source_ts.cast("int64").to_pylist() == [1_000_001, 1_000_000, None, -1_000]


@FLAVOURS
def test_a_truncate_is_a_fence_at_its_position(flavour: Flavour) -> None:
    truncate = (None, flavour.value(payload("t", None, None)))
    decoded = flavour.decode(
        [flavour.created(1), (None, b"junk"), truncate, (None, b"junk"), flavour.created(2)]
    )
    assert not decoded.stops
    assert decoded.ignored == {"truncate": 1}
    assert decoded.fences.rows.tolist() == [2]
    assert decoded.fences.position_file.tolist() == [decoded.blocks[0].position_file[0]]
    assert dead(decoded) == {1: "not-json", 3: "not-json"}
    assert list(images(decoded)) == [0, 4]


@FLAVOURS
def test_a_truncate_without_a_position_is_a_dead_letter(flavour: Flavour) -> None:
    for missing in ({"file": "nowhere"}, {"pos": -1}):
        truncate = (None, flavour.value(payload("t", None, None, **missing)))
        assert dead(flavour.decode([truncate, flavour.created(1)])) == {0: "missing-position"}


@FLAVOURS
def test_a_truncate_of_another_table_stops_nothing(flavour: Flavour) -> None:
    truncate = (None, flavour.value(payload("t", None, None, table="orders")))
    decoded = flavour.decode([truncate, flavour.created(1)])
    assert decoded.stops == ()
    assert dead(decoded) == {0: "wrong-table"}


@FLAVOURS
def test_a_logical_message_is_ignored(flavour: Flavour) -> None:
    message = flavour.record(payload("m", None, None), 1)
    decoded = flavour.decode([message, flavour.created(1), message])
    assert decoded.ignored == {"message": 2}
    assert list(images(decoded)) == [1]


@FLAVOURS
@pytest.mark.parametrize("first", [True, False])
def test_a_delete_with_only_a_key_gets_an_image_of_its_key(flavour: Flavour, first: bool) -> None:
    bare = flavour.record(payload("d", None, None), 7)
    decoded = flavour.decode([bare, flavour.created(1)] if first else [flavour.created(1), bare])
    found = images(decoded)[0 if first else 1]
    assert found == ({**dict.fromkeys(row(7)), "id": 7}, None)


@FLAVOURS
def test_a_delete_without_an_image_or_a_key_is_a_dead_letter(flavour: Flavour) -> None:
    _, bare = flavour.record(payload("d", None, None), 7)
    decoded = flavour.decode([flavour.created(1), (None, bare)])
    assert dead(decoded) == {1: "missing-image"}


@FLAVOURS
def test_records_without_a_key_come_in_blocks_of_their_own(flavour: Flavour) -> None:
    keyless = (None, flavour.created(2)[1])
    decoded = flavour.decode([flavour.created(1), keyless, flavour.created(3)])
    blocks = {block.schema.key: block.rows.tolist() for block in decoded.blocks}
    assert blocks == {("id",): [0, 2], (): [1]}


@FLAVOURS
def test_a_changed_key_makes_another_block(flavour: Flavour) -> None:
    wide = [{"type": "int64", "field": "id"}, {"type": "string", "field": "name"}]
    content = {"id": 2, "name": "item 2"}
    key = compact(with_schema(content, key_schema(wide)) if flavour.schemas else content)
    decoded = flavour.decode([flavour.created(1), (key, flavour.created(2)[1])])
    blocks = {block.schema.key: block.rows.tolist() for block in decoded.blocks}
    assert blocks == {("id",): [0], ("id", "name"): [1]}


@pytest.mark.parametrize(
    "write",
    [
        lambda content: json.dumps(content).encode(),
        lambda content: json.dumps(content, indent=2).encode(),
        lambda content: json.dumps(content, indent="\t").encode() + b"\r\n",
        lambda content: json.dumps(content, separators=(" , ", " : ")).encode(),
        lambda content: compact(dict(reversed(content.items()))),
    ],
    ids=["spaced", "indented", "tabs", "wide", "reversed"],
)
def test_json_written_in_another_way_means_the_same(write: Any) -> None:
    events = [
        payload("c", None, image(at, name=text, stock=None))
        for at, text in enumerate(["plain", ':null,"', '":null', 'q"uote', "} null", "}{", "é😀\n"])
    ]
    expected = PLAIN.decode([PLAIN.record(event, at) for at, event in enumerate(events)])
    records = [(write({"id": at}), write(event)) for at, event in enumerate(events)]
    decoded = PLAIN.decode([*records, (write({"id": 0}), b"junk")])
    assert images(decoded) == images(expected)
    assert len(images(decoded)) == len(events)


def test_one_key_may_be_written_in_several_ways() -> None:
    value = PLAIN.created(1)[1]
    keys = [b'{"id":1}', b'{"id": 1}', b' {"id":1}\n', b'{"\\u0069d":1}']
    assert len(images(PLAIN.decode([(key, value) for key in keys]))) == len(keys)


def test_text_keys_agree_whatever_they_hold() -> None:
    texts = ["plain", 'q"', "\\", "é", "😀", "\n", "", '","id":"']
    context = DecodeContext(TABLE, declare({**DECLARED, "id": "string"}))
    records = [
        (compact({"id": text}), compact(payload("c", None, image(1, id=text)))) for text in texts
    ]
    escaped = [
        (json.dumps({"id": text}).encode(), value)
        for text, (_, value) in zip(texts, records, strict=True)
    ]
    crossed = [(records[0][0], records[1][1]), (b'{"id":"q""}', records[1][1])]
    decoded = decode_all([*records, *escaped, *crossed], context)
    assert dead(decoded) == {16: "key-mismatch", 17: "missing-key"}
    assert [row["id"] for row in rows_after(decoded)] == texts * 2


@pytest.mark.parametrize(
    ("found", "topic", "same"),
    [
        ({}, TableName("shop", "items"), True),
        ({"table": "räder & co"}, TableName("shop", "r_der___co"), True),
        ({"table": "räder"}, TableName("shop", "räder"), True),
        ({}, TableName("default", "items"), True),
        ({}, TableName("default", "orders"), False),
        ({}, TableName("crm", "items"), False),
        ({"db": "Shop"}, TableName("shop", "items"), False),
    ],
)
def test_a_topic_names_its_table_with_the_characters_it_may_hold(
    found: dict[str, Any], topic: TableName, same: bool
) -> None:
    record = (b'{"id":1}', compact(payload("c", None, image(1), **found)))
    decoded = decode_all([record], DecodeContext(topic, PLAIN.context.declared))
    assert dead(decoded) == ({} if same else {0: "wrong-table"})


def test_without_schemas_an_absent_field_is_another_schema_never_null() -> None:
    records = [PLAIN.created(at) for at in range(6)]
    for at in (2, 3, 5):
        after = image(at)
        del after["stock"]
        records[at] = PLAIN.record(payload("c", None, after), at)
    decoded = PLAIN.decode(records)
    rows = {
        tuple(f.name for f in block.schema.fields): block.rows.tolist() for block in decoded.blocks
    }
    assert rows == {("id", "name", "price", "stock"): [0, 1, 4], ("id", "name", "price"): [2, 3, 5]}


def test_without_schemas_images_of_different_columns_are_a_dead_letter() -> None:
    before = image(1)
    del before["stock"]
    decoded = PLAIN.decode([PLAIN.created(1), PLAIN.record(payload("u", before, image(1)), 1)])
    assert dead(decoded) == {1: "missing-field"}


def test_many_shapes_without_schemas_are_told_apart() -> None:
    columns = {f"c{n}": "integer" for n in range(30)}
    context = DecodeContext(TABLE, declare({"id": "long", **columns}))
    records = []
    for at in range(60):
        after = {"id": at, **dict.fromkeys(list(columns)[: at % 30], at)}
        records.append((compact({"id": at}), compact(payload("c", None, after))))
    records.insert(7, (b"{}", b"junk"))
    decoded = decode_all(records, context)
    assert len(images(decoded)) == 60
    assert dead(decoded) == {7: "not-json"}
    assert {len(block.schema.fields) for block in decoded.blocks} == set(range(1, 31))


@pytest.mark.parametrize("declared", [None, {}, {"id": "long", "name": "string"}])
def test_undeclared_columns_stop_the_partition_with_the_configuration_to_write(
    declared: dict[str, str] | None,
) -> None:
    context = DecodeContext(TABLE, None if declared is None else declare(declared))
    decoded = decode_all([(None, b"junk"), PLAIN.created(1), PLAIN.created(2)], context)
    (stop,) = decoded.stops
    assert (stop.row, stop.code) == (1, ParkCode.TYPES_UNDECLARED)
    assert 'match: "shop.items"' in stop.detail
    assert '"price": TYPE, "stock": TYPE' in stop.detail
    assert ('"id": TYPE' in stop.detail) is not bool(declared)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "struct", "fields": [], "name": "io.debezium.data.geometry.Point"},
        {"type": "struct", "fields": [], "name": "io.debezium.data.VariableScaleDecimal"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        {
            "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "30", "connect.decimal.precision": "66"},
        },
    ],
)  # fmt: skip
def test_a_type_without_an_exact_column_type_stops_the_partition(field: dict[str, Any]) -> None:
    schema = envelope_schema([{"type": "int64", "field": "id"}, {**field, "field": "shape"}])
    content = payload("c", None, {"id": 1, "shape": None})
    record = (SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))
    decoded = decode_all([SCHEMAS.created(1), record], DecodeContext(TABLE))
    (stop,) = decoded.stops
    assert (stop.row, stop.code) == (1, ParkCode.UNSUPPORTED)
    assert "column='shape'" in stop.detail


def test_a_decimal_without_a_precision_has_38_digits() -> None:
    field = {
        "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "0"}, "field": "big",
    }  # fmt: skip
    schema = envelope_schema([{"type": "int64", "field": "id"}, field])
    content = payload("c", None, {"id": 1, "big": "AP//////////"})
    (block,) = decode_all(
        [(SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))], DecodeContext(TABLE)
    ).blocks
    assert type_name(block, 1) == "decimal(38,0)"
    assert block.after["big"].to_pylist() == [Decimal(2**64 - 1)]


def test_enum_values_and_defaults_are_no_part_of_the_source_type() -> None:
    def types(**more: object) -> set[object]:
        enum = {"type": "string", "name": "io.debezium.data.Enum", "field": "e", **more}
        schema = envelope_schema([{"type": "int64", "field": "id"}, enum])
        content = payload("c", None, {"id": 1, "e": "a"})
        record = (SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))
        return {block.schema for block in decode_all([record], DecodeContext(TABLE)).blocks}

    first = types(parameters={"allowed": "a,b"}, optional=True)
    assert first == types(parameters={"allowed": "a,b,c"}, optional=False, default="a")


def test_column_names_may_hold_anything() -> None:
    names = ["a.b", 'q"', "back\\", ":null", "é", "😀", "i", "p", "op", "source", "x ", "*", "[a]"]
    columns = {"id": "long", **dict.fromkeys(names, "integer")}
    context = DecodeContext(TABLE, declare(columns))
    rows = [{"id": at, **dict.fromkeys(names, None if at % 2 else at)} for at in range(4)]
    records = [
        (compact({"id": after["id"]}), compact(payload("u", after, after))) for after in rows
    ]
    wrong = compact(payload("c", None, {**rows[0], "é": "text"}))
    decoded = decode_all([*records, (records[0][0], wrong)], context)
    assert [after for _, after in images(decoded).values()] == rows
    assert dead(decoded) == {4: "wrong-type"}


def test_a_null_payload_is_a_tombstone() -> None:
    records = [(b'{"id":1}', b'{"schema":null,"payload":null}'), (b'{"id":1}', b"null")]
    assert PLAIN.decode(records).ignored == {"tombstone": 2}
    assert SCHEMAS.decode(records).ignored == {"tombstone": 2}


def test_a_converter_that_writes_no_schema_still_wraps_the_payload() -> None:
    content = payload("c", None, image(1))
    record = (b'{"schema":null,"payload":{"id":1}}', compact(with_schema(content, None)))
    decoded = decode_all([record, PLAIN.created(2)], PLAIN.context)
    assert images(decoded) == {0: (None, row(1)), 1: (None, row(2))}


@FLAVOURS
def test_tombstones_among_broken_records_are_still_ignored(flavour: Flavour) -> None:
    tombstone = (flavour.key({"id": 1}), None)
    broken = [(flavour.key({"id": 1}), text) for text in (b"\xff}", b"\n}", b"", b"{")]
    decoded = flavour.decode(
        [flavour.created(1), tombstone, *broken, tombstone, flavour.created(2), tombstone]
    )
    assert decoded.ignored == {"tombstone": 3}
    assert list(dead(decoded)) == [2, 3, 4, 5]
    assert list(images(decoded)) == [0, 7]


def test_no_records_decode_to_nothing() -> None:
    decoded = PLAIN.decode([])
    assert (decoded.blocks, len(decoded.dead), decoded.stops) == ((), 0, ())


def test_a_slice_of_a_larger_batch_decodes_like_a_batch_of_its_own() -> None:
    from lakesplice.formats.events import decode
    from tests.support.debezium import batch

    records = [PLAIN.created(at) for at in range(10)]
    whole = batch([*records, (b"{}", b"x" * 1000)])
    assert images(decode(whole.slice(3, 5), PLAIN.context)) == images(PLAIN.decode(records[3:8]))


def test_times_are_moments_with_their_offset_or_dead_letters() -> None:
    context = DecodeContext(TABLE, declare({"id": "long", "at": "timestamp"}))
    texts = {
        "2024-03-10T02:30:00Z": datetime(2024, 3, 10, 2, 30, tzinfo=UTC),
        "2024-03-10T02:30:00.5+02:00": datetime(2024, 3, 10, 0, 30, 0, 500_000, tzinfo=UTC),
        "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
        "2024-03-10T02:30:00": None,
        "2024-02-30T00:00:00Z": None,
        "2024-03-10": None,
        "10000-01-01T00:00:00Z": None,
        "0001-01-01T00:00:00+01:00": None,
        "now": None,
        "": None,
    }
    records = [
        (compact({"id": at}), compact(payload("c", None, {"id": at, "at": text})))
        for at, text in enumerate(texts)
    ]
    decoded = decode_all(records, context)
    found = [row["at"] for row in rows_after(decoded)]
    assert found == [moment for moment in texts.values() if moment]
    assert list(dead(decoded)) == [at for at, moment in enumerate(texts.values()) if not moment]


def test_heartbeats_and_marks_of_transactions_are_passed_over() -> None:
    marks = [
        b'{"ts_ms":1795247738437}',
        b'{"status":"BEGIN","id":"0-1-2","event_count":null,"data_collections":null}',
        b'{"status":"END","id":"0-1-2","event_count":1,"data_collections":[]}',
    ]
    decoded = decode_all([(None, mark) for mark in marks], DecodeContext(TABLE))
    assert decoded.ignored == {"heartbeat": 1, "transaction": 2}
    assert not dead(decoded)


def swapped(record: Record) -> Record:
    """The same record with its payload before its schema, in the key too."""
    parts = [json.loads(part or b"null") for part in record]
    key, value = [compact({name: part[name] for name in ("payload", "schema")}) for part in parts]
    return key, value


def test_the_payload_may_stand_before_its_schema() -> None:
    records = [
        SCHEMAS.record(payload("c", None, image(1)), 1),
        SCHEMAS.record(payload("u", image(1), image(1, stock=None)), 1),
        SCHEMAS.record(payload("d", image(1), None), 1),
    ]
    decoded = SCHEMAS.decode([swapped(record) for record in records])
    assert dead(decoded) == {}
    assert images(decoded) == images(SCHEMAS.decode(records))
    mixed = SCHEMAS.decode([records[0], swapped(records[1]), records[2]])
    assert images(mixed) == images(decoded)


def test_a_payload_before_its_schema_that_is_damaged_harms_no_other() -> None:
    good = swapped(SCHEMAS.record(payload("c", None, image(2)), 2))
    key, value = swapped(SCHEMAS.record(payload("c", None, image(1)), 1))
    assert value is not None
    torn = value.replace(b'"stock":1', b'"stock":x')
    decoded = SCHEMAS.decode([good, (key, torn), good])
    assert dead(decoded) == {1: "not-json"}
    assert images(decoded).keys() == {0, 2}


def placeless(record: Record, *, absent: bool = False) -> Record:
    """The record as a source sends it that reads no binlog of its own, such as Flink CDC's sink."""
    key, value = record
    event = json.loads(value or b"")
    source = event.get("payload", event)["source"]
    source |= {"file": "", "pos": 0, "row": 0}
    for name in ("file", "pos", "row", "gtid", "server_id") if absent else ():
        source.pop(name)
    for schema in [event["schema"]] if absent and "schema" in event else []:
        (of_source,) = (field for field in schema["fields"] if field["field"] == "source")
        of_source["fields"] = [f for f in of_source["fields"] if f["field"] in source]
    return key, compact(event)


@FLAVOURS
@pytest.mark.parametrize("absent", [False, True], ids=["empty", "absent"])
def test_events_that_name_no_binlog_are_in_the_order_of_their_records(
    flavour: Flavour, absent: bool
) -> None:
    records = [
        flavour.record(payload("c", None, image(1)), 1),
        flavour.record(payload("u", image(1), image(1, stock=9)), 1),
        flavour.record(payload("d", image(1), None), 1),
    ]
    decoded = flavour.decode([placeless(record, absent=absent) for record in records])
    assert dead(decoded) == {}
    (block,) = decoded.blocks
    assert block.ordering is Ordering.KAFKA
    assert block.op.tolist() == [Op.CREATE, Op.UPDATE, Op.DELETE]
    assert block.position_offset.tolist() == sorted(block.position_offset.tolist())
    assert set(block.position_file.tolist()) == {0}
    truncate = placeless((None, flavour.value(payload("t", None, None))), absent=absent)
    assert flavour.decode([truncate]).fences.rows.tolist() == [0]


@FLAVOURS
def test_events_with_and_without_a_binlog_are_told_apart(flavour: Flavour) -> None:
    first, second = (flavour.record(payload("c", None, image(n)), n) for n in (1, 2))
    decoded = flavour.decode([first, placeless(second), first])
    orderings = {row: b.ordering for b in decoded.blocks for row in b.rows.tolist()}
    assert orderings == {0: Ordering.BINLOG, 1: Ordering.KAFKA, 2: Ordering.BINLOG}
