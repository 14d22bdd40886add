"""Rows of the table of envelopes, and its two flavours."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.debezium import (
    Flavour,
)

SCHEMAS, PLAIN = Flavour(schemas=True), Flavour(schemas=False)
FLAVOURS = pytest.mark.parametrize("flavour", [SCHEMAS, PLAIN], ids=["schemas", "plain"])


def row(number: int) -> dict[str, object]:
    """The image `image(number)` as it is decoded."""
    return {
        "id": number, "name": f"item {number}", "price": Decimal(number).quantize(Decimal("0.01")),
        "stock": number,
    }  # fmt: skip
