"""Texts of events of one shape, most of them as producers write them, others in odd or wrong ways.

They are drawn from a `Random`, since some hundred values are drawn for each group of texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pyarrow as pa

_NAMES = ["n", "id", "a,", "é", 'q"', "b\\", "", "op", "null", "😀", "n:"]
_KINDS = [pa.int64(), pa.float64(), pa.float32(), pa.string(), pa.bool_()] * 3 + [pa.null()]
_SELDOM = [pa.list_(pa.int64()), pa.decimal128(12, 2), pa.struct([])]
_WORDS = ["", "x", "label 7", "ä", "😀", "a,b", "{}", "}", "null", ":null", "[1]", "\u2028", "'"]
_ODD_WORDS = [
    '","', '"a,"', r'"\""', r'"\\"', r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud800"', r'"\n"', r'"\x"',
    '"a","b":"c"', '"x', '"\t"', '"\x7f"', r'"\u0000"', '"\n"',
]  # fmt: skip
_ODD_NUMBERS = [
    "-0", "05", "-05", "-", "1.", ".5", "+1", "1e5", "1E5", "1e-7", "1e39", "3.4028236e38",
    "1e-46", "16777217", "0.1000000014901161", "1e100", "1E400", "0x1", "NaN",
    "Infinity", "-Infinity", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "1234567890123456789012", "1.0", "-0.0", "0.1e1", "-0x1", "1_0",
    "12345678901234567890.5", "00", "0", "1 ", " 1", "1,2", "１",
]  # fmt: skip
_ODD = [
    "nulL", "nul", "n", "null ", " null", "tru", "True", "t", "true", "false", "", " ", "[]", "{}",
    "[1]", '{"n":1}', '"null"', '"1"', '{"x":null}', "null}", "null}{", "1}",
]  # fmt: skip


# What may stand where a value is expected, and looks like one.
ODD_VALUES = (*_ODD_WORDS, *_ODD_NUMBERS, *_ODD)


class WrittenEvents:
    """A drawn shape, and texts of its events."""

    def __init__(self, chance: Random, *, wrapped: bool) -> None:
        self._chance = chance
        self._tail = "}" if wrapped else ""
        self.closing = b"" if wrapped else b"}"
        self.payload = self._object(2)
        # A producer's events have a few forms: which of the objects are null.
        self._forms = [Random(chance.random()) for _ in range(chance.randrange(1, 4))]
        self._states = [form.getstate() for form in self._forms]

    def text(self, *, usual: float) -> bytes:
        """Draw a text; the share `usual` of them is written as usual."""
        chance = self._chance
        form = Random()
        form.setstate(chance.choice(self._states))
        odd = 0.0 if chance.random() < usual else chance.choice([0.08, 0.08, 0.5])
        text = self._members(self.payload, form, odd) + self._tail
        if odd and chance.random() < 0.2:
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(_ODD + _ODD_NUMBERS) + text[at + chance.randrange(3) :]
        data = text.encode()
        return data + b"\xff" if odd and chance.random() < 0.02 else data

    def _object(self, levels: int) -> pa.StructType:
        chance = self._chance
        names = chance.sample(_NAMES, chance.randrange(2, 7))
        return pa.struct([(name, self._kind(levels)) for name in names])

    def _kind(self, levels: int) -> pa.DataType:
        drawn = self._chance.random()
        if levels and drawn < 0.3:
            return self._object(levels - 1)
        return self._chance.choice(_SELDOM if drawn > 0.995 else _KINDS)

    def _written(self, of: pa.DataType, form: Random, odd: float) -> str:
        """Draw a value's text; `odd` is the chance that a value or an object isn't as usual."""
        if pa.types.is_struct(of):
            present = form.random() < 0.8
            return self._members(of, form, odd) if present else "null"
        if self._chance.random() < odd:
            return self._chance.choice(self._odd(of))
        return "null" if self._chance.random() < 0.15 else self._value(of)

    def _odd(self, of: pa.DataType) -> Sequence[str]:
        alike = _ODD_WORDS if pa.types.is_string(of) else _ODD_NUMBERS
        return alike if self._chance.random() < 0.7 else ODD_VALUES

    def _value(self, of: pa.DataType) -> str:
        chance = self._chance
        if pa.types.is_string(of):
            return json.dumps(chance.choice(_WORDS), ensure_ascii=False)
        if pa.types.is_boolean(of):
            return chance.choice(["true", "false"])
        if pa.types.is_integer(of):
            return str(chance.randrange(-(10 ** chance.randrange(19)), 10 ** chance.randrange(20)))
        if pa.types.is_floating(of):
            return json.dumps(chance.choice([0.0, 1.5, -0.25, chance.random(), 1e15, 1e22, 3, -7]))
        if pa.types.is_list(of):
            return chance.choice(["[]", "[1]", "[1,null]"])
        return "12.50" if pa.types.is_decimal(of) else "null"

    def _members(self, of: pa.StructType, form: Random, odd: float) -> str:
        chance = self._chance
        members = []
        for member in of:
            name = json.dumps(member.name, ensure_ascii=chance.random() < odd / 2)
            members.append((name, self._written(member.type, form, odd)))
        if members and chance.random() < odd / 2:
            at = chance.randrange(len(members))
            match chance.randrange(4):
                case 0:
                    del members[at]
                case 1:
                    members.append(members[at])
                case 2:
                    members.insert(at, ('"other"', "1"))
                case _:
                    chance.shuffle(members)
        comma, colon = (", ", ": ") if chance.random() < odd / 2 else (",", ":")
        return "{" + comma.join(f"{name}{colon}{value}" for name, value in members) + "}"
