"""Reads many JSON texts at once, with proof of which text each row comes from.

Texts are joined as lines `{"i":<row>,"p":<text>}` and read by pyarrow.json with an explicit schema,
in which an unknown field is an error. Each row then belongs to its text, because:

- A joined text has no line break or control character and is UTF-8 (`unsafe_texts`), and the reader
  refuses a line break within a string. So at the end of each line the reader is between two tokens:
  the last one is the wrapper's `}`, the next one is `{`, and `}{` is allowed only between two rows.
  So every line has a whole number of rows; if there are as many rows as lines, each line is one
  row.
- A line that is one row `{"i":…,"p":…}` without an unknown or repeated field has the text as the
  only value of `p`. In addition column `i` must equal 0..n-1.
- A text could still close the wrapper early and continue with `null`. The reader of pyarrow 26
  reads this as a row, and crashes if there is nothing before it. So `}` followed by anything that
  could start a row is unsafe too, although it is allowed within a string.

Unsafe texts are read one by one first (`strict.py`). An absent field is read as null, like a null
one: `null_proof.py` distinguishes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from lakesplice.model.arrays import Bytes, Integers, Mask

# Small enough to fail cheaply, large enough that the fixed 0.3 ms of a read don't matter
# (benchmarks/decode.py).
BLOCK_ROWS_MAX = 4096
BLOCK_BYTES_MAX = 32 << 20
_WINDOW_BYTES = 1 << 17
_WRAPPER_BYTES = 64
_CONTROL_END = 0x20
_BRACE_OPEN, _BRACE_CLOSE, _SPACE, _LETTER_N = b"{} n"


def text_bytes(texts: pa.Array) -> tuple[Bytes, Integers]:
    """Return a binary array's bytes and its n + 1 offsets into them."""
    _, offset_buffer, data = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset :][: len(texts) + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    if start == end:
        return np.empty(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    return np.frombuffer(data, np.uint8)[start:end], offsets.astype(np.int64) - start


def rows_of(positions: Integers, offsets: Integers) -> Integers:
    """Return for each byte offset the index of its text; empty texts contain no byte."""
    return np.searchsorted(offsets, positions, side="right") - 1


def positions_of(data: Bytes, byte: int) -> Integers:
    """Return the offsets of a byte, ascending."""
    return _found(data, lambda window: window == byte, 0)


def pairs_of(data: Bytes, first: int, second: int) -> Integers:
    """Return the offsets of a byte that is followed by another one, ascending."""
    return _found(data, lambda window: (window[:-1] == first) & (window[1:] == second), 1)


def _below(data: Bytes, byte: int) -> Integers:
    """Return the offsets of smaller bytes, ascending; there are seldom any."""
    return _found(
        data, lambda window: window < byte if window.min() < byte else np.empty(0, np.bool_), 0
    )


def _found(data: Bytes, holds: Callable[[Bytes], Mask], more: int) -> Integers:
    """Return the offsets where a test is true; the test looks at `more` bytes after the first
    one.
    """
    # The data is searched in windows that fit into the processor's cache; temporary arrays of all
    # data would cost more than the search.
    found = [
        np.flatnonzero(holds(data[start : start + _WINDOW_BYTES + more])) + start
        for start in range(0, len(data), _WINDOW_BYTES)
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def unsafe_texts(texts: pa.Array) -> Mask:
    """Mark the texts that must not be joined without a check, empty texts included."""
    data, offsets = text_bytes(texts)
    lengths = np.diff(offsets)
    unsafe: Mask = lengths == 0
    unsafe[~unsafe] = data[offsets[1:][~unsafe] - 1] != _BRACE_CLOSE
    unsafe[rows_of(_below(data, _CONTROL_END), offsets)] = True
    closed = positions_of(data, _BRACE_CLOSE)
    # The byte after a text's last brace belongs to another text.
    closed = closed[closed < len(data) - 1]
    following = data[closed + 1]
    restart = (following == _BRACE_OPEN) | (following == _LETTER_N) | (following == _SPACE)
    suspects = closed[restart]
    rows = rows_of(suspects, offsets)
    unsafe[rows[suspects + 1 < offsets[rows + 1]]] = True
    return unsafe | _not_unicode(texts)


def _not_unicode(texts: pa.Array) -> Mask:
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        broken = (text.is_valid and not _is_unicode(text.as_buffer()) for text in texts)
        return np.fromiter(broken, np.bool_, len(texts))
    return np.zeros(len(texts), np.bool_)


def _is_unicode(data: pa.Buffer) -> bool:
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def blocks(texts: pa.Array, at: Integers) -> Iterator[tuple[pa.Array, Integers]]:
    """Yield the texts with these ascending indexes, and the indexes, in portions that are read at
    once.

    A portion is copied only if it leaves texts out; without portions all texts would be copied.
    """
    for first, last in spans(texts, at):
        places = at[np.searchsorted(at, first) : np.searchsorted(at, last)]
        span = texts.slice(first, last - first)
        yield span if len(span) == len(places) else span.take(pa.array(places - first)), places


def spans(texts: pa.Array, at: Integers) -> Iterator[tuple[int, int]]:
    """Yield the bounds, among all texts, of portions of the texts with these ascending indexes."""
    _, offsets = text_bytes(texts)
    starts, ends = offsets[at], offsets[at + 1]
    start = 0
    while start < len(at):
        by_bytes = int(np.searchsorted(ends, starts[start] + BLOCK_BYTES_MAX, side="right"))
        end = max(start + 1, min(start + BLOCK_ROWS_MAX, by_bytes, len(at)))
        yield int(at[start]), int(at[end - 1]) + 1
        start = end


@dataclass(frozen=True, slots=True)
class Refused:
    """Why texts couldn't be read at once: the reader's message, empty if it gave none."""

    message: str = ""


@lru_cache(maxsize=1)
def _row_numbers() -> pa.Array:
    return pa.array([b"%d" % row for row in range(BLOCK_ROWS_MAX)], pa.binary())


def parse_options(payload: pa.DataType) -> arrow_json.ParseOptions:
    """Return the reader's options for lines whose texts have the type `payload`."""
    schema = pa.schema([("i", pa.int64()), ("p", payload)])
    return arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")


def read_texts(
    texts: pa.Array, parsing: arrow_json.ParseOptions, closing: bytes, *, threads: bool
) -> pa.Array | Refused:
    """Read at most `BLOCK_ROWS_MAX` safe texts as rows, unless any of them isn't such a row.

    `closing` completes the wrapper: `}`, or nothing if each text ends with it.
    """
    lines = pc.binary_join_element_wise(
        b'{"i":', _row_numbers().slice(0, len(texts)), b',"p":', texts, closing + b"\n", b""
    )
    joined, _ = text_bytes(lines)
    size = len(joined) + _WRAPPER_BYTES
    options = arrow_json.ReadOptions(use_threads=threads, block_size=size)
    try:
        table = arrow_json.read_json(pa.BufferReader(pa.py_buffer(joined)), options, parsing)
    except pa.ArrowInvalid as error:
        return Refused(str(error))
    numbers = table.column("i")
    if len(table) != len(texts) or numbers.null_count:
        return Refused()
    if not np.array_equal(numbers.to_numpy(), np.arange(len(texts))):
        return Refused()
    return table.column("p").combine_chunks()
