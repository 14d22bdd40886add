"""Decimals as JSON numbers: the JSON converter's `decimal.format=NUMERIC`, for events with schemas.

The schema is the same as with base64; only a value shows in which form it is. A number is never
base64, but base64 may look like digits, so nothing in quotes is read as a number here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.null_proof import NullProof
from lakesplice.formats.events.json_reading.payload_shape import EventShape, image_type
from lakesplice.formats.events.json_reading.strict import Check, Flaw
from lakesplice.formats.events.json_reading.template import Opened, Template
from lakesplice.formats.events.values.column_types import PositionRange
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask

_IMAGES = ("before", "after")


@dataclass(frozen=True)
class NumericShape(EventShape):
    """A shape whose decimals are numbers."""

    @cached_property
    def check(self) -> Check:
        """Check as for any shape; in addition a decimal in quotes is refused."""
        whole = super().check
        names = _decimals(self.cells, Encoding.DECIMAL_NUMBER)

        def check(value: object, path: str) -> Flaw | None:
            flaw = whole(value, path)
            return flaw or _quoted(value, names, path)

        return check


def read_as(opened: Opened, shape: EventShape, span: PositionRange) -> Template | Flaw:
    """Return how to read records like an opened one; `shape` has its columns, from its schema or
    from known types.
    """
    flaw = shape.check(opened.payload, "payload")
    if opened.schema is None or not _decimals(shape.cells, Encoding.DECIMAL_BASE64):
        return flaw or opened.template(shape, span)
    if flaw is not None:
        shape = with_numbers(shape)
        if shape.check(opened.payload, "payload"):
            return flaw
    # Another record with this schema may have its decimals in the other form.
    return replace(opened.template(shape, span), exact=False)


def key_in_numbers(template: Template, key: Sequence[str]) -> Flaw | None:
    """Refuse keys with decimals if rows have numbers: a key's decimals may be base64 that looks
    like digits.
    """
    if not isinstance(template.shape, NumericShape):
        return None
    inside = sorted(_decimals(template.shape.cells, Encoding.DECIMAL_NUMBER).intersection(key))
    if not inside:
        return None
    return Flaw(
        DeadReason.WRONG_TYPE,
        f"the key's column {inside[0]!r} is a DECIMAL, which isn't read from events with"
        " decimal.format=NUMERIC; set value.converter.decimal.format=BASE64",
    )


@lru_cache(maxsize=256)
def with_numbers(shape: EventShape) -> EventShape:
    """Return the shape of events of the same schema whose decimals, of up to 38 digits, are
    numbers.
    """
    names = _decimals(shape.cells, Encoding.DECIMAL_BASE64)
    cells = tuple(
        replace(cell, encoding=Encoding.DECIMAL_NUMBER) if cell.name in names else cell
        for cell in shape.cells
    )
    own = {cell.name: cell.json_type for cell in cells if cell.name in names}
    is_envelope = {"op", "source", *_IMAGES} <= {member.name for member in shape.payload}
    changed = dict.fromkeys(_IMAGES, image_type(cells)) if is_envelope else own
    members = [(member.name, changed.get(member.name, member.type)) for member in shape.payload]
    written = "|".join(
        sorted({re.escape(json.dumps(n, ensure_ascii=a)) for n in names for a in (False, True)})
    )
    quoted = rf'(?:{written})\s*:\s*"'

    def prove(texts: pa.Array, rows: pa.Array) -> NullProof:
        evidence = shape.prove(texts, rows)
        in_quotes: Mask = np.asarray(pc.match_substring_regex(texts, quoted).fill_null(False))
        return NullProof(evidence.unproven | in_quotes, evidence.notes)

    return NumericShape(cells, pa.struct(members), shape.optional, prove)


def _decimals(cells: tuple[Cell, ...], encoding: Encoding) -> frozenset[str]:
    return frozenset(cell.name for cell in cells if cell.encoding is encoding)


def _quoted(value: object, names: frozenset[str], path: str) -> Flaw | None:
    row = value if isinstance(value, Mapping) else {}
    for image in (row, *(row.get(name) for name in _IMAGES)):
        if not isinstance(image, Mapping):
            continue
        for name in names:
            if isinstance(image.get(name), str):
                return Flaw(DeadReason.WRONG_TYPE, f"{path}: {name} is text, not a number")
    return None
