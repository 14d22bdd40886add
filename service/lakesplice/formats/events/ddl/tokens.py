"""Splits statements into words and reads them one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import sqlglot
from sqlglot.errors import SqlglotError

_OPEN, _CLOSE = "(", ")"
# Quoted text is kept; the content of a comment that servers execute (from some version on) counts
# as a statement.
_EXECUTED = re.compile(
    r"(?P<kept>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`)"
    r"|/\*M?!\d{0,6}(?P<inside>.*?)\*/",
    re.DOTALL,
)


class TokenKind(Enum):
    """What a word is."""

    WORD = "word"
    QUOTED = "quoted"
    TEXT = "text"
    NUMBER = "number"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """A word: a keyword or plain name, a name in backticks, a text, a number or a sign."""

    kind: TokenKind
    text: str

    @property
    def key(self) -> str:
        """The word as a keyword or sign; empty if it is neither."""
        return self.text.upper() if self.kind in (TokenKind.WORD, TokenKind.SIGN) else ""


class UnreadableError(Exception):
    """The words aren't what was expected; contains the reason."""


def statements(sql: str) -> Iterator[list[Token]]:
    """Yield the words of each statement, without comments except those that servers execute.
    `UnreadableError` if it is no SQL.
    """
    found: list[Token] = []
    executed = _EXECUTED.sub(lambda part: part["kept"] or f" {part['inside']} ", sql)
    for word in _words(executed if "/*" in sql else sql):
        if word.kind is TokenKind.SIGN and word.text == ";":
            if found:
                yield found
            found = []
        else:
            found.append(word)
    if found:
        yield found


def _words(sql: str) -> Iterator[Token]:
    try:
        tokens = sqlglot.tokenize(sql, read="mysql")
    except (SqlglotError, ValueError) as error:
        raise UnreadableError(str(error).splitlines()[0]) from error
    after = None
    for token in tokens:
        kind = token.token_type.name
        if kind == "STRING" and after == "RENAME":
            # What follows isn't in the library's grammar: it gives the rest as one text.
            yield from _words(token.text)
        elif kind == "IDENTIFIER":
            yield Token(TokenKind.QUOTED, token.text)
        elif kind == "STRING":
            yield Token(TokenKind.TEXT, token.text)
        elif kind == "NUMBER":
            yield Token(TokenKind.NUMBER, token.text)
        elif token.text[:1].isalnum() or token.text[:1] in "_$@":
            for part in token.text.split():
                yield Token(TokenKind.WORD, part)
        else:
            yield Token(TokenKind.SIGN, token.text)
        after = token.text.upper() if kind != "STRING" else None


class Tokens:
    """A place in a sequence of words. A word that is expected and missing raises
    `UnreadableError`.
    """

    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._words)

    @property
    def next(self) -> Token:
        """The word at this place; after the last one a sign without text."""
        return self._words[self._at] if self else Token(TokenKind.SIGN, "")

    def take(self) -> Token:
        """Return the word and continue."""
        word = self.next
        if not self:
            raise UnreadableError("the statement ends too soon")
        self._at += 1
        return word

    def accept(self, *keys: str) -> bool:
        """Move past these keywords or signs if all of them follow."""
        if not self.follow(*keys):
            return False
        self._at += len(keys)
        return True

    def follow(self, *keys: str) -> bool:
        """Whether these keywords or signs follow."""
        following = self._words[self._at : self._at + len(keys)]
        return [word.key for word in following] == list(keys)

    def has(self, *keys: str) -> bool:
        """Whether these keywords or signs follow one another anywhere from here on."""
        found = [word.key for word in self._words[self._at :]]
        return any(
            found[at : at + len(keys)] == list(keys) for at in range(len(found) - len(keys) + 1)
        )

    def expect(self, *keys: str) -> None:
        """Move past these keywords or signs; they must follow."""
        if not self.accept(*keys):
            raise UnreadableError(f"{self.next.text!r} where {' '.join(keys)} was expected")

    def name(self) -> str:
        """Return a name and continue."""
        word = self.take()
        if word.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise UnreadableError(f"{word.text!r} where a name was expected")
        return word.text

    def number(self) -> int:
        """Return a whole number and continue."""
        word = self.take()
        if word.kind is not TokenKind.NUMBER or not word.text.isdecimal():
            raise UnreadableError(f"{word.text!r} where a number was expected")
        return int(word.text)

    @property
    def is_sort_key(self) -> bool:
        """Whether the rest is one of several names after ORDER BY."""
        rest = self._words[self._at :]
        return len(rest) == 1 or (len(rest) == 2 and rest[1].key in ("ASC", "DESC"))

    def parts(self) -> list[Tokens]:
        """Split the rest at commas outside of brackets."""
        found: list[list[Token]] = [[]]
        depth = 0
        while self:
            word = self.take()
            depth += (word.key == _OPEN) - (word.key == _CLOSE)
            if depth < 0:
                raise UnreadableError("a bracket closes that never opened")
            if word.key == "," and not depth:
                found.append([])
            else:
                found[-1].append(word)
        if depth:
            raise UnreadableError("a bracket never closes")
        return [Tokens(part) for part in found]

    def bracketed(self) -> Tokens:
        """Return the words in the brackets that open here, and move past them."""
        self.expect(_OPEN)
        inner: list[Token] = []
        depth = 1
        while depth:
            word = self.take()
            depth += (word.key == _OPEN) - (word.key == _CLOSE)
            inner.append(word)
        return Tokens(inner[:-1])

    def skip_bracketed(self) -> None:
        """Move past brackets, if any open here."""
        if self.next.key == _OPEN:
            self.bracketed()
