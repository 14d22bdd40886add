"""Statistics of a base file as the log's `add.stats` (Delta protocol, "Per-file Statistics").

Columns that always have exact bounds are covered (`stats_columns`), and the table's property
`delta.dataSkippingStatsColumns` names them. Texts and moments are covered only where the table was
created so (`TableSchema.bounded`), since their bounds lie outside of their values: a text is cut
after 32 characters, and a moment has milliseconds, both outward. Left out are binary, floating
point (the order of zeros and NaN differs between engines), booleans, and system columns (no reader
prunes by them, and every commit would carry them). The property is necessary: where one column of a
file has bounds and another that should have them lacks them, deltalake 1.6.6 takes the missing ones
for null, and a filter on that column finds no row. For the same reason a file with a value beyond
what bounds can say has no statistics at all but its number of rows, as do all files of a table of
which no column is covered; and once a table gets a further column, its older files are added to the
log again, with the number of nulls there.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq

from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import WHOLE_NUMBERS, Primitive

COLUMNS_MAX = 32  # Delta's own default; key columns come on top
_DAYS = (-719162, 2932896)  # 0001-01-01 to 9999-12-31: beyond, engines disagree about the text
_MOMENTS_MS = (-62_135_596_800_000, 253_402_300_799_999)  # the same years
TEXT_CHARS_MAX = 32
# No character comes after it.
_LAST_CHARACTER = "\U0010ffff"
_OF_LAST = _LAST_CHARACTER.encode()[:2]
CHOSEN = frozenset((Primitive.STRING, Primitive.TIMESTAMP))
"""Kinds of columns that are covered if they are chosen."""
_BOUNDED = frozenset(
    (
        *WHOLE_NUMBERS,
        Primitive.DECIMAL,
        Primitive.DATE,
    )
)


def stats_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns that statistics cover, in the order of the schema."""
    return tuple(column.name for _, column in _covered(schema))


def delta_stats(footer: pq.FileMetaData, schema: TableSchema) -> str:
    """Return numRecords, and minValues, maxValues and nullCount of the covered columns, as JSON.

    The file's columns are found by name; one that the file lacks is null in all rows.
    """
    low, high, nulls = [], [], []
    places = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    for _, column in _covered(schema):
        at = places.get(column.name)
        if at is None:
            nulls.append(f"{json.dumps(column.name)}:{footer.num_rows}")
            continue
        chunks = [footer.row_group(group).column(at) for group in range(footer.num_row_groups)]
        stats = [chunk.statistics for chunk in chunks]
        if not all(one is not None and one.has_null_count for one in stats):
            return _rows_alone(footer)
        name = json.dumps(column.name)
        nulls.append(f"{name}:{sum(one.null_count for one in stats)}")
        filled = [one for one in stats if one.num_values]
        if not filled:
            continue
        bounds = _bounds(column.type.kind, filled)
        if bounds is None:
            return _rows_alone(footer)
        low.append(f"{name}:{bounds[0]}")
        high.append(f"{name}:{bounds[1]}")
    if not nulls:
        return _rows_alone(footer)
    return (
        f'{{"numRecords":{footer.num_rows},"minValues":{{{",".join(low)}}},'
        f'"maxValues":{{{",".join(high)}}},"nullCount":{{{",".join(nulls)}}}}}'
    )


def stats_with_nulls(stats: str | None, schema: TableSchema) -> str | None:
    """Return statistics of a file by `delta_stats`, with the numbers of nulls of covered columns
    that the file was written without; None if the statistics lack none or have none at all.
    """
    found = json.loads(stats or "{}")
    known = found.get("nullCount")
    if stats is None or not known:
        return None
    added = [name for name in stats_columns(schema) if name not in known]
    if not added:
        return None
    counts = "".join(f",{json.dumps(name)}:{found['numRecords']}" for name in added)
    return f"{stats.removesuffix('}}')}{counts}}}}}"


def _covered(schema: TableSchema) -> list[tuple[int, Column]]:
    return [
        (at, column)
        for at, column in enumerate(schema.columns)
        if not column.hidden
        and column.name not in schema.partitioned_by  # the log has their values
        and _is_covered(at, column, schema)
    ]


def _is_covered(at: int, column: Column, schema: TableSchema) -> bool:
    if column.type.kind in CHOSEN:
        return column.id in schema.bounded
    return column.type.kind in _BOUNDED and (at < COLUMNS_MAX or column.name in schema.key)


def _rows_alone(footer: pq.FileMetaData) -> str:
    return f'{{"numRecords":{footer.num_rows}}}'


def _bounds(kind: Primitive, stats: list[pq.Statistics]) -> tuple[str, str] | None:
    if not all(one.has_min_max for one in stats):
        return None
    if kind is Primitive.DATE or kind in CHOSEN:
        values = [(one.min_raw, one.max_raw) for one in stats]
    else:
        values = [(one.min, one.max) for one in stats]
    lowest, highest = min(v[0] for v in values), max(v[1] for v in values)
    low: str | None
    high: str | None
    if kind is Primitive.STRING:
        low, high = _text_at_most(lowest), _text_at_least(highest)
    elif kind is Primitive.TIMESTAMP:
        low, high = _moment(lowest // 1000), _moment(-(-highest // 1000))
    else:
        low, high = _exact(kind, lowest), _exact(kind, highest)
    return None if low is None or high is None else (low, high)


def _text_at_most(lowest: bytes) -> str:
    """The JSON of a text that isn't above one in UTF-8, which itself may be cut."""
    return json.dumps(lowest.decode(errors="ignore")[:TEXT_CHARS_MAX])


def _text_at_least(highest: bytes) -> str | None:
    """The JSON of a text that isn't below one in UTF-8, which itself may be cut and counted up.

    None if no short text is known that is so high.
    """
    text, cut = _valid_start(highest)
    if cut >= _OF_LAST:
        return None
    end = TEXT_CHARS_MAX
    while text[end : end + 1] == _LAST_CHARACTER:
        end += 1
    is_whole = end >= len(text)
    return json.dumps(text if is_whole and not cut else text[:end] + _LAST_CHARACTER)


def _valid_start(text: bytes) -> tuple[str, bytes]:
    """Split bytes into the text that they begin with and the rest, which isn't UTF-8."""
    try:
        return text.decode(), b""
    except UnicodeDecodeError as error:
        return text[: error.start].decode(), text[error.start :]


def _moment(milliseconds: int) -> str | None:
    """The JSON of a moment; None beyond the years that all engines read."""
    if not _MOMENTS_MS[0] <= milliseconds <= _MOMENTS_MS[1]:
        return None
    return f'"{np.datetime64(milliseconds, "ms")}Z"'


def _exact(kind: Primitive, value: object) -> str | None:
    """The JSON of one bound; None where it would not be exact."""
    if kind is Primitive.DECIMAL:
        return f"{value:f}"
    number = int(str(value))
    if kind is Primitive.DATE:
        inside = _DAYS[0] <= number <= _DAYS[1]
        return f'"{np.datetime64(number, "D")}"' if inside else None
    return str(number)
