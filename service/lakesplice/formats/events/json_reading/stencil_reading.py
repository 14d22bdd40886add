"""Reads texts by a stencil: finds the gaps of many texts at once, and which texts have the bytes
between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.stencil import SEPARATOR, Path, Stencil
from lakesplice.formats.events.json_reading.stencil_values import Bounds, GapValues, elements
from lakesplice.formats.events.json_reading.texts import pairs_of, text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask


@dataclass(frozen=True, slots=True)
class Fitting:
    """The texts that are a stencil's: their indexes, ascending, and their payloads."""

    at: Integers
    rows: pa.StructArray


class SeparatedTexts:
    """The bytes of some texts, and where their separators are."""

    def __init__(self, texts: pa.Array) -> None:
        self.data, self.offsets = text_bytes(texts)
        self.places = pairs_of(self.data, *SEPARATOR)
        self.firsts = np.searchsorted(self.places, self.offsets)


def read_fitting(texts: SeparatedTexts, candidates: Mask, stencil: Stencil) -> Fitting | None:
    """Read those of the candidates that are surely the stencil's; None if there are none.

    Candidates must be safe (`texts.py`).
    """
    data = texts.data
    at, bounds = _bounds(texts, candidates, stencil)
    if not len(at):
        return None
    kept = _fixed_alike(data, bounds, stencil)
    if not kept.any():
        return None
    at, bounds = (at, bounds) if kept.all() else (at[kept], bounds[kept])
    values = GapValues(data, bounds, stencil)
    kept = values.usual
    if not kept.any():
        return None
    if not kept.all():
        at, values = at[kept], GapValues(data, bounds[kept], stencil)
    columns, read = values.columns()
    rows = _payload(columns, stencil.payload, len(at), ())
    if read.all():
        return Fitting(at, rows)
    return Fitting(at[read], rows.filter(pa.array(read))) if read.any() else None


def _bounds(texts: SeparatedTexts, candidates: Mask, stencil: Stencil) -> tuple[Integers, Bounds]:
    """Return the candidates with as many separators as the stencil, and where their pieces and gaps
    are if they are the stencil's: the start of the text, start and end of each gap, and the end of
    the text.
    """
    places, firsts, offsets = texts.places, texts.firsts, texts.offsets
    at = np.flatnonzero(candidates & (np.diff(firsts) == stencil.separators))
    gaps = len(stencil.gaps)
    if not len(at):
        return at, np.empty((0, 2 * gaps + 2), np.int32)
    bounds = np.empty((len(at), 2 * gaps + 2), np.int32)
    if len(at) * stencil.separators == len(places):
        anchors = places.reshape(len(at), -1)[:, stencil.anchors]
    else:
        anchors = places[firsts[at][:, np.newaxis] + stencil.anchors]
    bounds[:, 0] = offsets[at]
    bounds[:, 1] = offsets[at] + stencil.lengths[0]
    bounds[:, 2:-2:2] = anchors - stencil.leads
    bounds[:, 3:-2:2] = anchors + (stencil.lengths[1:-1] - stencil.leads)
    bounds[:, -1] = offsets[at + 1]
    bounds[:, -2] = bounds[:, -1] - stencil.lengths[-1]
    filled = (bounds[:, 2:-1:2] - bounds[:, 1:-2:2] >= stencil.lengths_min).all(axis=1)
    return (at, bounds) if filled.all() else (at[filled], bounds[filled])


def _fixed_alike(data: Bytes, bounds: Bounds, stencil: Stencil) -> Mask:
    """Mark the texts that have the stencil's bytes between their gaps."""
    pieces = elements(data, bounds).take(pa.array(np.arange(0, bounds.size, 2)))
    found, _ = text_bytes(pieces)
    same: Mask = (found.reshape(len(bounds), -1) == stencil.fixed).all(axis=1)
    return same


def _payload(
    columns: Mapping[Path, pa.Array], of: pa.StructType, count: int, path: Path
) -> pa.StructArray:
    """Return objects made of the columns of their members' gaps; members without gaps are null."""
    members = []
    for member in of:
        inner = (*path, member.name)
        if inner in columns:
            members.append(columns[inner])
        elif pa.types.is_struct(member.type) and any(p[: len(inner)] == inner for p in columns):
            members.append(_payload(columns, member.type, count, inner))
        else:
            members.append(pa.nulls(count, member.type))
    return pa.StructArray.from_arrays(members, fields=list(of))
