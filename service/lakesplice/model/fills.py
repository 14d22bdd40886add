"""What the rows that were there hold in a column that was added with a default.

A fill is written as text, so that schemas stay plain values:

    boolean                     true, false
    whole, floating, decimal    digits
    date, timestamp             days, microseconds since 1970
    string                      itself
    binary                      base64
"""

from __future__ import annotations

from base64 import b64decode, b64encode

import pyarrow as pa

from lakesplice.model.types import ColumnType, Kind

_COUNTED = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64()}


def fill_text(value: pa.Scalar, kind: ColumnType) -> str:
    """Return a value of the type, which is not null, as text."""
    if kind.kind is Kind.BINARY:
        return b64encode(value.as_py()).decode()
    if kind.kind in _COUNTED:
        value = value.cast(_COUNTED[kind.kind])
    return str(value.cast(pa.string()).as_py())


def fill_value(text: str, kind: ColumnType) -> pa.Scalar:
    """Read back `fill_text`."""
    if kind.kind is Kind.BINARY:
        return pa.scalar(b64decode(text), pa.binary())
    value = pa.scalar(text)
    if kind.kind in _COUNTED:
        value = value.cast(_COUNTED[kind.kind])
    return value.cast(kind.arrow)
