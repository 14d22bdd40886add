"""Decimals as numbers (`decimal.format=NUMERIC`) in events with schemas, beside those in base64."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext
from tests.support.debezium import (
    TABLE,
    Flavour,
    Record,
    compact,
    dead,
    decode_all,
    image,
    images,
    key_schema,
    payload,
    with_schema,
)

FLAVOUR = Flavour(schemas=True)
# Base64 that looks like digits: the bytes d7 6d f8.
LOOKS_LIKE_DIGITS = "1234"


def insert(key: int, price: Any, name: str = "n") -> Record:
    event = payload("c", None, image(key, price=price, name=name), pos=4 + key)
    return compact(with_schema({"id": key}, key_schema())), FLAVOUR.value(event)


def prices(*records: Record) -> list[Any]:
    decoded = decode_all(list(records), DecodeContext(TABLE))
    assert (decoded.stops, dead(decoded)) == ((), {})
    found = images(decoded)
    return [after["price"] for _, after in (found[row] for row in range(len(records))) if after]


@pytest.mark.parametrize("price", ["0", "2.5", "-2.50", "123456.78", "-0.01", "1e2"])
def test_a_number_is_read_exactly(price: str) -> None:
    key, value = insert(1, 77777)
    assert value is not None
    record = (key, value.replace(b'"price":77777', b'"price":' + price.encode()))
    assert prices(record) == [Decimal(price)]


@pytest.mark.slow
def test_numbers_and_base64_may_follow_each_other_in_any_order() -> None:
    base64 = Decimal(int.from_bytes(b"\xd7\x6d\xf8", "big", signed=True)) / 100
    written = {2.5: Decimal("2.5"), LOOKS_LIKE_DIGITS: base64, None: None}
    sent = [None, 2.5, LOOKS_LIKE_DIGITS, 2.5, None, LOOKS_LIKE_DIGITS, LOOKS_LIKE_DIGITS, 2.5]
    for start in range(len(sent)):
        order = sent[start:] + sent[:start]
        records = [insert(row, price) for row, price in enumerate(order)]
        assert prices(*records) == [written[price] for price in order]


def test_a_text_that_looks_like_a_quoted_price_is_no_price() -> None:
    assert prices(insert(1, 2.5, 'x"price":"1'), insert(2, 3.5, "y")) == [
        Decimal("2.5"),
        Decimal("3.5"),
    ]


@pytest.mark.parametrize("price", [2.555, 1234567.0, True, [], "no base64!"])
def test_a_value_that_is_no_decimal_of_its_type_is_a_dead_letter(price: Any) -> None:
    decoded = decode_all([insert(1, 2.5), insert(2, price), insert(3, 3.5)], DecodeContext(TABLE))
    assert list(dead(decoded)) == [1]
    assert decoded.stops == ()


def test_an_event_without_a_schema_has_no_decimal_as_a_number() -> None:
    bare = Flavour(schemas=False)
    decoded = bare.decode([bare.created(1), bare.created(2, price=2.5)])
    assert list(dead(decoded)) == [1]
    assert decoded.stops == ()
