"""Texts cast to a type, each on its own: a bad one costs only itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Mask


def cast_each(raw: pa.Array, to: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Cast texts; where the whole can't be, halves are tried, so a bad text costs only itself."""
    try:
        return raw.cast(to), None
    except pa.ArrowInvalid:
        if len(raw) == 1:
            return pa.nulls(1, to), np.ones(1, np.bool_)
    middle = len(raw) // 2
    halves = [cast_each(half, to) for half in (raw.slice(0, middle), raw.slice(middle))]
    sizes = (middle, len(raw) - middle)
    masks = [
        np.zeros(size, np.bool_) if wrong is None else wrong
        for (_, wrong), size in zip(halves, sizes, strict=True)
    ]
    return pa.concat_arrays([values for values, _ in halves]), np.concatenate(masks)
