"""Reading the records of one shape: fast where the block can be, by the book where it can't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.lines import blocks, read_texts, unsafe_texts
from lakesplice.formats.events.screen import matching, starting_right
from lakesplice.formats.events.strict import Flaw
from lakesplice.formats.events.template import Template, read_payload
from lakesplice.formats.events.values import DeadReason, Rows

Screen = Callable[[pa.Array], pa.Array]
_END = (1 << 31) - 2
_LINE_BREAKS = bytes.maketrans(b"\r\n\t", b"   ")


@dataclass
class Reading:
    """What was read of a group of texts. `at` are indexes into the texts, ascending; `rows` their
    payloads. `flaws` are verdicts on others; texts in neither are of another shape.
    """

    at: Rows
    rows: pa.Array
    flaws: dict[int, Flaw] = field(default_factory=dict)


@dataclass
class _Reader:
    texts: pa.Array
    own: int
    template: Template
    threads: bool
    pieces: list[tuple[Rows, pa.Array]] = field(default_factory=list)
    slow: list[Rows] = field(default_factory=list)
    flaws: dict[int, Flaw] = field(default_factory=dict)
    suspicious: bool = False

    def __post_init__(self) -> None:
        payload, closing = self.template.shape.payload, self.template.closing
        self.screens: tuple[Screen, ...] = (
            partial(starting_right, payload=payload),
            partial(matching, payload=payload, closing=closing),
        )

    def read(self, texts: pa.Array) -> pa.Array | None:
        template = self.template
        return read_texts(texts, template.shape.reading, template.closing, threads=self.threads)

    def fast(self, at: Rows, *, patient: bool) -> None:
        """Read the texts at `at`, all of them safe; what can't be read or proven goes the slow way.

        Only a `patient` reader goes that way too for texts that don't look like the shape.
        """
        for texts, places in blocks(self.texts, at):
            self._fast_block(texts, places, patient=patient)

    def _fast_block(self, texts: pa.Array, at: Rows, *, patient: bool) -> None:
        # Damage is seldom alone: after a block that couldn't be read the next is screened at once.
        rows = None if self.suspicious else self.read(texts)
        for screen in self.screens:
            if rows is not None or not len(at):
                break
            self.suspicious = True
            texts, at = self._screened(screen, texts, at, patient=patient)
            rows = self.read(texts) if len(at) else None
        if rows is None:
            self.slow.append(at)
            return
        unproven = self.template.shape.unproven(texts, rows)
        if unproven.any():
            self.slow.append(at[unproven])
            rows, at = rows.filter(pa.array(~unproven)), at[~unproven]
        self.pieces.append((at, rows))

    def _screened(
        self, screen: Screen, texts: pa.Array, at: Rows, *, patient: bool
    ) -> tuple[pa.Array, Rows]:
        similar = screen(texts)
        if similar.true_count == len(at):
            return texts, at
        mask = similar.to_numpy(zero_copy_only=False)
        # A screen that the template itself doesn't pass can't tell other shapes.
        if patient or not screen(self.texts.slice(self.own, 1))[0].as_py():
            self.slow.append(at[~mask])
        return texts.filter(similar), at[mask]

    def by_the_book(self) -> None:
        """Give each text that went the slow way its verdict, and read the sound ones."""
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
        """A flaw, or whether the text has the shape."""
        payload = read_payload(text, self.template.closing)
        if isinstance(payload, Flaw):
            return payload
        flaw = None if payload is None else self.template.shape.check(payload, "payload")
        if flaw and self.template.exact:
            return flaw
        return flaw is None

    def _halving(self, texts: pa.Array, at: Rows) -> None:
        """Read texts that passed the check, until what the reader still refuses stands alone."""
        rows = self.read(texts)
        if rows is not None:
            self.pieces.append((at, rows))
        elif len(at) == 1:
            self.flaws[int(at[0])] = Flaw(DeadReason.NOT_JSON, "the JSON reader refuses the value")
        else:
            middle = len(at) // 2
            self._halving(texts.slice(0, middle), at[:middle])
            self._halving(texts.slice(middle), at[middle:])


def read_group(
    texts: pa.Array, places: Rows, template: Template, *, patient: bool, threads: bool
) -> Reading:
    """Read the texts at some ascending places: what follows the prefix in records that share it.

    The first is the template's own. Every text of the template's shape is read or has a flaw.
    Without `patient` texts that look otherwise are left for another template, unless the template
    looks so too; with it each is checked by the book.
    """
    reader = _Reader(texts, int(places[0]), template, threads)
    unsafe = unsafe_texts(texts)[places]
    reader.slow.append(places[unsafe])
    reader.fast(places[~unsafe], patient=patient)
    reader.by_the_book()
    at, rows = _joined(reader.pieces, template)
    return Reading(at, rows, reader.flaws)


def _joined(pieces: list[tuple[Rows, pa.Array]], template: Template) -> tuple[Rows, pa.Array]:
    if not pieces:
        return np.empty(0, np.int64), pa.array([], template.shape.payload)
    at = np.concatenate([at for at, _ in pieces])
    rows = pa.concat_arrays([rows for _, rows in pieces])
    if np.all(at[1:] > at[:-1]):
        return at, rows
    order = np.argsort(at)
    return at[order], rows.take(pa.array(order))


def slices_after(values: pa.Array, prefix: bytes) -> pa.Array:
    """Return what follows the prefix that all values start with."""
    # Without an end pyarrow 26 computes it from the largest integer and overflows.
    return pc.binary_slice(values, len(prefix), _END) if prefix else values
