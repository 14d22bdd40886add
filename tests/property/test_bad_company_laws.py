"""A record's fate is its own: it decodes beside any other records as it does alone, whatever JSON
stands for its values. What JSON lacks, NaN and Infinity, is never a value.

`test_company_laws.py` holds sound records to the values that are expected of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext
from tests.property.test_company_laws import FORMATS, companies
from tests.support.debezium import Record, compact, decode_all, images
from tests.support.drawing import examples

NO_JSON = ["NaN", "Infinity", "-Infinity"]
TOKENS = [
    *NO_JSON, "1e400", "-0", "-0.0", "1.5", "1e2", "-1", "0", "9223372036854775808",
    "123456789012345678901234567890", "true", "null", '""', '"x"', '"7"', '"NaN"', '"2024-01-31"',
    '"AQ=="', '"\\ud800"', "[]", "[1]", "{}", '{"v0":1}',
]  # fmt: skip
_PLACE = "the token's place"
# Members in which names of columns stand for their types.
_OF_TYPES = ("schema", "mysqlType")
_COUNTS = (0, 700, 2049)
FORMATS_IN_JSON = [name for name in FORMATS if "avro" not in name]


def with_token(value: bytes, column: str, token: str) -> bytes:
    """The record's value with the token in place of each value of the column."""
    return compact(_placed(json.loads(value), column)).replace(
        json.dumps(_PLACE).encode(), token.encode()
    )


def _placed(node: Any, column: str) -> Any:
    if isinstance(node, list):
        return [_placed(one, column) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        name: member if name in _OF_TYPES else _PLACE if name == column else _placed(member, column)
        for name, member in node.items()
    }


def fate(record: Record, context: DecodeContext) -> Any:
    """What becomes of the record alone: its row as text, in which NaN equals itself, None if it is
    a dead letter, and () if it would stop its table.
    """
    decoded = decode_all([record], context)
    if decoded.stops:
        return ()
    return None if decoded.dead.rows.tolist() else repr(images(decoded)[0])


@pytest.mark.parametrize("name", FORMATS_IN_JSON)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_record_decodes_in_company_as_alone(name: str, data: st.DataObject) -> None:
    columns, rows, _ = data.draw(companies(FORMATS[name].sent))
    records, context = FORMATS[name].write(columns, rows)
    tokens = st.sampled_from([*TOKENS, *NO_JSON, *NO_JSON])
    sound: list[tuple[Record, Any]] = [(one, fate(one, context)) for one in records]
    changed: list[tuple[Record, Any]] = []
    for key, value in records:
        assert value is not None
        for column in range(len(columns)):
            token = data.draw(tokens)
            record = key, with_token(value, f"v{column}", token)
            alone = fate(record, context)
            if alone != ():
                changed.append((record, alone))
            assert token not in NO_JSON or alone in (None, ())
    # Few of them, since many let all records be read one by one.
    some = data.draw(st.lists(st.sampled_from(changed), max_size=2)) if changed else []
    order = data.draw(st.permutations([*sound, *some]))
    event(f"dead beside sound: {len({alone is None for _, alone in order}) == 2}")
    _require(order, max(len(order), data.draw(st.sampled_from(_COUNTS))), context)


def _require(order: Sequence[tuple[Record, Any]], count: int, context: DecodeContext) -> None:
    many = [order[at % len(order)] for at in range(count)]
    decoded = decode_all([record for record, _ in many], context)
    assert decoded.stops == ()
    assert decoded.dead.rows.tolist() == [at for at, (_, own) in enumerate(many) if own is None]
    found = images(decoded)
    for at, (_, alone) in [*enumerate(many)][: 2 * len(order)]:
        if alone is not None:
            assert repr(found[at]) == alone
