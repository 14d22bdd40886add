"""A table with a column of every type, and rows at the limits of each type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType

_UTC = dt.UTC
TYPES = (
    "long", "boolean", "byte", "short", "integer", "float", "double", "decimal(5,2)",
    "decimal(18,3)", "decimal(38,10)", "string", "binary", "date", "timestamp",
)  # fmt: skip
LOW: tuple[Any, ...] = (
    -(2**63), False, -128, -(2**15), -(2**31), -1.5, -1e300, Decimal("-999.99"),
    Decimal("-" + "9" * 15 + ".999"), Decimal("-" + "9" * 28 + "." + "9" * 10), "", b"",
    dt.date(1000, 1, 1), dt.datetime(1000, 1, 1, tzinfo=_UTC),
)  # fmt: skip
HIGH: tuple[Any, ...] = (
    2**63 - 1, True, 127, 2**15 - 1, 2**31 - 1, 0.1015625, 1e300, Decimal("999.99"),
    Decimal("9" * 15 + ".999"), Decimal("9" * 28 + "." + "9" * 10),
    "é\n\x00\U0001f600", b"\x00\xff\n",
    dt.date(9999, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=_UTC),
)  # fmt: skip
EVERY_TYPE = TableSchema(
    tuple(
        Column(at, f"c_{name.partition('(')[0]}_{at}", f"c{at}", ColumnType.parse(name), name)
        for at, name in enumerate(TYPES)
    ),
    ("c_long_0",),
    (0, len(TYPES)),
)


def row(key: int, values: tuple[Any, ...] | None) -> dict[str, Any]:
    """A row of a key; `LOW`, `HIGH` or, for None, nulls."""
    rest = values[1:] if values else (None,) * (len(TYPES) - 1)
    return dict(zip(EVERY_TYPE.names, (key, *rest), strict=True))
