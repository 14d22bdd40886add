"""Reads texts of a shape by stencils that are made of some of them.

Records of one shape may have a few: an insert's event has no row before, and a delete's no row
after. Nothing is remembered from one group of texts to the next: what is read follows from the
texts alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.stencil import Stencil, stencil_of
from lakesplice.formats.events.json_reading.stencil_reading import (
    Fitting,
    SeparatedTexts,
    read_fitting,
)
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import read_payload
from lakesplice.formats.events.json_reading.texts import Refused, read_texts, spans
from lakesplice.model.arrays import Integers, Mask

# A stencil and its check cost as much as it spares for so many texts of 1.4 kB.
TEXTS_MIN = 512
_KNOWN_MAX = 4
# If no more than this part of the texts is left, the JSON reader reads them.
_FEW = 8


class Stencils:
    """Reads texts of one shape by stencils, which it makes of the texts themselves if there are at
    least `texts_min` of them.
    """

    def __init__(self, shape: EventShape, closing: bytes, texts_min: int = TEXTS_MIN) -> None:
        self._shape = shape
        self._closing = closing
        self._texts_min = texts_min
        self._known: list[Stencil] = []

    def read(self, texts: pa.Array, at: Integers) -> tuple[list[Fitting], Integers]:
        """Read those of the texts with these ascending indexes, all safe, that are surely of the
        shape; return also the indexes of the others, about which nothing is said.
        """
        if len(at) < self._texts_min or not self._shape.requires_all:
            return [], at
        found: list[Fitting] = []
        left = np.zeros(len(texts), np.bool_)
        left[at] = True
        for start, end in spans(texts, at):
            asked = int(np.count_nonzero(left[start:end]))
            read = self._read(texts.slice(start, end - start), left[start:end])
            found += (Fitting(fitting.at + start, fitting.rows) for fitting in read)
            if 2 * np.count_nonzero(left[start:end]) > asked:
                break  # what couldn't be read costs more than the parse alone
        return found, np.flatnonzero(left)

    def _read(self, texts: pa.Array, left: Mask) -> list[Fitting]:
        """Read texts, and unmark those that were read among those that are `left`.

        If many are left by the known stencils, new ones are made of some of them.
        """
        separated = SeparatedTexts(texts)
        enough = max(self._texts_min, int(np.count_nonzero(left)) // _FEW)
        found = []
        known, made = list(self._known), 0
        while np.count_nonzero(left) >= enough and (known or made < _KNOWN_MAX):
            if known:
                stencil = known.pop(0)
                fitting = read_fitting(separated, left, stencil)
            else:
                # Any single one may be damaged.
                others = np.flatnonzero(left)
                own = int(others[made * len(others) // _KNOWN_MAX])
                made += 1
                new = self._stencil_of(texts[own].as_py())
                if new is None:
                    continue
                stencil = new
                fitting = self._checked(read_fitting(separated, left, stencil), texts, own)
            if fitting is not None:
                left[fitting.at] = False
                found.append(fitting)
                others_known = (other for other in self._known if other is not stencil)
                self._known = [stencil, *others_known][:_KNOWN_MAX]
        return found

    def _stencil_of(self, text: bytes) -> Stencil | None:
        """Return the stencil of a safe text; None if it has none or isn't of the shape."""
        payload = read_payload(text, self._closing)
        if isinstance(payload, Flaw) or self._shape.check(payload, "payload"):
            return None
        return stencil_of(text, self._shape.payload, self._closing)

    def _checked(self, fitting: Fitting | None, texts: pa.Array, own: int) -> Fitting | None:
        """Return what a new stencil reads if it reads its own text exactly as the JSON reader does;
        otherwise None.
        """
        if fitting is None or own not in fitting.at:
            return None
        place = int(np.searchsorted(fitting.at, own))
        text = texts.slice(own, 1)
        parsed = read_texts(text, self._shape.reading, self._closing, threads=False)
        if isinstance(parsed, Refused) or not fitting.rows.slice(place, 1).equals(parsed):
            return None
        return fitting
