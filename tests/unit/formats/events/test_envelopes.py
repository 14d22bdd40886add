"""Decoding of the envelope: operations, positions, keys, stops and records that aren't changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.model.change import Op
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Flavour,
    Record,
    compact,
    dead,
    decode_all,
    image,
    images,
    payload,
    rows_after,
    with_schema,
)
from tests.support.envelope_rows import FLAVOURS, PLAIN, SCHEMAS, row


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
