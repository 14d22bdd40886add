"""The tables that drawn statements write to: their columns, keys and rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tests.support.column_types import (
    Typed,
    digits_of,
    every_type,
    large,
    of_text,
    required,
    text_of,
    within,
)


@dataclass
class Table:
    """A table of the source with the columns it has by now; the first `keys` are its key. `rest`
    is what its definition ends with.
    """

    name: str
    columns: list[Typed]
    keys: int = 1
    rest: str = ""

    @property
    def key(self) -> list[str]:
        """The names of the key's columns."""
        return [column.name for column in self.columns[: self.keys]]

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.columns]


def tables(*, nullable_default: bool = True) -> list[Table]:
    """The tables at the start: keys of several types, one column of each type, large values, and a
    column that may be null and has a default.
    """
    bonus = "int default 150" if nullable_default else "int"
    codes = [f"{letter}-{word}" for letter in "abü" for word in ("x", "é", "漢", "long" * 9)]
    number = required("id", "int unsigned", pa.int64(), lambda c: c.randint(1, 60))
    price = Typed("price", "decimal(10,4)", pa.decimal128(10, 4), digits_of(10, 4))
    return [
        Table("everything", [number, *every_type()]),
        Table(
            "order_lines",
            [
                required("code", "varchar(40)", pa.string(), lambda c: c.choice(codes)),
                required("line_no", "int", pa.int32(), lambda c: c.randint(-3, 3)),
                Typed("qty", "int", pa.int32(), within(-5, 99)),
                Typed("bonus", bonus, pa.int32(), within(100, 199)),
                price,
            ],
            keys=2,
        ),
        Table(
            "large",
            [
                required(
                    "id", "varbinary(8)", pa.binary(),
                    lambda c: c.choice((b"\0", b"\xff\n", b"a", b"A", b"a\0", b"\\")),
                ),
                Typed("body", "longblob", pa.binary(), large),
                of_text("note", "longtext", 3_000),
            ],
        ),
        Table(
            "priced",
            [
                required(
                    "amount", "decimal(8,3)", pa.decimal128(8, 3),
                    lambda c: Decimal(c.randint(-20, 20)).scaleb(-1).quantize(Decimal("0.001")),
                ),
                Typed("what", "varchar(30)", pa.string(), text_of(30)),
            ],
        ),
    ]  # fmt: skip


def moved_tables() -> list[Table]:
    """Tables of which statements move rows without an event: two that swap names, one that gets
    another, and one that has partitions.
    """
    number = required("id", "int", pa.int32(), lambda c: c.randint(1, 30))
    columns = [number, Typed("what", "varchar(30)", pa.string(), text_of(30))]
    parts = ", ".join(f"partition {below(end)} values less than ({end})" for end in PARTS)
    return [
        *(Table(name, [*columns]) for name in ("west", "east", "single")),
        Table(
            "parted",
            [*columns],
            rest=f" partition by range (id) ({parts}, partition others values less than maxvalue)",
        ),
    ]


def below(end: int) -> str:
    """The name of the partition whose rows end there."""
    return f"below_{end}"


PARTS = (6, 12, 18, 24)
# A row in it has the connector take a snapshot.
SIGNALS = Table(
    "signals",
    [
        required("id", "varchar(64)", pa.string(), text_of(1)),
        Typed("type", "varchar(40)", pa.string(), text_of(1)),
        Typed("data", "varchar(2000)", pa.string(), text_of(1)),
    ],
)
MARKS = Table("marks", [required("token", "varchar(40)", pa.string(), text_of(1))])
