"""Expressions as they are written: names, literals and calls of functions.

    expression   name | `any name` | 'text' | "text" | number | function ( expression, … )

A quote within a text is written twice. Functions' names count in any case, columns' as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lakesplice.errors import ConfigurationError

CHARACTERS_MAX = 1_000
DEPTH_MAX = 20

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[^\W\d][\w$]*) | `(?P<quoted>[^`]+)`
    | '(?P<text>(?:[^']|'')*)' | "(?P<double>(?:[^"]|"")*)"
    | (?P<number>-?[0-9]{1,18}) | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d][\w$]*")


@dataclass(frozen=True, slots=True)
class Name:
    """A column of the source."""

    name: str

    def __str__(self) -> str:
        return self.name if _PLAIN.fullmatch(self.name) else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a whole number."""

    value: str | int

    def __str__(self) -> str:
        if isinstance(self.value, int):
            return str(self.value)
        quoted = self.value.replace("'", "''")
        return f"'{quoted}'"


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its name in small letters, of its arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Expression: TypeAlias = Name | Literal | Call


def parse(text: str) -> Expression:
    """Parse an expression; `str` of it is the same expression in its normal form.

    `ConfigurationError` for any other text, and for one that is too long or too deep.
    """
    if len(text) > CHARACTERS_MAX:
        raise ConfigurationError(f"an expression has at most {CHARACTERS_MAX} characters")
    reader = _Reader(text)
    found = reader.expression(0)
    if reader.kind:
        raise reader.problem("the expression is complete before this; remove the rest")
    return found


def columns_of(expression: Expression) -> Iterator[str]:
    """Yield the columns that it needs; some may occur twice."""
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Call):
        # The type in a `cast` is written like a name, but isn't a column.
        inner = expression.arguments[: 1 if expression.function == "cast" else None]
        for argument in inner:
            yield from columns_of(argument)


class _Reader:
    """Moves from token to token; `kind` and `value` are those of the present one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.kind = self.value = ""
        self._next()

    def expression(self, depth: int) -> Expression:
        kind, value = self.kind, self.value
        if depth > DEPTH_MAX or not kind or kind == "mark":
            raise self.problem(
                "an expression must be a column, a 'text', a number or a function(…)"
            )
        self._next()
        if kind == "number":
            return Literal(int(value))
        if kind in ("text", "double"):
            quote = "'" if kind == "text" else '"'
            return Literal(value.replace(quote * 2, quote))
        if kind == "name" and (self.kind, self.value) == ("mark", "("):
            return Call(value.lower(), self._arguments(depth))
        return Name(value)

    def _arguments(self, depth: int) -> tuple[Expression, ...]:
        self._next()
        found: list[Expression] = []
        while self.value != ")" or self.kind != "mark":
            if found:
                self._expect(",")
            found.append(self.expression(depth + 1))
        self._next()
        return tuple(found)

    def _expect(self, mark: str) -> None:
        if (self.kind, self.value) != ("mark", mark):
            raise self.problem(f"{mark} or ) is missing")
        self._next()

    def _next(self) -> None:
        if not self._text[self._at :].strip():
            self.kind = self.value = ""
            self._at = len(self._text)
            return
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self.problem("this isn't an expression")
        self.kind = found.lastgroup or ""
        self.value = found[self.kind]
        self._at = found.end()

    def problem(self, what: str) -> ConfigurationError:
        return ConfigurationError(what, expression=self._text, character=self._at)
