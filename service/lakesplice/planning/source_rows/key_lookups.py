"""Makes the SQL condition for rows with some keys, whose values come from the lake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm, octets
from lakesplice.planning.source_rows.key_ranges import KeyColumn

_DAY_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def keys_sql(key: Sequence[KeyColumn], columns: Sequence[ReadColumn], keys: pa.Table) -> str:
    """Return the SQL condition for rows with these keys; `key` and `columns` are in one order,
    `keys` has the source's names and no null.
    """
    constants = [_constants(of, column, keys) for of, column in zip(key, columns, strict=True)]
    rows = (",".join(parts) for parts in zip(*constants, strict=True))
    inside = ",".join(f"({row})" for row in rows)
    return f"({','.join(column.sql for column in key)}) in ({inside})" if inside else "0"


def _constants(of: KeyColumn, column: ReadColumn, keys: pa.Table) -> list[str]:
    texts = canonical_texts(column, keys.column(column.name).combine_chunks()).to_pylist()
    return [_constant(of, column.form, text) for text in texts]


def _constant(of: KeyColumn, form: TextForm, text: str) -> str:
    if form is TextForm.CHARACTERS:
        # A character that the column's charset lacks becomes another one. A row that is found in
        # this way has another key, as the caller sees.
        value = f"convert(_utf8mb4 {octets(text.encode())} using {of.charset})"
        return f"{value} collate {of.collation}"
    if form in (TextForm.OCTETS, TextForm.GEOMETRY):
        return octets(bytes.fromhex(text))
    if form is TextForm.DAYS:
        return f"'{(_DAY_ZERO + timedelta(days=int(text))).date().isoformat()}'"
    if form is TextForm.MICROS:
        moment = _DAY_ZERO + timedelta(microseconds=int(text))
        return f"'{moment.replace(tzinfo=None).isoformat(' ')}'"
    if form is TextForm.TIME:
        return _time(int(text))
    return text


def _time(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if micros < 0 else ""
    return f"'{sign}{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}'"
