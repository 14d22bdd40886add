"""GeoParquet's metadata about a column's values: the region that contains all of them, and their
kinds. Readers use it to skip files.

https://geoparquet.org/releases/v1.1.0/
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from lakesplice.splicing.structures.footer import Footer, KeyValue

GEO = b"geo"


def unbounded(footer: Footer, columns: Collection[str]) -> Footer:
    """Return the footer without the regions and kinds of these columns."""
    pairs = footer.key_values or ()
    if all(key != GEO for key, _ in pairs):
        return footer
    return replace(
        footer, key_values=tuple(_without_bounds(key, value, columns) for key, value in pairs)
    )


def unbounded_value(value: bytes, columns: Collection[str]) -> bytes:
    """Do the same for the value of the key `geo`; a value that doesn't follow the specification is
    returned unchanged.
    """
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    described = found.get("columns") if isinstance(found, dict) else None
    if not isinstance(described, dict):
        return value
    changed = False
    for name in columns:
        column = described.get(name)
        if isinstance(column, dict):
            column.pop("bbox", None)
            column["geometry_types"] = []  # that is: any
            changed = True
    return json.dumps(found).encode() if changed else value


def _without_bounds(key: bytes, value: bytes | None, columns: Collection[str]) -> KeyValue:
    return key, unbounded_value(value, columns) if key == GEO and value is not None else value
