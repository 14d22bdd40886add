"""Statistics of a base file as the log's `add.stats` (Delta protocol, "Per-file Statistics").

Bounds without `tightBounds: false` are taken as exact, so what is not exact is left out: strings
longer than Delta's 32 characters, timestamps that milliseconds cannot hold, floating point (the
order of zeros and NaN differs between engines), booleans and binary, and a column whose footer
lacks a bound. System columns are left out: nobody prunes by them, and every commit would carry
them.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq

from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import Kind

COLUMNS_MAX = 32  # Delta's own default; key columns come on top
STRING_CHARACTERS_MAX = 32
_DAYS = (-719162, 2932896)  # 0001-01-01 to 9999-12-31: beyond, engines disagree about the text
_MICROSECONDS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_WHOLE = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG)


def delta_stats(footer: pq.FileMetaData, schema: TableSchema) -> str:
    """Return numRecords, minValues, maxValues and nullCount of a file's user columns as JSON.

    The file's columns are those of `schema.arrow`, in that order.
    """
    low, high, nulls = [], [], []
    for at, column in enumerate(schema.columns):
        if at >= COLUMNS_MAX and column.name not in schema.key:
            continue
        chunks = [footer.row_group(group).column(at) for group in range(footer.num_row_groups)]
        stats = [chunk.statistics for chunk in chunks]
        name = json.dumps(column.name)
        if all(one is not None and one.has_null_count for one in stats):
            nulls.append(f"{name}:{sum(one.null_count for one in stats)}")
            filled = [one for one in stats if one.num_values]
            bounds = _bounds(column, filled)
            if bounds is not None:
                low.append(f"{name}:{bounds[0]}")
                high.append(f"{name}:{bounds[1]}")
    return (
        f'{{"numRecords":{footer.num_rows},"minValues":{{{",".join(low)}}},'
        f'"maxValues":{{{",".join(high)}}},"nullCount":{{{",".join(nulls)}}}}}'
    )


def _bounds(column: Column, stats: list[pq.Statistics]) -> tuple[str, str] | None:
    if not stats or not all(one.has_min_max for one in stats):
        return None
    kind = column.type.kind
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        values = [(one.min_raw, one.max_raw) for one in stats]
    elif kind in (*_WHOLE, Kind.DECIMAL, Kind.STRING):
        values = [(one.min, one.max) for one in stats]
    else:
        return None
    low, high = _text(kind, min(v[0] for v in values)), _text(kind, max(v[1] for v in values))
    return None if low is None or high is None else (low, high)


def _text(kind: Kind, value: object) -> str | None:
    """The JSON of one bound; None where it would not be exact."""
    if isinstance(value, str):
        return json.dumps(value) if len(value) <= STRING_CHARACTERS_MAX else None
    if kind is Kind.DECIMAL:
        return f"{value:f}"
    number = int(str(value))
    if kind is Kind.DATE:
        inside = _DAYS[0] <= number <= _DAYS[1]
        return f'"{np.datetime64(number, "D")}"' if inside else None
    if kind is Kind.TIMESTAMP:
        exact = number % 1000 == 0 and _MICROSECONDS[0] <= number <= _MICROSECONDS[1]
        return f'"{np.datetime64(number // 1000, "ms")}Z"' if exact else None
    return str(number)
