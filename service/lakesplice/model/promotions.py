"""Values of a column's earlier type as values of its present one.

A column's type only ever changes to one that holds every value of the one before exactly
(`planning/schema/type_changes.py` decides), so these casts lose nothing.
"""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}

Values = TypeVar("Values", pa.Array, pa.ChunkedArray)


def promoted(values: Values, to: pa.DataType) -> Values:
    """Return values, of the type or of one that was changed to it, as ones of the type.

    `pa.ArrowInvalid` where a value doesn't fit, which is then of neither.
    """
    if values.type == to:
        return values
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        # Arrow would read texts as numbers.
        raise pa.ArrowInvalid(f"no {to} was ever {values.type}")
    if pa.types.is_decimal(to) and values.type in _DIGITS:
        # Arrow wants room for all digits that the integer type could have.
        values = values.cast(pa.decimal128(min(38, _DIGITS[values.type] + to.scale), to.scale))
    return values.cast(to)
