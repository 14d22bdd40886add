"""Values of ENUM and SET that are sent as numbers: for an ENUM the place of the member, from 1, and
0 for MySQL's empty error value; for a SET one bit per member, the lowest for the first.

A text that isn't a number is the value itself, if it is valid: a member of an ENUM, or members of a
SET separated by commas.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Mask

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")


def enum_values(raw: pa.Array, members: tuple[str, ...]) -> tuple[pa.Array, Mask]:
    """Return the members that texts stand for, and a mask of texts that stand for none."""
    numbers = pa.array([str(place) for place in range(len(members) + 1)])
    by_number = pa.array(["", *members]).take(pc.index_in(raw, numbers))
    by_name = pc.if_else(pc.is_in(raw, pa.array(members, pa.string())), raw, None)
    values = pc.coalesce(by_number, by_name).cast(pa.string())
    return values, _lost(values, raw)


def set_values(raw: pa.Array, members: tuple[str, ...]) -> tuple[pa.Array, Mask]:
    """Return the members that texts stand for, in their order and joined by commas, and a mask of
    texts that stand for none.
    """
    coded = raw.dictionary_encode()
    texts = [_set_value(text, members) for text in coded.dictionary.to_pylist()]
    values = pa.array(texts, pa.string()).take(coded.indices)
    return values, _lost(values, raw)


def _set_value(text: str, members: tuple[str, ...]) -> str | None:
    if _NUMBER.fullmatch(text):
        bits = int(text)
        if bits >> len(members):
            return None
        return ",".join(member for at, member in enumerate(members) if bits >> at & 1)
    return text if set(text.split(",")) <= {*members, ""} else None


def _lost(values: pa.Array, raw: pa.Array) -> Mask:
    mask: Mask = np.asarray(pc.and_(values.is_null(), raw.is_valid()))
    return mask
