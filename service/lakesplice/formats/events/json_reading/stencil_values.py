"""The values in the gaps of texts: which are written in the usual form, and their columns.

Usual is what a value's own bytes prove: whole numbers without a leading zero, numbers of a few
digits, texts in quotes without another quote or a backslash, `true`, `false` and `null`. Arrow's
casts of such texts are the conversions that its JSON reader makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.stencil import READABLE, Path, Stencil
from lakesplice.formats.events.json_reading.texts import rows_of, text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask

Bounds = npt.NDArray[np.int32]
# A flag per text and gap.
Marks = npt.NDArray[np.bool_]

_QUOTE, _BACKSLASH, _ZERO, _MINUS, _LETTER_N = b'"\\0-n'
_NULL = b"null"
_WHOLE = r"^-?[0-9]{1,18}$"
_NUMBER = r"^-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?$"
# The bytes with which values of each type in `READABLE` may start, null aside.
_STARTS = (b"-0123456789", b"-0123456789", b"-0123456789", b'"', b"tf")
_WHOLE_BIT, _TEXT_BIT = (1 << READABLE.index(of) for of in (pa.int64(), pa.string()))


def elements(data: Bytes, bounds: Bounds) -> pa.Array:
    """Return the bytes between each two bounds, row by row, without a copy of them. Between two
    rows is one more element, which belongs to no text.
    """
    buffers = [None, pa.py_buffer(np.ascontiguousarray(bounds)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), bounds.size - 1, buffers)


class GapValues:
    """The values in a stencil's gaps: `bounds` has a row per text, as in `stencil_reading.py`."""

    def __init__(self, data: Bytes, bounds: Bounds, stencil: Stencil) -> None:
        self._data = data
        self._bounds = bounds
        self._stencil = stencil
        self._starts, self._ends = bounds[:, 1:-2:2], bounds[:, 2:-1:2]
        self._first = data.take(self._starts)
        # Once the starts are usual, no other value starts so.
        self._null: Marks = self._first == _LETTER_N

    @property
    def usual(self) -> Mask:
        """Mark the texts whose values start and end as usual; nothing is said of what is
        between.
        """
        kinds = _bits_of(self._stencil)
        right = (_START_OF.take(self._first) & kinds) != 0
        last = self._data.take(self._ends - 1)
        right &= (last == _QUOTE) | self._null | (kinds != _TEXT_BIT)
        usual: Mask = right.all(axis=1)
        whole = kinds == _WHOLE_BIT
        text, gap = _places((self._first == _ZERO) & whole)
        usual[text[self._ends[text, gap] - self._starts[text, gap] > 1]] = False
        text, gap = _places((self._first == _MINUS) & whole)
        usual[text[self._data.take(self._starts[text, gap] + 1) == _ZERO]] = False
        text, gap = _places(self._null)
        usual[text[~self._spelt_null(text, gap)]] = False
        return usual

    def _spelt_null(self, text: Integers, gap: Integers) -> Mask:
        """Mark those of some values that are spelt `null`."""
        starts, ends = self._starts[text, gap], self._ends[text, gap]
        spelt: Mask = ends - starts == len(_NULL)
        for place in range(1, len(_NULL)):
            # Near the end of all texts a value that isn't null may be too short.
            spelt &= self._data.take(starts + place, mode="clip") == _NULL[place]
        return spelt

    def columns(self) -> tuple[dict[Path, pa.Array], Mask]:
        """Return a column per gap, and which texts' values were all read; the other texts' are
        arbitrary. All texts must be usual.
        """
        columns: dict[Path, pa.Array] = {}
        read = np.ones(len(self._bounds), np.bool_)
        for kind in READABLE:
            gaps = self._stencil.gaps_of(kind)
            if len(gaps):
                own, sure = self._texts(gaps) if kind == pa.string() else self._fixed(gaps, kind)
                paths = (self._stencil.gaps[gap].path for gap in gaps.tolist())
                columns |= zip(paths, own, strict=True)
                read &= sure
        return columns, read

    def _fixed(self, gaps: Integers, kind: pa.DataType) -> tuple[list[pa.Array], Mask]:
        """Return columns of a type of fixed width, and the texts in which they were read."""
        null = self._null[:, gaps]
        texts = elements(self._data, self._bounds).take(self._chosen(gaps, null))
        values, sure = _CONVERSIONS[kind](texts)
        by_gap = np.ascontiguousarray(values.reshape(null.shape).T)
        columns = [
            pa.array(own, mask=absent if absent.any() else None)
            for own, absent in zip(by_gap, np.ascontiguousarray(null.T), strict=True)
        ]
        read: Mask = np.logical_and.reduce(sure.reshape(null.shape), axis=1)
        return columns, read

    def _texts(self, gaps: Integers) -> tuple[list[pa.Array], Mask]:
        """Return columns of texts, and the texts in which they were read."""
        null = self._null[:, gaps]
        bounds = self._bounds.copy()
        bounds[:, 1 + 2 * gaps] += 1
        bounds[:, 2 + 2 * gaps] -= ~null
        count, many = len(bounds), len(gaps)
        # Row by row first, since that reads the bytes in their order.
        texts = elements(self._data, bounds).take(self._chosen(gaps, null))
        data, offsets = text_bytes(texts)
        sure = np.ones(count, np.bool_)
        other = np.flatnonzero((data == _QUOTE) | (data == _BACKSLASH))
        sure[rows_of(other, offsets) // many] = False
        by_gap = np.arange(count * many, dtype=np.int32).reshape(count, many).T.ravel()
        texts = texts.take(pa.array(by_gap))
        return [texts.slice(at * count, count) for at in range(many)], sure

    def _chosen(self, gaps: Integers, null: Marks) -> pa.Array:
        """Return the numbers of the gaps' elements, row by row; null for values that are null."""
        count, width = self._bounds.shape
        rows = np.arange(0, count * width, width, dtype=np.int32)
        places = rows[:, np.newaxis] + (1 + 2 * gaps.astype(np.int32))
        return pa.array(places.ravel(), mask=null.ravel())


def _places(marks: Marks) -> tuple[Integers, Integers]:
    """Return the text and the gap of each mark."""
    text, gap = np.divmod(np.flatnonzero(marks), marks.shape[1])
    return text, gap


def _bits_of(stencil: Stencil) -> npt.NDArray[np.uint8]:
    """Return for each gap the bit of its type."""
    return np.array([1 << READABLE.index(gap.type) for gap in stencil.gaps], np.uint8)


def _bits_by_start() -> npt.NDArray[np.uint8]:
    """Return for each byte the bits of the types whose values may start with it."""
    found = np.zeros(256, np.uint8)
    for at, allowed in enumerate(_STARTS):
        found[list(allowed)] |= np.uint8(1 << at)
    found[_LETTER_N] = (1 << len(_STARTS)) - 1
    return found


_START_OF = _bits_by_start()


def _whole_numbers(texts: pa.Array) -> tuple[Integers, Mask]:
    sure = np.ones(len(texts), np.bool_)
    try:
        read = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        fitting = pc.match_substring_regex(texts, _WHOLE).fill_null(True)
        read = pc.if_else(fitting, texts, None).cast(pa.int64())
        sure = fitting.to_numpy(zero_copy_only=False)
    return np.frombuffer(read.buffers()[1], np.int64, len(texts)), sure


def _numbers(texts: pa.Array, kind: pa.DataType) -> tuple[npt.NDArray[Any], Mask]:
    fitting = pc.match_substring_regex(texts, _NUMBER).fill_null(True)
    read = pc.if_else(fitting, texts, None) if fitting.false_count else texts
    values = np.frombuffer(read.cast(kind).buffers()[1], kind.to_pandas_dtype(), len(texts))
    return values, fitting.to_numpy(zero_copy_only=False)


def _booleans(texts: pa.Array) -> tuple[Mask, Mask]:
    true, false = (
        pc.equal(texts, spelt).fill_null(spelt == "false").to_numpy(zero_copy_only=False)
        for spelt in ("true", "false")
    )
    return true, true | false


_CONVERSIONS: dict[pa.DataType, Callable[[pa.Array], tuple[npt.NDArray[Any], Mask]]] = {
    pa.int64(): _whole_numbers,
    pa.float64(): partial(_numbers, kind=pa.float64()),
    pa.float32(): partial(_numbers, kind=pa.float32()),
    pa.bool_(): _booleans,
}
