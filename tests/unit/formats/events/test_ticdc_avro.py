"""TiCDC's Debezium protocol in Avro, as its encoder writes it."""

from __future__ import annotations

from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, Decoded
from lakesplice.model.change import Op
from lakesplice.model.choices import FormatName
from lakesplice.model.position import RANK_DELETE, RANK_OTHER, Ordering
from lakesplice.model.types import ColumnType, Primitive
from tests.support.debezium import TABLE, decode_all, rows_after
from tests.support.ticdc_avro import decimal, event, record, row, schemas


def decode(price: dict[str, Any], *events: dict[str, Any]) -> Decoded:
    records = [record(price, content) for content in events]
    return decode_all(records, DecodeContext(TABLE, schemas=schemas(price)))


def test_the_order_is_that_of_commit_timestamps() -> None:
    old, new = row(125), row(150)
    decoded = decode(
        decimal(8, 2),
        event("c", None, old, 7),
        event("u", old, new, 8),
        event("u", None, new, 9),  # with output-old-value=false
        event("d", new, None, 10),
    )
    assert decoded.format is FormatName.AVRO
    (block,) = decoded.blocks
    assert block.ordering is Ordering.TIDB
    assert block.op.tolist() == [Op.CREATE, Op.UPDATE, Op.UPDATE, Op.DELETE]
    ranks = [RANK_OTHER, RANK_OTHER, RANK_OTHER, RANK_DELETE]
    expected = [at << 1 | rank for at, rank in zip((7, 8, 9, 10), ranks, strict=True)]
    assert block.position_offset.tolist() == expected
    assert decoded.suspect_settings == frozenset()


@pytest.mark.parametrize(
    ("price", "type_", "read"),
    [
        (decimal(10, 4), ColumnType(Primitive.DECIMAL, 10, 4), "-12.3400"),
        (decimal(50, 2), ColumnType(Primitive.STRING), "-1234.00"),
    ],
    ids=["10 digits", "50 digits"],
)
def test_a_decimal_has_the_digits_that_its_schema_says(
    price: dict[str, Any], type_: ColumnType, read: str
) -> None:
    decoded = decode(price, event("c", None, row(-123400), 7))
    assert decoded.blocks[0].schema.fields[1].type == type_
    assert str(rows_after(decoded)[0]["price"]) == read
