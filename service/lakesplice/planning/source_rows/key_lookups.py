"""Makes the SQL condition for rows with some keys, whose values come from the lake."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm, octets
from lakesplice.planning.source_rows.key_ranges import KeyColumn

_DAY_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_NO_VALUE = "null"


def keys_sql(key: Sequence[KeyColumn], columns: Sequence[ReadColumn], keys: pa.Table) -> str:
    """Return the SQL condition for rows with these keys; `key` and `columns` are in one order,
    `keys` has the source's names and no null.
    """
    names = ",".join(column.sql for column in key)
    texts = [
        canonical_texts(column, keys.column(column.name).combine_chunks()).to_pylist()
        for column in columns
    ]
    inside, zeros = [], []
    for row in zip(*texts, strict=True):
        constants = [
            _constant(*parts) for parts in zip(key, (c.form for c in columns), row, strict=True)
        ]
        if any(map(_may_be_zero, columns, row)):
            zeros.append(_of_zeros(key, columns, row, constants))
        else:
            inside.append(f"({','.join(constants)})")
    found = [f"({names}) in ({','.join(inside)})"] if inside else []
    return " or ".join((*found, *zeros)) or "0"


def _may_be_zero(column: ReadColumn, text: str) -> bool:
    return bool(column.zero) and text == column.zero


def _of_zeros(
    key: Sequence[KeyColumn],
    columns: Sequence[ReadColumn],
    texts: Sequence[str],
    constants: Sequence[str],
) -> str:
    """Return the condition for a key in which a text may stand for one of several values: those are
    compared by their texts, which no index has.
    """
    parts = (
        f"{column.sql}={text}" if _may_be_zero(column, text) else f"{of.sql}={constant}"
        for of, column, text, constant in zip(key, columns, texts, constants, strict=True)
    )
    return f"({' and '.join(parts)})"


def _constant(of: KeyColumn, form: TextForm, text: str) -> str:
    """Return the SQL constant of a value by its canonical text, NULL if the column can't have it:
    the lake may be wrong.
    """
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
        return _time(int(text)) if _NUMBER.fullmatch(text) else _NO_VALUE
    return text if _NUMBER.fullmatch(text) else _NO_VALUE


def _time(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if micros < 0 else ""
    return f"'{sign}{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}'"
