"""CSV files of a table's rows: every row that the bytes have is read as it is, or the file is
refused.

The bytes are written and read here by a few lines of their own, which know RFC 4180 alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from lakesplice.apps.bootstrap.row_files import RowFiles, file_parts
from lakesplice.errors import UsageError
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.storage.local import LocalStore
from tests.support.drawing import examples
from tests.support.simulated import folder

MARK = "\ufeff"
PIECES = ['"', ",", "\n", "\r", "\r\n", "a", "é", " ", "\\N", "NULL", "nan", MARK, "\x00", "1"]
TEXTS = st.none() | st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
FILES = st.integers(1, 3).flatmap(
    lambda width: st.tuples(
        st.lists(st.sampled_from(PIECES), min_size=width, max_size=width),
        st.lists(st.tuples(*[TEXTS] * width), max_size=6),
    )
)
KINDS = ("string", "long", "double")


def line(cells: tuple[str | None, ...], quotes: bool, null: str, end: str) -> str:
    def written(cell: str | None) -> str:
        if cell is None:
            return null
        if quotes or cell in ("", "\\N") or set(cell) & set('",\r\n'):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    return ",".join(map(written, cells)) + end


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    FILES,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from(["", "\\N"]),
    st.sampled_from([64, 200, 1 << 20]),
)
@example((["a"], [(None,), ("x",), ("",)]), "\n", (False, False, False), "", 64)
@example(([MARK], [(MARK,)]), "\n", (False, True, False), "", 64)
@example(([MARK], [(MARK,)]), "\n", (True, False, False), "", 64)
def test_every_row_of_a_file_is_read_as_it_was_written_or_the_file_is_refused(
    file: tuple[list[str], list[tuple[str | None, ...]]],
    end: str,
    signs: tuple[bool, bool, bool],
    null: str,
    block_bytes: int,
) -> None:
    heads, rows = file
    quotes, has_mark, has_blank = signs
    names = [f"{head}{at}" for at, head in enumerate(heads)]
    # Where a row has several values, an empty line can't be one.
    blank = end if has_blank and len(names) > 1 else ""
    text = MARK * has_mark + line(tuple(names), quotes, null, end)
    text += "".join(line(row, quotes, null, end) + blank for row in rows)
    # A first name that begins with a mark can't be told from a mark before the name.
    assume(has_mark or not text.startswith(MARK))
    fields = tuple(SourceField(name, ColumnType.parse("string"), "") for name in names)
    found, why = [], ""
    try:
        found = rows_of(text, SourceSchema(fields, ()), block_bytes)
    except UsageError as refused:
        why = str(refused)
    if why:
        event(why[:40])
        # A NULL that is written as `\N` makes other backslashes doubtful, and so is the word NULL.
        assert "\\" in text or "NULL" in text or "too long" in why
        return
    assert found == [dict(zip(names, row, strict=True)) for row in rows]


def rows_of(text: str, schema: SourceSchema, block_bytes: int) -> list[dict[str, Any]]:
    with folder() as path:
        (path / "a.csv").write_bytes(text.encode())
        store = LocalStore(path)
        reading = RowFiles(store, schema, block_bytes=block_bytes)
        try:
            parts = file_parts(store, "*.csv", block_bytes=block_bytes)
            return [row for part in parts for row in reading.rows(part).to_pylist()]
        finally:
            reading.close()


@pytest.mark.parametrize("kinds", [KINDS[:1], KINDS, KINDS * 2])
def test_a_file_of_a_header_alone_has_no_rows(kinds: tuple[str, ...]) -> None:
    fields = tuple(
        SourceField(f"c{at}", ColumnType.parse(kind), "") for at, kind in enumerate(kinds)
    )
    text = ",".join(field.name for field in fields) + "\n"
    assert rows_of(text, SourceSchema(fields, ()), 64) == []
