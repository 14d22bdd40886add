"""Draws plausible rows and values; the seed and the order of the calls determine them."""

from __future__ import annotations

import json
from random import Random

from lakesplice.model.types import Primitive
from lakesplice.testing.shop.columns import Column, Value
from lakesplice.testing.shop.database import Row

_FIRST = ("Ann", "Bob", "Zoë", "José", "李", "Ünal", "Nina", "Ömer", "Mia", "Otto 😀")
_LAST = ("Smith", "García", "Müller", "Nguyễn", "O'Neil", "Kowalska", "Sato", 'van "Dijk"')
_NOUNS = ("lamp", "chair", "kettle", "rug", "mug", "clock", "shelf", "blanket", "tray", "vase")
_NOTES = (
    None,
    "",
    "call first",
    "line one\nline two",
    'says "hi"\t\\o/',
    "naïve — ok",
    "\x00\x1f",
    "null",
)
_DAY_MICROSECONDS = 86_400_000_000
_OLDEST_MICROSECONDS = 1_700_000_000_000_000
_SPAN_MICROSECONDS = 63_000_000_000_000
_BIRTHS_DAYS = (-14_000, 14_000)


class RowMaker:
    """Makes values for the shop's columns and for any other column."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def moment_micros(self, digits: int = 6) -> int:
        """Return a moment of recent years with at most `digits` fractional digits."""
        step: int = 10 ** (6 - digits)
        return _OLDEST_MICROSECONDS + self._random.randrange(_SPAN_MICROSECONDS) // step * step

    def price(self) -> int:
        """Return a price in ten-thousandths; most are whole cents."""
        return self._random.randrange(99, 90_000) * 100 + (self._random.random() < 0.1)

    def note(self) -> str | None:
        """Return some text, sometimes with difficult characters, or None."""
        return self._random.choice(_NOTES)

    def customer(self, number: int) -> Row:
        """A row of `customers`."""
        random = self._random
        name = f"{random.choice(_FIRST)} {random.choice(_LAST)}"
        rare = random.random() < 0.2
        return (
            number,
            f"c{number}@example.com",
            None if rare else name,
            random.randrange(-99_999, 10_000_000),
            None if rare else random.randrange(-(10**29), 10**29),
            random.choice(("new", "active", "active", "blocked")),
            None if rare else self.preferences(),
            random.choice((None, True, False)),
            None if rare else random.randrange(*_BIRTHS_DAYS),
            random.choice((None, random.randrange(-_DAY_MICROSECONDS, 5 * _DAY_MICROSECONDS))),
            None if rare else self.moment_micros(3),
            None if rare else random.randbytes(random.randrange(12)),
            self.note(),
            self.moment_micros(3),
        )

    def preferences(self) -> str:
        """A JSON document as MySQL prints it."""
        random = self._random
        document = {"theme": random.choice(("dark", "light")), "n": [random.randrange(9), None]}
        return json.dumps(
            {**document, "city": random.choice(("Köln", "東京", "Oslo"))}, ensure_ascii=False
        )

    def product(self, number: int) -> Row:
        """A row of `products`."""
        random = self._random
        return (
            f"sku-{number:05d}",
            f"{random.choice(('oak', 'red', 'small', 'café'))} {random.choice(_NOUNS)}",
            random.randrange(1_000),
            self.price(),
            random.choice((None, random.randrange(8_000) / 8)),
            random.choice((None, random.random() * 5)),
            random.choice((None, random.randrange(-5, 300))),
            self.moment_micros(),
        )

    def value(self, column: Column) -> Value:
        """Return a value that the column can hold; sometimes null if it allows that."""
        random = self._random
        if column.optional and random.random() < 0.05:
            return None
        if column.semantic == "io.debezium.time.Timestamp":
            return self.moment_micros(3)
        if column.semantic == "io.debezium.data.Enum":
            return random.choice(column.parameters["allowed"].split(","))
        return self._value_of_type(column)

    def _value_of_type(self, column: Column) -> Value:
        random = self._random
        match column.type.kind:
            case Primitive.BOOLEAN:
                return random.random() < 0.5
            case Primitive.DECIMAL:
                limit = 10**column.type.precision
                return random.randrange(1 - limit, limit)
            case Primitive.FLOAT:
                return random.randrange(1 << 20) / 16
            case Primitive.DOUBLE:
                return random.random() * 1e6
            case Primitive.STRING:
                return f"{random.choice(_NOUNS)} {random.randrange(100_000)}"
            case Primitive.BINARY:
                return random.randbytes(8)
            case Primitive.DATE:
                return random.randrange(*_BIRTHS_DAYS)
            case Primitive.TIMESTAMP:
                return self.moment_micros(0)
            case _:
                return random.randrange(30_000)
