"""The stencils by which texts of a shape were read lately, and reading by them.

Records of one shape may have a few: an insert's event has no row before, and a delete's no row
after. They are remembered for each shape, in the process, since a text has to be parsed to make
one. Only the time that reading takes depends on it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.stencil import Stencil, stencil_of
from lakesplice.formats.events.json_reading.stencil_reading import (
    Fitting,
    SeparatedTexts,
    read_fitting,
)
from lakesplice.formats.events.json_reading.texts import spans
from lakesplice.model.arrays import Integers, Mask

# A stencil costs as much as the JSON reader does for so many texts of 1.4 kB.
TEXTS_MIN = 32
_KNOWN_MAX = 4
# If no more than this part of the texts is left, the JSON reader reads them.
_FEW = 8
# How many times texts of a shape aren't read by stencils after hardly any could be.
_PAUSE = 16


class Stencils:
    """Reads texts of one shape by stencils, which it makes of the texts themselves."""

    def __init__(self, payload: pa.StructType, closing: bytes) -> None:
        self._payload = payload
        self._closing = closing
        self._known: list[Stencil] = []
        self._pause = 0

    @classmethod
    def of(cls, payload: pa.StructType, closing: bytes) -> Stencils:
        """Return what this process remembers of the shape."""
        return _remembered(payload, closing)

    def read(self, texts: pa.Array, at: Integers) -> tuple[list[Fitting], Integers]:
        """Read those of the texts with these ascending indexes, all safe, that are surely of the
        shape; return also the indexes of the others, about which nothing is said.
        """
        if len(at) < TEXTS_MIN or self._pause:
            self._pause = max(self._pause - 1, 0)
            return [], at
        found: list[Fitting] = []
        left = np.zeros(len(texts), np.bool_)
        left[at] = True
        for start, end in spans(texts, at):
            asked = int(np.count_nonzero(left[start:end]))
            read = self._read(texts.slice(start, end - start), left[start:end])
            found += (Fitting(fitting.at + start, fitting.rows) for fitting in read)
            if asked >= _FEW * TEXTS_MIN and 2 * np.count_nonzero(left[start:end]) > asked:
                self._pause = _PAUSE
                break
        return found, np.flatnonzero(left)

    def _read(self, texts: pa.Array, left: Mask) -> list[Fitting]:
        """Read texts, and unmark those that were read among those that are `left`.

        If many are left by the known stencils, new ones are made of some of them.
        """
        separated = SeparatedTexts(texts)
        enough = max(TEXTS_MIN, int(np.count_nonzero(left)) // _FEW)
        found = []
        known, made = list(self._known), 0
        while np.count_nonzero(left) >= enough and (known or made < _KNOWN_MAX):
            if known:
                stencil = known.pop(0)
            else:
                # Any single one may be damaged.
                others = np.flatnonzero(left)
                text = texts[int(others[made * len(others) // _KNOWN_MAX])].as_py()
                new = stencil_of(text, self._payload, self._closing)
                made += 1
                if new is None:
                    continue
                stencil = new
            fitting = read_fitting(separated, left, stencil)
            if fitting is not None:
                left[fitting.at] = False
                found.append(fitting)
                self._remember(stencil)
        return found

    def _remember(self, stencil: Stencil) -> None:
        self._known = [stencil, *(s for s in self._known if s is not stencil)][:_KNOWN_MAX]


@lru_cache(maxsize=256)
def _remembered(payload: pa.StructType, closing: bytes) -> Stencils:
    return Stencils(payload, closing)
