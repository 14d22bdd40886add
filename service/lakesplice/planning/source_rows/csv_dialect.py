"""Checks that a CSV file is written in the dialect in which it is read.

A reader of CSV accepts any bytes: a quote that nothing closes hides all rows behind it, and the
escapes of other dialects become part of the values. So quotes are checked as RFC 4180 (section 2)
has them: a quoted value begins and ends where a value does, and quotes in it are doubled. A
backslash is a character like others; but a file that writes NULL as `\\N` may use it to escape,
and what it writes as nothing may be an empty text. The word NULL without quotes may be a text, or
the NULL of a file without escapes. A last line without an end may have been cut off; besides, Arrow
(pyarrow 26) reads the NULL at the end of `"1",` as an empty text there.
"""

from __future__ import annotations

import numpy as np

from lakesplice.model.arrays import Bytes, Integers

_QUOTE, _BACKSLASH, _LETTER_N = b'"\\N'
_COMMA = b","[0]
_WORD = b"NULL"
_BEFORE, _BEHIND = 1, len(_WORD)
_LINE_ENDS = b"\r\n"
_ORDER_MARK = b"\xef\xbb\xbf"
# Where a value begins or ends; beside another quote, a quote is one of two that stand for one.
_EDGE = np.zeros(256, np.bool_)
_EDGE[[*_LINE_ENDS, *b","]] = True
_LINE_END = _EDGE.copy()
_LINE_END[_COMMA] = False
_EDGE_OR_QUOTE = _EDGE.copy()
_EDGE_OR_QUOTE[_QUOTE] = True


class CsvDialect:
    """Looks at a file's bytes, in order. Not thread-safe."""

    def __init__(self) -> None:
        self._held = b"\n"  # the last byte that was looked at, and those behind it
        self._begun = self._is_open = self._has_stray_quote = False
        self._nulls = self._backslashes = self._words = self._empty_values = 0
        self._last = _LINE_ENDS[:1]

    def feed(self, data: bytes) -> None:
        """Look at the next bytes; the first are three or more, unless the file has fewer."""
        if not self._begun:
            data = data.removeprefix(_ORDER_MARK)
        self._begun = True
        self._last = data[-1:] or self._last
        self._look(self._held + data)

    def flaw(self) -> str:
        """End the file; return why it isn't read in its dialect, "" if it is."""
        self._look(self._held + b"\n" * _BEHIND)
        if self._has_stray_quote:
            return (
                "a quote is neither around a whole value nor doubled within one, as RFC 4180 has"
                " it; write quotes in values twice"
            )
        if self._is_open:
            return "a quoted value doesn't end; write the file again"
        if self._last not in _LINE_ENDS:
            return "its last line has no end, so it may have been cut off; end it with a newline"
        if self._nulls and self._backslashes:
            return (
                "NULL is \\N, so other backslashes may be escapes, as those of INTO OUTFILE; write"
                " NULL as nothing, and backslashes as they are"
            )
        if self._nulls and self._empty_values:
            return (
                "NULL is \\N, so a value that is nothing may be an empty text; write empty texts as"
                " two quotes"
            )
        if self._words and not self._nulls:
            return (
                "the word NULL without quotes may be a NULL or a text; write NULL as nothing, and"
                " texts with quotes"
            )
        return ""

    def _look(self, held: bytes) -> None:
        data = np.frombuffer(held, np.uint8)
        stop = max(len(data) - _BEHIND, _BEFORE)
        self._held = held[stop - _BEFORE :]
        quotes = _places(data, stop, _QUOTE)
        at = _places(data, stop, _BACKSLASH)
        alone = _EDGE[data[at - 1]] & (data[at + 1] == _LETTER_N) & _EDGE[data[at + 2]]
        self._nulls += int(np.count_nonzero(alone))
        self._backslashes += int(np.count_nonzero(~alone))
        at = self._unquoted(_places(data, stop, _LETTER_N), quotes)
        words = _EDGE[data[at - 1]] & _EDGE[data[at + len(_WORD)]]
        for behind, letter in enumerate(_WORD):
            words &= data[at + behind] == letter
        self._words += int(np.count_nonzero(words))
        at = self._unquoted(_places(data, stop, _COMMA), quotes)
        empty = _EDGE[data[at - 1]] | _LINE_END[data[at + 1]]
        self._empty_values += int(np.count_nonzero(empty))
        self._look_at_quotes(data, quotes)

    def _unquoted(self, at: Integers, quotes: Integers) -> Integers:
        """The places that are in no quoted value."""
        places: Integers = at[(np.searchsorted(quotes, at) + self._is_open) % 2 == 0]
        return places

    def _look_at_quotes(self, data: Bytes, at: Integers) -> None:
        first = int(self._is_open)
        opening, closing = at[first::2], at[1 - first :: 2]
        sound = _EDGE_OR_QUOTE[data[opening - 1]].all() and _EDGE_OR_QUOTE[data[closing + 1]].all()
        self._has_stray_quote = self._has_stray_quote or not sound
        self._is_open ^= bool(len(at) % 2)


def _places(data: Bytes, stop: int, sign: int) -> Integers:
    return _BEFORE + np.flatnonzero(data[_BEFORE:stop] == sign)
