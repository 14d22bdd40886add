"""A chunk of rows as one text: CSV in which NULL is an empty field and an empty text is two quotes.

One text per chunk is several times cheaper to receive than a value per cell. If a text is too long
for one of its limits, a server cuts it or returns NULL, and only warns. Both are recognised: a text
of whole rows has an even number of quotes and ends with a newline, and the same statement counted
the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyarrow import csv

from lakesplice.formats.events.cells.column import Column
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm
from lakesplice.planning.source_rows.values import text_type, values_of

_QUOTED = (TextForm.CHARACTERS, TextForm.OCTETS, TextForm.GEOMETRY)
_BLOCK_BYTES_MIN = 1 << 16


def rows_sql(columns: Sequence[ReadColumn]) -> str:
    """Return the expressions of the text of all rows of a statement, and of their number."""
    cells = ",',',".join(_cell(column) for column in columns)
    return f"group_concat(concat({cells},'\\n') separator ''),count(*)"


def plain_sql(columns: Sequence[ReadColumn]) -> str:
    """Return an expression for each column's value, for rows whose text is too long."""
    return ",".join(column.plain_sql for column in columns)


def rows_of_text(
    text: bytes | None, count: int, columns: Sequence[ReadColumn]
) -> dict[str, Column] | None:
    """Return the rows' columns by name; None if the text was cut.

    Raises `ValueError` if the text doesn't have these columns.
    """
    if not count:
        return _none(columns)
    if text is None or not text.endswith(b"\n") or text.count(b'"') % 2:
        return None
    names = [str(at) for at in range(len(columns))]
    types = [text_type(column) for column in columns]
    read = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(
            use_threads=False,
            column_names=names,
            block_size=max(len(text) + 1, _BLOCK_BYTES_MIN),
        ),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    if read.num_rows != count:
        return None
    return {
        column.name: values_of(column, read.column(at).combine_chunks())
        for at, column in enumerate(columns)
    }


def rows_of_values(
    rows: Iterable[Sequence[bytes | None]], columns: Sequence[ReadColumn]
) -> dict[str, Column]:
    """Return the same for rows that were received value by value, as `plain_sql` reads them."""
    kept, found = list(rows), {}
    if not kept:
        return _none(columns)
    for at, column in enumerate(columns):
        raw = pa.array([row[at] for row in kept], pa.binary())
        if column.form not in (TextForm.OCTETS, TextForm.GEOMETRY):
            raw = raw.cast(pa.string()).cast(text_type(column))
        found[column.name] = values_of(column, raw)
    return found


def _none(columns: Sequence[ReadColumn]) -> dict[str, Column]:
    return {column.name: Column(pa.array([], column.type.arrow)) for column in columns}


def _cell(column: ReadColumn) -> str:
    """The expression of a cell. If a value is too long, its text is NULL and so is its row's: the
    row is missing then, and isn't mistaken for a row with a NULL.
    """
    if column.form not in _QUOTED:
        return f"ifnull({column.sql},'')"
    text = column.sql
    if column.form is TextForm.CHARACTERS:
        # Under another collation other characters may equal the quote.
        text = f"replace({text} collate utf8mb4_bin,'\"','\"\"')"
    return f"if({column.plain_sql} is null,'',concat('\"',{text},'\"'))"
