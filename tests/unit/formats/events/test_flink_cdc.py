"""Debezium's events as Flink CDC's Kafka sink writes them: its keys also name the table."""

from __future__ import annotations

from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.position import Ordering
from tests.support.debezium import TABLE, Record, compact, dead, decode_all, images

CONTEXT = DecodeContext(TABLE, declare({"id": "int", "name": "string"}))


def change(key: Any, op: str = "c", **more: Any) -> Record:
    row = {"id": 1, "name": "a"}
    before, after = (row, None) if op == "d" else (None, row)
    source = {"db": "shop", "table": "items"}
    event = {"before": before, "after": after, "op": op, "source": source, **more}
    return (key if isinstance(key, bytes) else compact(key)), compact(event)


def test_the_keys_columns_are_those_besides_the_tables_name() -> None:
    key = {"TableId": "shop.items", "id": 1}
    spaced = b'{"TableId": "shop.items", "id": 1}'
    decoded = decode_all([change(key), change(spaced), change(key, "d")], CONTEXT)
    assert {block.schema.key for block in decoded.blocks} == {("id",)}
    assert {block.ordering for block in decoded.blocks} == {Ordering.KAFKA}
    assert list(images(decoded)) == [0, 1, 2]


def test_a_delete_without_a_row_takes_its_key() -> None:
    key = {"TableId": "shop.items", "id": 5}
    decoded = decode_all([change(key, "d", before=None)], CONTEXT)
    assert images(decoded) == {0: ({"id": 5, "name": None}, None)}


def test_a_key_of_another_row_is_a_dead_letter() -> None:
    keys = [{"TableId": "shop.items", "id": at} for at in (1, 2)]
    assert dead(decode_all(map(change, keys), CONTEXT)) == {1: DeadReason.KEY_MISMATCH}


def test_a_table_without_a_key_has_none() -> None:
    (block,) = decode_all([change({"TableId": "shop.items"})], CONTEXT).blocks
    assert block.schema.key == ()


@pytest.mark.parametrize("name", ["TableId", "tableid"])
def test_a_column_of_that_name_is_a_column(name: str) -> None:
    context = DecodeContext(TABLE, declare({name: "string"}))
    (block,) = decode_all([change({name: "x"}, after={name: "x"})], context).blocks
    assert block.schema.key == (name,)


def test_the_canal_json_of_flink_cdc_is_named_in_the_reason() -> None:
    message = {"old": None, "data": [{"id": 1}], "type": "INSERT", "database": "shop",
               "table": "items", "pkNames": ["id"]}  # fmt: skip
    decoded = decode_all([(None, compact(message))], CONTEXT)
    assert dead(decoded) == {0: DeadReason.NOT_AN_ENVELOPE}
    assert "Flink CDC" in decoded.dead.detail[0]
