"""If an expected part of a DDL statement is missing, the error names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakesplice.formats.events.ddl.tokens import Token, TokenKind, Tokens, UnreadableError

NAME, NUMBER, SIGN = (
    Token(TokenKind.WORD, "x"),
    Token(TokenKind.NUMBER, "7"),
    Token(TokenKind.SIGN, "("),
)


@pytest.mark.parametrize(
    ("word", "act", "told"),
    [
        (NAME, Tokens.number, "'x' where a number was expected"),
        (Token(TokenKind.NUMBER, "7.5"), Tokens.number, "'7.5' where a number was expected"),
        (SIGN, Tokens.name, "'[(]' where a name was expected"),
        (NUMBER, Tokens.name, "'7' where a name was expected"),
        (NAME, lambda words: words.expect("("), "'x' where [(] was expected"),
        (None, Tokens.number, "ends too soon"),
        (None, Tokens.name, "ends too soon"),
        (None, Tokens.take, "ends too soon"),
    ],
)
def test_another_word_than_expected_is_unreadable(
    word: Token | None, act: Callable[[Tokens], object], told: str
) -> None:
    with pytest.raises(UnreadableError, match=told):
        act(Tokens([] if word is None else [word]))


def test_an_expected_word_is_read() -> None:
    words = Tokens([NAME, NUMBER, SIGN])
    assert (words.name(), words.number()) == ("x", 7)
    words.expect("(")
    assert not words
