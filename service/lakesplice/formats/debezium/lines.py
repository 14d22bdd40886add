"""Many JSON texts read in one go, each row tied to its text by proof.

Texts are joined as lines `{"i":<row>,"p":<text>}` and read by pyarrow.json with an explicit schema in
which an unknown field is an error. Why a row then is its text's:

- No text that is joined holds a line break, a control character or anything but UTF-8
  (`unsafe_texts`), and the reader refuses a line break within a string. So at each line's end it is
  between two tokens, the last of which is the wrapper's `}`; the next is `{`, and `}{` is legal only
  between two rows. So every line is a whole number of rows, and as many rows as lines means one each.
- A line that is one row `{"i":…,"p":…}` without an unknown or repeated field has the text as the one
  value of `p`. Column `i` must equal 0..n-1 besides.
- A text could still close the wrapper early and go on with `null`, which the reader of pyarrow 26
  takes for a row, and on which it crashes where nothing stands before it. So `}` followed by what
  could start a row is unsafe too, though legal within a string.

Unsafe texts are read one by one first (`strict.py`). An absent field reads as null, like a null one:
`proof.py` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

# Small enough to fail cheaply, large enough that a read's own 0.3 ms don't count (benchmarks/decode.py).
BLOCK_ROWS_MAX = 4096
BLOCK_BYTES_MAX = 32 << 20
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
    """Return the text that each byte position lies in; empty texts hold no byte."""
    return np.searchsorted(offsets, positions, side="right") - 1


def unsafe_texts(texts: pa.Array) -> Mask:
    """Mark the texts that mustn't be joined unseen, empty ones among them."""
    data, offsets = text_bytes(texts)
    lengths = np.diff(offsets)
    unsafe: Mask = lengths == 0
    unsafe[~unsafe] = data[offsets[1:][~unsafe] - 1] != _BRACE_CLOSE
    control = data < _CONTROL_END
    if control.any():
        unsafe[rows_of(np.flatnonzero(control), offsets)] = True
    closed = np.flatnonzero(data[:-1] == _BRACE_CLOSE)
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
        return np.fromiter((not _is_unicode(t.as_buffer()) for t in texts), np.bool_, len(texts))
    return np.zeros(len(texts), np.bool_)


def _is_unicode(data: pa.Buffer) -> bool:
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def blocks(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """Cut texts into half-open ranges that are read at once."""
    _, offsets = text_bytes(texts)
    start = 0
    while start < len(texts):
        by_bytes = int(np.searchsorted(offsets, offsets[start] + BLOCK_BYTES_MAX, side="right")) - 1
        end = max(start + 1, min(start + BLOCK_ROWS_MAX, by_bytes, len(texts)))
        yield start, end
        start = end


@lru_cache(maxsize=1)
def _row_numbers() -> pa.Array:
    return pa.array([b"%d" % row for row in range(BLOCK_ROWS_MAX)], pa.binary())


@lru_cache(maxsize=1024)
def _parse_options(payload: pa.DataType) -> arrow_json.ParseOptions:
    schema = pa.schema([("i", pa.int64()), ("p", payload)])
    return arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")


def read_texts(
    texts: pa.Array, payload: pa.DataType, closing: bytes, *, threads: bool
) -> pa.Array | None:
    """Read at most `BLOCK_ROWS_MAX` safe texts as rows of `payload`; None if any of them is no such row.

    `closing` completes the wrapper: `}`, or nothing where each text brings it.
    """
    lines = pc.binary_join_element_wise(
        b'{"i":', _row_numbers().slice(0, len(texts)), b',"p":', texts, closing + b"\n", b""
    )
    joined, _ = text_bytes(lines)
    size = len(joined) + _WRAPPER_BYTES
    options = arrow_json.ReadOptions(use_threads=threads, block_size=size)
    try:
        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(joined)), options, _parse_options(payload)
        )
    except pa.ArrowInvalid:
        return None
    numbers = table.column("i")
    if len(table) != len(texts) or numbers.null_count:
        return None
    if not np.array_equal(numbers.to_numpy(), np.arange(len(texts))):
        return None
    return table.column("p").combine_chunks()
