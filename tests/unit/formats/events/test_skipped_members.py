"""Members that belong to no column don't affect their event, whatever they contain."""

from __future__ import annotations

import pytest

from lakesplice.formats.events import DecodeContext
from tests.support.canal_messages import message
from tests.support.canal_messages import row as canal_row
from tests.support.debezium import TABLE, decode_all, images
from tests.support.maxwell_events import Json, decode, event, row

VALUES = [
    [1, "a"], [None, 1], [1, 2.5], [{"a": 1}, {"b": 2}], {"a": [1, "}"]}, 2**64, -(2**70), "text",
    None, [[1], ["a"]], {}, True,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_member_that_a_script_gave_to_maxwells_event_is_skipped(value: object) -> None:
    decoded = decode(
        event("insert", row(1)),
        event("insert", row(2), added=value),
        event("update", row(3, name=None), {"name": "was"}, added=value),
        event("delete", row(4), added=value),
    )
    found = images(decoded)
    assert [after and after["id"] for _, after in found.values()] == [1, 2, 3, None]
    assert found[2][0] is not None
    assert (found[2][0]["name"], found[2][1] and found[2][1]["name"]) == ("was", None)


def test_two_values_in_one_batch_are_skipped_alike() -> None:
    events = [event("insert", row(at), added=value) for at, value in enumerate(VALUES)]
    assert list(images(decode(*events, *events))) == list(range(2 * len(VALUES)))


def test_key_values_of_several_types_are_skipped() -> None:
    stated: Json = {"primary_key": [1, "item 1"], "primary_key_columns": ["id", "name"]}
    decoded = decode(event("insert", row(1), None, **stated), event("insert", row(2, name=None)))
    assert list(images(decoded)) == [0, 1]
    assert {block.schema.key for block in decoded.blocks} == {("id", "name"), ("id",)}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_member_that_isnt_canals_is_skipped(value: object) -> None:
    messages = [message("INSERT", [canal_row(1)]), message("INSERT", [canal_row(2)], added=value)]
    decoded = decode_all(messages, DecodeContext(TABLE))
    assert [after and after["id"] for _, after in images(decoded).values()] == [1, 2]
