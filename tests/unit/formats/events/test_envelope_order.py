"""The position of an event: in the binlog, or by its record's offset if it names no binlog."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakesplice.model.change import Op
from lakesplice.model.position import Ordering, Position
from tests.support.debezium import (
    Flavour,
    Record,
    compact,
    dead,
    image,
    images,
    payload,
)
from tests.support.envelope_rows import FLAVOURS


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
def test_a_row_of_a_snapshot_is_one_although_it_is_called_created(flavour: Flavour) -> None:
    marks = ["true", "last", "false", "incremental", None]
    events = [
        flavour.record(payload("c", None, image(1), snapshot=mark, gtid=None), 1) for mark in marks
    ]  # as Debezium before 1.5 sends them, at one position
    # A later one after a blocking snapshot broke off.
    events.append(flavour.record(payload("c", None, image(1), snapshot="true", gtid="0-1-2"), 1))
    (block,) = flavour.decode(events).blocks
    assert block.op.tolist() == [Op.READ, Op.READ, *[Op.CREATE] * 4]
    assert block.snapshot is not None
    assert block.snapshot.tolist() == [1, 2, 0, 0, 0, 0]


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
    assert decoded.fences.source_ts[0] == decoded.blocks[0].source_ts[-1]
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
def test_events_with_and_without_a_binlog_are_distinguished(flavour: Flavour) -> None:
    first, second = (flavour.record(payload("c", None, image(n)), n) for n in (1, 2))
    decoded = flavour.decode([first, placeless(second), first])
    orderings = {row: b.ordering for b in decoded.blocks for row in b.rows.tolist()}
    assert orderings == {0: Ordering.BINLOG, 1: Ordering.KAFKA, 2: Ordering.BINLOG}
