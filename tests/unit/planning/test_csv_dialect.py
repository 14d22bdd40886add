"""A CSV file is read as it was written, or refused, however its bytes are cut."""

from __future__ import annotations

import csv
import io
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.planning.source_rows.csv_dialect import CsvDialect

VALUES = st.lists(st.sampled_from(['"', ",", "\n", "\r", "a", "é"]), max_size=4).map("".join)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=4)


def flaw_of(data: bytes, size: int = 1) -> str:
    dialect = CsvDialect()
    for at in range(0, len(data), size):
        dialect.feed(data[at : at + size])
    return dialect.flaw()


def written(rows: list[tuple[str, str]], quoting: Literal[0, 1], end: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerows(rows)
    return text.getvalue()


@given(
    ROWS,
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
    st.tuples(st.floats(0, 1), st.sampled_from(["", '"', '""', "\\"]), st.booleans()),
)
def test_damage_is_found_unless_the_text_still_means_one_thing(
    rows: list[tuple[str, str]],
    quoting: Literal[0, 1],
    end: str,
    size: int,
    damage: tuple[float, str, bool],
) -> None:
    text = written(rows, quoting, end)
    assert flaw_of(text.encode(), size) == ""
    place, put, in_place = damage
    at = int(place * len(text))
    harmed = text[:at] + put + text[at + in_place :]
    if flaw_of(harmed.encode(), size):
        return
    strictly = csv.reader(io.StringIO(harmed, newline=""), strict=True)
    loosely = csv.reader(io.StringIO(harmed, newline=""))
    assert list(strictly) == list(loosely)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('a,b\n1,"x\n2,y\n', "doesn't end"),
        ('a,b\n1,"x\n2,"y\n', "neither around"),
        ('a,b\n1,"x\\"y"\n', "neither around"),
        ('a,b\n1,x"y\n', "neither around"),
        ('a,b\n"1",', "cut off"),
        ("a,b\n1,\\N\n2,C:\\\\x\n", "INTO OUTFILE"),
        ("a,b\n1,\\N\n2,\n", "empty text"),
        ("a,b\n1,\\N\n,2\n", "empty text"),
        ('a,b\n1,\\N\n2,""\n3,",,\n,\n"\n', ""),
        ("a,b\n1,NULL\n", "the word NULL"),
        ("a,b\r\nNULL,1\r\n", "the word NULL"),
        ('a,b\n1,"NULL"\n2,"x,NULL,\nNULL\n"\n3,NULLS\n4,\n', ""),
        ("a,b\n1,\\N\n2,NULL\n", ""),
        ("a,b\n1,C:\\x\n2,\n", ""),
        ('\ufeff"a",b\n1,""\n', ""),
        ("", ""),
    ],
)
def test_a_file_of_another_dialect_is_refused(text: str, flaw: str) -> None:
    for size in (3, 4, 100):
        found = flaw_of(text.encode(), size)
        assert flaw in found
        assert bool(flaw) == bool(found)
