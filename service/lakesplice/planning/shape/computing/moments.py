"""Parts of dates and moments, and how they are written.

A moment's parts are those of UTC, which for MySQL's DATETIME is the wall clock that it holds.

A pattern's letters: `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, `SSS` (milliseconds), `SSSSSS`
(microseconds), each that often. Letters between single quotes, and all other characters, stand for
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import ConfigurationError
from lakesplice.model.types import ColumnType, Primitive

_NAIVE = pa.timestamp("us")
_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def part(values: pa.Array, of: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return a part, such as `pc.year`, of dates or moments, as integers."""
    return of(clock(values)).cast(pa.int32())


def clock(values: pa.Array) -> pa.Array:
    """Return moments as the clock in UTC shows them, so that no table of time zones is needed."""
    return values.view(_NAIVE) if pa.types.is_timestamp(values.type) else values


@dataclass(frozen=True, slots=True)
class Pattern:
    """How a moment is written: literal texts, and letters of the table above."""

    parts: tuple[tuple[str, bool], ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern; `ConfigurationError` for unknown letters."""
        parts = tuple(_parts(text))
        unknown = [letters for letters, is_field in parts if is_field and letters not in _FIELDS]
        if unknown:
            known = ", ".join(_FIELDS)
            raise ConfigurationError(
                f"a date's pattern has {known}, and other letters in quotes",
                pattern=text,
                unknown=unknown[0],
            )
        return cls(parts)

    def check(self, kind: ColumnType) -> None:
        """Raise `ConfigurationError` if it contains the time of a date."""
        late = [letters for letters, is_field in self.parts if is_field and letters not in _OF_DATE]
        if kind.kind is Primitive.DATE and late:
            raise ConfigurationError("a date has no time to write", unknown=late[0])

    def written(self, values: pa.Array) -> pa.Array:
        """Return dates or moments as texts."""
        values = clock(values)
        texts = [
            _FIELDS[text](values) if is_field else pa.scalar(text) for text, is_field in self.parts
        ]
        if not any(is_field for _, is_field in self.parts):
            texts.append(pc.if_else(values.is_valid(), pa.scalar(""), pa.scalar(None, pa.string())))
        return pc.binary_join_element_wise(*texts, "")


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    at = 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise ConfigurationError("a quote in a date's pattern is not closed", pattern=text)
        if found[1] is not None:
            yield found[1].replace("''", "'") or "'", False
        else:
            yield found[0], found[2] is not None
        at = found.end()


def _digits(of: Callable[[pa.Array], pa.Array], width: int) -> Callable[[pa.Array], pa.Array]:
    return lambda values: pc.utf8_lpad(of(values).cast(pa.string()), width, "0")


def _microseconds(values: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(pc.millisecond(values), 1_000), pc.microsecond(values))


_FIELDS = {
    "yyyy": _digits(pc.year, 4),
    "MM": _digits(pc.month, 2),
    "dd": _digits(pc.day, 2),
    "HH": _digits(pc.hour, 2),
    "mm": _digits(pc.minute, 2),
    "ss": _digits(pc.second, 2),
    "SSS": _digits(pc.millisecond, 3),
    "SSSSSS": _digits(_microseconds, 6),
}
_OF_DATE = ("yyyy", "MM", "dd")
