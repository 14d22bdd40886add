"""Debezium's events in Avro: correct ones, and faults that affect only one record."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from decimal import Decimal

import numpy as np
import pytest

from lakesplice.formats.events import SchemaText
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.testing.avro_records import frame, write_value
from tests.support.avro import (
    CONTEXT,
    KEY_ID,
    ROW_ID,
    SCHEMAS,
    VALUE_ID,
    avro_record,
    flattened_record,
    in_avro,
    node,
    record,
    written,
)
from tests.support.debezium import (
    Flavour,
    Record,
    compact,
    dead,
    decode_all,
    image,
    images,
    payload,
)


def created(row: int, **changed: object) -> Record:
    return avro_record(payload("c", None, image(row, **changed), pos=100 + row), row)


def test_avro_and_json_of_the_same_events_give_the_same_changes() -> None:
    events = [
        (payload("r", None, image(1), snapshot="first"), 1),
        (payload("r", None, image(3), snapshot="last"), 3),
        (payload("c", None, image(2, name=None, price=None, stock=-3)), 2),
        (payload("u", image(1), image(1, stock=9), pos=200), 1),
        (payload("d", image(2), None, pos=300), 2),
    ]
    json_ = Flavour(schemas=True)
    expected = json_.decode([json_.record(event, row) for event, row in events])
    decoded = decode_all([avro_record(event, row) for event, row in events], CONTEXT)
    assert decoded.format is FormatName.AVRO
    assert images(decoded) == images(expected)
    (ours,), (theirs,) = decoded.blocks, expected.blocks
    assert ours.schema == theirs.schema
    ops = [Op.READ, Op.READ, Op.CREATE, Op.UPDATE, Op.DELETE]
    assert ours.op.tolist() == theirs.op.tolist() == ops
    # Whatever else a block says, so that nothing that one form reads is left out of the other.
    for field in fields(ours):
        one, other = (getattr(block, field.name) for block in (ours, theirs))
        if isinstance(one, np.ndarray):
            assert one.tolist() == other.tolist(), field.name
        else:
            assert one == other, field.name
    assert ours.snapshot is not None
    assert ours.snapshot.tolist() == [1, 2, 0, 0, 0]
    assert ours.after["price"][0].as_py() == Decimal("1.00")


def test_numbers_of_eight_bytes_name_schemas_too() -> None:
    key, value = (write_value(node(SCHEMAS[at]), it) for at, it in _parts())
    record = frame(KEY_ID, key, 8), frame(VALUE_ID, value, 8)
    assert len(decode_all([record], CONTEXT).blocks[0]) == 1


def _parts() -> tuple[tuple[int, object], tuple[int, object]]:
    return (KEY_ID, {"id": 1}), (VALUE_ID, in_avro(payload("c", None, image(1))))


def test_a_tombstone_is_no_change() -> None:
    decoded = decode_all([created(1), (created(1)[0], None)], CONTEXT)
    assert decoded.ignored == {"tombstone": 1}


def test_two_schemas_in_one_topic_are_two_blocks() -> None:
    again = replace(CONTEXT, schemas={**SCHEMAS, 9: SCHEMAS[VALUE_ID], 8: SCHEMAS[KEY_ID]})
    other = (
        written(8, {"id": 2}, again.schemas or {}),
        written(9, in_avro(payload("c", None, image(2))), again.schemas or {}),
    )
    decoded = decode_all([created(1), other, created(3)], again)
    assert sorted(block.rows.tolist() for block in decoded.blocks) == [[0, 2], [1]]


_SOUND = created(5)[1] or b""
WRONG = {
    "cut off": (_SOUND[:-3], DeadReason.NOT_AVRO),
    "too long": (_SOUND + b"\0", DeadReason.NOT_AVRO),
    "of no schema": (frame(77, _SOUND[5:]), DeadReason.UNKNOWN_SCHEMA),
    "of another table": (
        avro_record(payload("c", None, image(5), table="other"), 5)[1],
        DeadReason.WRONG_TABLE,
    ),
    "of another operation": (
        avro_record(payload("x", None, image(5)), 5)[1],
        DeadReason.UNKNOWN_OP,
    ),
    "without an image": (avro_record(payload("u", None, None), 5)[1], DeadReason.MISSING_IMAGE),
    "without bytes": (b"", DeadReason.EMPTY),
    "without a head": (b"\1\0\0\0\4abc", DeadReason.NOT_AN_ENVELOPE),
    "of a key's schema": (frame(KEY_ID, b"\x02"), DeadReason.NOT_AN_ENVELOPE),
    "with a decimal too wide": (
        written(VALUE_ID, {**in_avro(payload("c", None, image(5))),
                           "after": {"id": 5, "name": "", "price": b"\x7f" * 9, "stock": 1}}),
        DeadReason.OUT_OF_RANGE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_costs_that_value(wrong: str) -> None:
    value, reason = WRONG[wrong]
    records = [created(1), (created(5)[0], value), created(2)]
    decoded = decode_all(records, CONTEXT)
    assert dead(decoded) == {1: reason}
    assert sorted(images(decoded)) == [0, 2]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (written(KEY_ID, {"id": 6}), DeadReason.KEY_MISMATCH),
        (written(KEY_ID, {"id": 5})[:-1], DeadReason.MISSING_KEY),
        (written(KEY_ID, {"id": 5}) + b"\0", DeadReason.MISSING_KEY),
        (frame(78, b"\x0a"), DeadReason.UNKNOWN_SCHEMA),
        (b"5", DeadReason.MISSING_KEY),
    ],
)
def test_a_key_that_isnt_the_rows_costs_its_record(key: bytes, reason: DeadReason) -> None:
    decoded = decode_all([created(1), (key, created(5)[1]), created(2)], CONTEXT)
    assert dead(decoded) == {1: reason}
    assert sorted(images(decoded)) == [0, 2]


def test_a_delete_without_a_row_before_takes_its_key() -> None:
    decoded = decode_all([avro_record(payload("d", None, None), 5)], CONTEXT)
    assert images(decoded)[0][0] == {"id": 5, "name": None, "price": None, "stock": None}


@pytest.mark.parametrize(("type_", "value"), [("string", "five"), (["null", "long"], None)])
def test_a_key_that_is_no_value_of_its_column_costs_the_delete_that_has_it_alone(
    type_: object, value: object
) -> None:
    other = record("Key", {"id": type_})
    context = replace(CONTEXT, schemas={**SCHEMAS, 9: SchemaText(json.dumps(other))})
    key = written(9, {"id": value}, context.schemas or {})
    gone = avro_record(payload("d", None, None), 5)[1]
    decoded = decode_all(
        [created(1), (key, gone), avro_record(payload("d", None, None), 6)], context
    )
    assert dead(decoded) == {1: DeadReason.MISSING_KEY}
    assert sorted(images(decoded)) == [0, 2]


def test_a_truncate_empties_the_table_where_it_stands() -> None:
    _, value = avro_record(payload("t", None, None), 5)
    decoded = decode_all([created(1), (None, value), created(2)], CONTEXT)
    assert decoded.fences.rows.tolist() == [1]
    assert decoded.fences.source_ts.null_count == 0
    assert decoded.fences.position_file.tolist() == [decoded.blocks[0].position_file[0]]
    assert decoded.ignored == {"truncate": 1}
    assert not decoded.stops


def test_without_a_registry_the_table_parks_and_says_what_to_set() -> None:
    decoded = decode_all([created(1)], replace(CONTEXT, schemas=None))
    (stop,) = decoded.stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "schema_registry.url" in stop.detail


def test_a_record_that_looks_like_avro_harms_no_topic_of_json() -> None:
    json_ = Flavour(schemas=True)
    poison = json_.created(1)[0], b"\0\0\0\0\x07rubbish"
    decoded = decode_all([poison, json_.created(1)], json_.context)
    assert decoded.format is FormatName.DEBEZIUM
    assert dead(decoded) == {0: DeadReason.NOT_JSON}


@pytest.mark.parametrize("avro_first", [True, False])
def test_avro_and_json_in_one_topic_park_its_table(avro_first: bool) -> None:
    records = [created(1), Flavour(schemas=True).created(2)]
    decoded = decode_all(records if avro_first else records[::-1], CONTEXT)
    (stop,) = decoded.stops
    assert (stop.row, stop.code) == (1, ParkCode.FORMAT_CHANGED)


def test_flattened_events_in_avro_are_rows_with_what_was_added() -> None:
    added = {"__deleted": "false", "__op": "u", "__source_file": "b.000001", "__source_pos": 7,
             "__source_row": 0}  # fmt: skip
    records = [
        flattened_record(image(1), 1, **added),
        flattened_record(image(2), 2, **{**added, "__deleted": "true", "__op": "d"}),
    ]
    decoded = decode_all(records, CONTEXT)
    assert decoded.format is FormatName.FLATTENED_AVRO
    (block,) = decoded.blocks
    assert block.op.tolist() == [Op.UPDATE, Op.DELETE]
    assert block.schema.key == ("id",)
    assert images(decoded)[0][1] == {"id": 1, "name": "item 1", "price": Decimal("1.00"),
                                     "stock": 1}  # fmt: skip


def test_flattened_events_that_dont_say_what_is_deleted_park_their_table() -> None:
    kept = SCHEMAS[ROW_ID].text.replace("__deleted", "__removed")
    context = replace(CONTEXT, schemas={**SCHEMAS, ROW_ID: SchemaText(kept)})
    added = ("__deleted", "__op", "__source_file", "__source_pos", "__source_row")
    (stop,) = decode_all([flattened_record(image(1), 1, **dict.fromkeys(added))], context).stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "rewrite deletes" in stop.detail


def test_a_schema_change_event_is_a_dead_letter() -> None:
    change = '{"type": "record", "name": "Change", "fields": [' \
             '{"name": "tableChanges", "type": {"type": "array", "items": "string"}}]}'  # fmt: skip
    context = replace(CONTEXT, schemas={**SCHEMAS, 2: SchemaText(change)}, format=FormatName.AVRO)
    assert dead(decode_all([(None, frame(2, b"\0"))], context)) == {0: DeadReason.NOT_AN_ENVELOPE}


def test_a_json_key_is_not_the_key_of_an_avro_event() -> None:
    decoded = decode_all([(compact({"id": 5}), created(5)[1])], CONTEXT)
    assert dead(decoded) == {0: DeadReason.MISSING_KEY}
