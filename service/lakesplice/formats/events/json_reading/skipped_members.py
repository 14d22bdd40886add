"""Skips members that belong to no column and that the JSON reader can't read.

Examples are lists of values of several types, which a script in Maxwell or its
`output_primary_keys` can add to events, and whole numbers of more than 64 bits. Such a member must
not turn its event into a dead letter. So the reader gets the event's text with an empty string as
the member's value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.json_reading.member_types import shown_type
from lakesplice.formats.events.json_reading.object_members import members_in
from lakesplice.formats.events.json_reading.record_group import read_group
from lakesplice.formats.events.json_reading.strict import find_flaw
from lakesplice.formats.events.json_reading.template import ReadTexts, Template
from lakesplice.model.arrays import Integers

_NOTHING = ""
_WRITTEN = b'""'


def unreadable(members: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the members whose values the JSON reader can't read as one type."""
    return tuple(
        name for name, value in members.items() if find_flaw(value, shown_type(value)) is not None
    )


def emptied(event: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    """Return an event with empty strings as the values of the members `names`."""
    return {**event, **dict.fromkeys(names, _NOTHING)}


def skipping(names: Collection[str], template: Template) -> Template:
    """Return a template for records whose members `names` may have any values; in its shape these
    are strings.
    """
    return replace(template, binary=partial(_read, frozenset(names), template))


def _read(
    names: Collection[str], template: Template, texts: pa.Array, places: Integers
) -> ReadTexts:
    texts_read = pa.array([_text(texts[int(at)].as_py(), names) for at in places], pa.binary())
    everything = np.arange(len(places))
    read = read_group(texts_read, everything, template, patient=False, threads=False)
    flaws = {int(places[at]): flaw for at, flaw in read.flaws.items()}
    return ReadTexts(places[read.at], read.rows, flaws, read.notes)


def _text(payload: bytes, names: Collection[str]) -> bytes:
    """Return the text of an object, and of anything after it, with empty strings as the members'
    values.
    """
    try:
        text = payload.decode()
        found = [(start, end) for name, start, end in members_in(text, 0) if name in names]
    except (ValueError, IndexError, RecursionError):
        return payload  # its verdict is the reader's
    pieces, last = [], 0
    for start, end in found:
        pieces += [text[last:start].encode(), _WRITTEN]
        last = end
    return b"".join((*pieces, text[last:].encode()))
