"""Decides whether the pages of two files mean the same under one footer.

Key-values decide how pages are read: Spark's marks of its old calendar and of time zones, Arrow's
schema, the reference system of places. A key that isn't known here may decide anything, so all keys
must be equal, except those that only say who wrote the file.
"""

from __future__ import annotations

import re
from collections import Counter

from lakesplice.splicing.metadata.writer_options import ORIGINAL_CREATED_BY
from lakesplice.splicing.structures.footer import Footer

_SPARK_VERSION = b"org.apache.spark.version"
# Spark reads dates of writers before 3.0, and INT96 of writers before 3.1, in its old calendar.
_SPARK_TURNS = ((3, 0), (3, 1))


def disagreements(one: Footer, other: Footer) -> list[str]:
    """Return the differences between two footers that decide how pages are read; empty if none."""
    if one.schema[1:] != other.schema[1:]:
        return ["schema"]
    found = ["column orders"] if one.column_orders != other.column_orders else []
    left, right = _deciding(one), _deciding(other)
    keys = {key for key, _ in (left - right) + (right - left)}
    return found + sorted(key.decode(errors="replace") for key in keys)


def _deciding(footer: Footer) -> Counter[tuple[bytes, object]]:
    pairs = footer.key_values or ()
    return Counter(
        (key, _meaning(key, value)) for key, value in pairs if key != ORIGINAL_CREATED_BY
    )


def _meaning(key: bytes, value: bytes | None) -> object:
    found = re.match(rb"(\d+)\.(\d+)", value or b"") if key == _SPARK_VERSION else None
    if found is None:
        return value
    version = int(found[1]), int(found[2])
    return [version >= turn for turn in _SPARK_TURNS].count(True)
