"""Reads the records of one shape: by stencils (`stencil.py`) those that are written as is usual,
the others fast if a block can be read at once, otherwise strictly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.bad_texts import (
    WrongStarts,
    matching,
    starting_right,
)
from lakesplice.formats.events.json_reading.stencils import TEXTS_MIN, Stencils
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import ReadTexts, Template, read_payload
from lakesplice.formats.events.json_reading.texts import (
    Refused,
    blocks,
    read_texts,
    unsafe_texts,
)
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Mask

TextFilter = Callable[[pa.Array], pa.Array]
_END = (1 << 31) - 2
_LINE_BREAKS = bytes.maketrans(b"\r\n\t", b"   ")


@dataclass
class _Reader:
    texts: pa.Array
    own: int
    template: Template
    threads: bool
    stencil_min: int
    pieces: list[ReadTexts] = field(default_factory=list)
    slow: list[Integers] = field(default_factory=list)
    flaws: dict[int, Flaw] = field(default_factory=dict)
    suspicious: bool = False
    has_learnt: bool = False
    refusal: str = ""

    def __post_init__(self) -> None:
        payload, closing = self.template.shape.payload, self.template.closing
        self.wrong_starts = WrongStarts.of(payload)
        self.screens: tuple[TextFilter, ...] = (
            partial(starting_right, payload=payload),
            partial(matching, payload=payload, closing=closing),
        )

    def read(self, texts: pa.Array) -> pa.Array | None:
        template = self.template
        read = read_texts(texts, template.shape.reading, template.closing, threads=self.threads)
        if isinstance(read, Refused):
            self.refusal = read.message
            return None
        return read

    def by_stencils(self, at: Integers) -> Integers:
        """Read the safe texts with the indexes `at` that are written as is usual; return the
        others.
        """
        shape, closing = self.template.shape, self.template.closing
        found, left = Stencils(shape, closing, self.stencil_min).read(self.texts, at)
        self.pieces += (ReadTexts(fitting.at, fitting.rows) for fitting in found)
        return left

    def fast(self, at: Integers, *, patient: bool) -> None:
        """Read the safe texts with the indexes `at`; those that can't be read or proven are left
        for the strict reading.

        Texts that don't look like the shape are left for it only if `patient`.
        """
        if self.wrong_starts:
            # Texts that aren't among those to read may be null. To search them costs more than a
            # copy of those to read.
            few = len(at) <= len(self.texts) // 2
            searched = self.texts.take(pa.array(at)) if few else self.texts
            marked = _as_mask(self.wrong_starts.starting_right(searched).fill_null(False))
            similar = marked if few else marked[at]
            if similar.all():
                self.wrong_starts.forget()
            self._leave(at[~similar], self.wrong_starts.starting_right, patient=patient)
            at = at[similar]
        for texts, places in blocks(self.texts, at):
            self._fast_block(texts, places, patient=patient)

    def _fast_block(self, texts: pa.Array, at: Integers, *, patient: bool) -> None:
        # Damaged records often come together: after a block that couldn't be read, the next ones
        # are screened first.
        screen = self.wrong_starts.starting_right
        if self.has_learnt and not self.suspicious:
            texts, at = self._screened(screen, texts, at, patient=patient)
        rows = None if self.suspicious else self.read(texts)
        while rows is None and not self.suspicious and self.wrong_starts.learn(self.refusal):
            self.has_learnt = True
            texts, at = self._screened(screen, texts, at, patient=patient)
            rows = self.read(texts)
        for recognises_shape in self.screens:
            if rows is not None or not len(at):
                break
            self.suspicious = True
            texts, at = self._screened(recognises_shape, texts, at, patient=patient)
            rows = self.read(texts) if len(at) else None
        if rows is None:
            self.slow.append(at)
            return
        evidence = self.template.shape.prove(texts, rows)
        notes = evidence.notes
        if evidence.unproven.any():
            proven = ~evidence.unproven
            self.slow.append(at[evidence.unproven])
            rows, at = rows.filter(pa.array(proven)), at[proven]
            notes = None if notes is None else notes.filter(pa.array(proven))
        self.pieces.append(ReadTexts(at, rows, notes=notes))

    def _screened(
        self, recognises_shape: TextFilter, texts: pa.Array, at: Integers, *, patient: bool
    ) -> tuple[pa.Array, Integers]:
        similar = recognises_shape(texts)
        if similar.true_count == len(at):
            return texts, at
        mask = _as_mask(similar)
        self._leave(at[~mask], recognises_shape, patient=patient)
        return texts.filter(similar), at[mask]

    def _leave(self, at: Integers, recognises_shape: TextFilter, *, patient: bool) -> None:
        """Leave texts that a screen doesn't recognise for the strict reading or another template.

        If the template's own text doesn't pass a screen, the screen can't recognise other shapes.
        """
        if len(at) and (patient or not recognises_shape(self.texts.slice(self.own, 1))[0].as_py()):
            self.slow.append(at)

    def by_the_book(self) -> None:
        """Read the remaining texts strictly: record a verdict on each, then read the valid ones."""
        sound: list[tuple[int, bytes]] = []
        for index in map(int, np.concatenate([*self.slow, np.empty(0, np.int64)])):
            text = self.texts[index].as_py()
            verdict = self._verdict(text)
            if isinstance(verdict, Flaw):
                self.flaws[index] = verdict
            elif verdict:
                sound.append((index, text.translate(_LINE_BREAKS)))
        if sound:
            texts = pa.array([text for _, text in sound], pa.binary())
            at = np.array([index for index, _ in sound], np.int64)
            for portion, places in blocks(texts, np.arange(len(at))):
                self._halving(portion, at[places])

    def _verdict(self, text: bytes) -> Flaw | bool:
        """Return a flaw, or whether the text has the shape."""
        payload = read_payload(text, self.template.closing)
        if isinstance(payload, Flaw):
            return payload
        flaw = None if payload is None else self.template.shape.check(payload, "payload")
        if flaw and self.template.exact:
            return flaw
        return flaw is None

    def _halving(self, texts: pa.Array, at: Integers) -> None:
        """Read texts that passed the check; halve them until each text that the reader refuses is
        found.
        """
        rows = self.read(texts)
        if rows is not None:
            self.pieces.append(ReadTexts(at, rows))
        elif len(at) == 1:
            if not self.template.span.is_everything and int(at[0]) != self.own:
                return  # it may belong to another position, where other types are in force
            self.flaws[int(at[0])] = Flaw(DeadReason.NOT_JSON, "the JSON reader refuses the value")
        else:
            middle = len(at) // 2
            self._halving(texts.slice(0, middle), at[:middle])
            self._halving(texts.slice(middle), at[middle:])


def read_group(
    texts: pa.Array,
    places: Integers,
    template: Template,
    *,
    patient: bool,
    threads: bool,
    stencil_min: int = TEXTS_MIN,
) -> ReadTexts:
    """Read the texts with these ascending indexes; a text is what follows the prefix of a record.

    The first text is the template's own. Every text of the template's shape is read or gets a flaw.
    Texts that don't look like the shape are left for another template, unless the template's own
    text doesn't either; with `patient` each of them is checked strictly. Only if there are at least
    `stencil_min` texts a stencil is made; what is read doesn't depend on it.
    """
    reader = _Reader(texts, int(places[0]), template, threads, stencil_min)
    unsafe = unsafe_texts(texts)[places]
    reader.slow.append(places[unsafe])
    reader.fast(reader.by_stencils(places[~unsafe]), patient=patient)
    reader.by_the_book()
    return _joined(reader.pieces, template, reader.flaws)


def _joined(pieces: list[ReadTexts], template: Template, flaws: dict[int, Flaw]) -> ReadTexts:
    if not pieces:
        return ReadTexts(np.empty(0, np.int64), pa.array([], template.shape.payload), flaws)
    at = np.concatenate([piece.at for piece in pieces])
    rows, notes = pa.concat_arrays([piece.rows for piece in pieces]), _joined_notes(pieces)
    if np.all(at[1:] > at[:-1]):
        return ReadTexts(at, rows, flaws, notes)
    order = np.argsort(at)
    taken = pa.array(order)
    return ReadTexts(
        at[order], rows.take(taken), flaws, None if notes is None else notes.take(taken)
    )


def _joined_notes(pieces: list[ReadTexts]) -> pa.Array | None:
    of = next((piece.notes.type for piece in pieces if piece.notes is not None), None)
    if of is None:
        return None
    return pa.concat_arrays(
        [pa.nulls(len(piece.at), of) if piece.notes is None else piece.notes for piece in pieces]
    )


def _as_mask(marked: pa.Array) -> Mask:
    mask: Mask = marked.to_numpy(zero_copy_only=False)
    return mask


def slices_after(values: pa.Array, prefix: bytes, suffix: bytes = b"") -> pa.Array:
    """Return the texts between the prefix and the suffix that all values have."""
    # Without a given end, pyarrow 26 computes one from the largest integer and overflows.
    end = -len(suffix) if suffix else _END
    return pc.binary_slice(values, len(prefix), end) if prefix or suffix else values
