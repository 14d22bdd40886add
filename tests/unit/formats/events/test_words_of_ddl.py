"""If an expected part of a DDL statement is missing, the error names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakesplice.formats.events.ddl.words import Kind, UnreadableError, Word, Words

NAME, NUMBER, SIGN = Word(Kind.WORD, "x"), Word(Kind.NUMBER, "7"), Word(Kind.SIGN, "(")


@pytest.mark.parametrize(
    ("word", "act", "told"),
    [
        (NAME, Words.number, "'x' where a number was expected"),
        (Word(Kind.NUMBER, "7.5"), Words.number, "'7.5' where a number was expected"),
        (SIGN, Words.name, "'[(]' where a name was expected"),
        (NUMBER, Words.name, "'7' where a name was expected"),
        (NAME, lambda words: words.expect("("), "'x' where [(] was expected"),
        (None, Words.number, "ends too soon"),
        (None, Words.name, "ends too soon"),
        (None, Words.take, "ends too soon"),
    ],
)
def test_another_word_than_expected_is_unreadable(
    word: Word | None, act: Callable[[Words], object], told: str
) -> None:
    with pytest.raises(UnreadableError, match=told):
        act(Words([] if word is None else [word]))


def test_what_is_expected_is_read() -> None:
    words = Words([NAME, NUMBER, SIGN])
    assert (words.name(), words.number()) == ("x", 7)
    words.expect("(")
    assert not words
