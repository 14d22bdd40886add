"""Stencils: the bytes that texts of one form share, with a gap for each value.

A producer writes the members of its events in one order and without spaces, so two texts of a shape
usually differ only in their values:

    {"before":null,"after":{"id":⎵,"name":⎵},"op":⎵}

A text is that of a stencil if it has these bytes, and in each gap a value that is written in the
usual form: then it is JSON of the shape, and each value is where the stencil says. Nothing has to
be parsed to prove it. A text of which this isn't certain is not wrong: the JSON reader decides
about it.

The gaps of a text are found from the places of `,"`, which must be as many as the stencil has: each
stencil has one between two gaps. A value may contain one, too; then the text has one too many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.object_members import members_in
from lakesplice.model.arrays import Bytes, Integers

Path = tuple[str, ...]
SEPARATOR = b',"'
_NULL = "null"


@dataclass(frozen=True, slots=True)
class Gap:
    """A value's place: the names of the members that lead to it, and its type."""

    path: Path
    type: pa.DataType


@dataclass(frozen=True)
class Stencil:
    """The `gaps` of texts of the type `payload`, and the bytes around them: `pieces` has one more
    than there are gaps, and every piece between two gaps contains a separator.
    """

    payload: pa.StructType
    gaps: tuple[Gap, ...]
    pieces: tuple[bytes, ...]

    @cached_property
    def separators(self) -> int:
        """The number of separators in a text."""
        return sum(piece.count(SEPARATOR) for piece in self.pieces)

    @cached_property
    def anchors(self) -> Integers:
        """The number, within a text, of the first separator of each piece between gaps."""
        counts = [piece.count(SEPARATOR) for piece in self.pieces]
        return np.cumsum(counts)[:-2].astype(np.int64)

    @cached_property
    def leads(self) -> Integers:
        """How many bytes of each piece between gaps come before its first separator."""
        return np.array([piece.index(SEPARATOR) for piece in self.pieces[1:-1]], np.int64)

    @cached_property
    def lengths(self) -> Integers:
        """The length of each piece."""
        return np.array([len(piece) for piece in self.pieces], np.int64)

    @cached_property
    def lengths_min(self) -> Integers:
        """How many bytes a value in each gap has at least; the quotes of a text are two."""
        return np.array([2 if pa.types.is_string(gap.type) else 1 for gap in self.gaps], np.int64)

    @cached_property
    def fixed(self) -> Bytes:
        """The bytes of all pieces."""
        return np.frombuffer(b"".join(self.pieces), np.uint8)

    def gaps_of(self, *kinds: pa.DataType) -> Integers:
        """Return the numbers of the gaps of some types."""
        return np.flatnonzero([gap.type in kinds for gap in self.gaps])


def stencil_of(text: bytes, payload: pa.StructType, closing: bytes) -> Stencil | None:
    """Return the stencil of a text that is valid UTF-8; None if it has none.

    It has none if it isn't of the type `payload` member by member, if it has a member of another
    type than those of `READABLE`, or if a name or a text in it isn't written as usual. `closing`
    completes the text's last brace as in `texts.py`: without it the text has a brace more.
    """
    written = text.decode()
    try:
        gaps = list(_gaps(written, 0, payload, ()))
        end = max(end for _, _, end in members_in(written, 0))
    except (_OtherFormError, ValueError, IndexError, RecursionError):
        return None
    if not gaps or written[end:] != ("}" if closing else "}}"):
        return None
    bounds = [0, *(at for _, start, end in gaps for at in (start, end)), len(written)]
    pieces = tuple(
        written[start:end].encode() for start, end in zip(bounds[::2], bounds[1::2], strict=True)
    )
    values = (written[start:end] for _, start, end in gaps)
    if any("\\" in value or SEPARATOR.decode() in value for value in values):
        return None
    if not all(SEPARATOR in piece for piece in pieces[1:-1]):
        return None
    return Stencil(payload, tuple(gap for gap, _, _ in gaps), pieces)


READABLE = (pa.int64(), pa.float64(), pa.float32(), pa.string(), pa.bool_())


class _OtherFormError(Exception):
    """The text isn't of the shape, or no stencil can show that it is."""


def _gaps(text: str, opening: int, of: pa.StructType, path: Path) -> Iterator[tuple[Gap, int, int]]:
    """Yield the values of an object with their starts and ends. An object or a value that has no
    type and is null has no gap: the null is a part of the stencil.
    """
    names = []
    for name, start, end in members_in(text, opening):
        names.append(name)
        place = of.get_field_index(name)
        if place < 0 or not text.endswith(_as_usual(name), opening, start):
            raise _OtherFormError
        type_, inner = of.field(place).type, (*path, name)
        if pa.types.is_struct(type_) and text[start] == "{":
            within = list(_gaps(text, start, type_, inner))
            if not within:  # it would be read as null
                raise _OtherFormError
            yield from within
        elif pa.types.is_struct(type_) or pa.types.is_null(type_):
            if text[start:end] != _NULL:
                raise _OtherFormError
        elif type_ in READABLE:
            yield Gap(inner, type_), start, end
        else:
            raise _OtherFormError
    if len(names) != of.num_fields or len(set(names)) != len(names):
        raise _OtherFormError


def _as_usual(name: str) -> str:
    """Return how a member's name is written, and the colon after it."""
    return f"{json.dumps(name, ensure_ascii=False)}:"
