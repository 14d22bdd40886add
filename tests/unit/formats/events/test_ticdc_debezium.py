"""TiCDC's Debezium protocol, as its documents and its encoder describe it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import RANK_OTHER, Ordering
from tests.property.test_format_laws import ticdc_debezium
from tests.support.debezium import DECLARED, TABLE, compact, dead, decode_all, images

CONTEXT = DecodeContext(TABLE, declare(DECLARED))


def test_events_are_read_and_ordered_by_commit_timestamps() -> None:
    decoded = decode_all([ticdc_debezium(1), ticdc_debezium(2, "d")], CONTEXT)
    assert decoded.format is FormatName.TICDC_DEBEZIUM
    blocks = decoded.blocks
    assert {block.ordering for block in blocks} == {Ordering.TIDB}
    assert [op for block in blocks for op in block.op.tolist()] == [Op.UPDATE, Op.DELETE]
    before, after = images(decoded)[0]
    assert before == {"id": 1, "name": None, "price": Decimal("1.50"), "stock": 5}
    assert after == {"id": 1, "name": "item 1", "price": Decimal("1.25"), "stock": 1}
    assert [block.schema.key for block in blocks] == [("id",)] * len(blocks)


def test_events_without_schemas_are_read_too() -> None:
    key, value = ticdc_debezium(1)
    bare = [text and text[: text.index(b',"schema"')] + b"}" for text in (key, value)]
    decoded = decode_all([(bare[0], bare[1]), (key, value)], CONTEXT)
    assert sorted(images(decoded)) == [0, 1]


def test_a_key_of_another_row_is_a_dead_letter() -> None:
    decoded = decode_all([ticdc_debezium(1), (ticdc_debezium(3)[0], ticdc_debezium(2)[1])], CONTEXT)
    assert dead(decoded) == {1: DeadReason.KEY_MISMATCH}


@pytest.mark.parametrize(
    ("ddl", "empties"), [("TRUNCATE TABLE items", True), ("ALTER TABLE items ADD x INT", False)]
)
def test_ddl_is_passed_over_but_for_a_truncate(ddl: str, empties: bool) -> None:
    source = {"connector": "TiCDC", "db": "shop", "table": "items", "commit_ts": 9, "ts_ms": 5}
    event = compact({"payload": {"source": source, "ddl": ddl, "tableChanges": []}, "schema": {}})
    decoded = decode_all([ticdc_debezium(1), (None, event), ticdc_debezium(2)], CONTEXT)
    assert decoded.fences.rows.tolist() == [1] * empties
    assert decoded.fences.source_ts.null_count == 0
    assert decoded.fences.position_offset.tolist() == [9 << 1 | RANK_OTHER] * empties
    assert decoded.ignored == {"truncate" if empties else "schema-change": 1}


def test_a_watermark_record_is_no_change() -> None:
    source = {"connector": "TiCDC", "commit_ts": 9}
    decoded = decode_all([(None, compact({"payload": {"source": source, "op": "m"}}))], CONTEXT)
    assert decoded.ignored == {"watermark": 1}


def test_a_decimal_wider_than_a_double_parks_its_table() -> None:
    declared = declare({**DECLARED, "price": "decimal(16,2)"})
    (stop,) = decode_all([ticdc_debezium(1)], DecodeContext(TABLE, declared)).stops
    assert stop.code is ParkCode.UNSUPPORTED
    assert "column='price'" in stop.detail


def test_undeclared_columns_park_their_table() -> None:
    (stop,) = decode_all([ticdc_debezium(1)], DecodeContext(TABLE)).stops
    assert stop.code is ParkCode.TYPES_UNDECLARED


def test_an_update_without_the_row_before_is_read() -> None:
    """As with `output-old-value=false`."""
    key, value = ticdc_debezium(2)
    assert value is not None
    event = json.loads(value)
    del event["payload"]["before"]
    decoded = decode_all(
        [ticdc_debezium(1), (key, compact(event)), ticdc_debezium(3, "d")], CONTEXT
    )
    assert dead(decoded) == {}
    found = images(decoded)
    assert found[1][0] is None
    assert found[1][1] == {**(found[0][1] or {}), "id": 2, "name": "item 2", "stock": 2}
