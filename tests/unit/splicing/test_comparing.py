"""Edits compared with a file's values: only new values are kept, bit by bit, for every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing import comparing
from lakesplice.splicing.columns.constant_pages import constant_pages
from lakesplice.splicing.comparing import compared
from lakesplice.splicing.options import Options
from lakesplice.splicing.pages import rows as rows_of_pages
from lakesplice.splicing.structures.source import SourceFile

OURS = {"lakesplice": "1"}

ROWS, ROWS_PER_PAGE = 200, 20


def file_of(values: pa.Array, *, ours: bool = False, **options: Any) -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    layout: dict[str, Any] = {
        "write_page_index": True,
        "write_page_checksum": True,
        "store_decimal_as_integer": True,
        "max_rows_per_page": ROWS_PER_PAGE,
        "write_batch_size": ROWS_PER_PAGE,
    }
    with pq.ParquetWriter(sink, pa.schema([("x", values.type)]), **{**layout, **options}) as writer:
        writer.write_table(pa.table({"x": values}))
        if ours:
            writer.add_key_value_metadata(OURS)
    return pa.BufferReader(sink.getvalue())


def left(file: pa.BufferReader, edit: ColumnEdit, options: Options | None = None) -> list[int]:
    """The rows of which the value is taken as new."""
    edits = Edits(edit.rows, {"x": edit})
    found = compared(SourceFile(file, "file"), edits, options or Options()).edits
    assert found.rows.tolist() == edit.rows.tolist()
    return found.columns["x"].rows.tolist() if "x" in found.columns else []


def floats(*bits: int) -> pa.Array:
    return pa.array(np.array(bits, np.uint64).view(np.float64))


NAN, OTHER_NAN, MINUS_NAN = 0x7FF8 << 48, (0x7FF8 << 48) | 1, 0xFFF8 << 48
MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 1, dt.UTC)
# What a row has, and other values that it doesn't have.
VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, None]),
    "byte": pa.array([-128, 127, 0, None], pa.int8()),
    "long": pa.array([-(1 << 63), (1 << 63) - 1, 0, None]),
    "unsigned": pa.array([0, (1 << 64) - 1, None], pa.uint64()),
    "float": pa.array(
        np.array([0, 1 << 31, 1, 0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    ),
    "double": floats(0, 1 << 63, NAN, OTHER_NAN, MINUS_NAN, 1, 2),
    "half": pa.array(np.array([0, 1 << 15, 0x7E00, 0x7E01, 1], np.uint16).view(np.float16)),
    "double or null": pa.array([0.0, -0.0, None]),
    "decimal": pa.array([Decimal("0.00"), Decimal("-9.99"), None], pa.decimal128(3, 2)),
    "decimal(18)": pa.array([Decimal(10**17), Decimal(-1), None], pa.decimal128(18, 0)),
    "decimal(38)": pa.array([Decimal(1 << 64), Decimal(0), None], pa.decimal128(38, 0)),
    "string": pa.array(["", "a", "a\0", "ä", None]),
    "binary": pa.array([b"", b"\0", b"\xff", None]),
    "fixed": pa.array([b"ab", b"a\0", None], pa.binary(2)),
    "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "time": pa.array([0, 1, None], pa.time64("us")),
    "timestamp": pa.array([MOMENT, MOMENT.replace(microsecond=2), None], pa.timestamp("us", "UTC")),
    "list": pa.array([[], [1], [1, None], None], pa.list_(pa.int64())),
    "struct": pa.array([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int64())])),
}


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_what_its_row_has_only_if_its_bits_are(kind: str, dictionary: bool) -> None:
    values = VALUES[kind]
    for at in range(len(values)):
        held = values.take(pa.array([at] * ROWS))
        if pa.types.is_floating(values.type) and dictionary:
            held = pa.concat_arrays([held.slice(1), values.slice(0, 1)])  # not one value throughout
        file = file_of(held, use_dictionary=dictionary)
        for other in range(len(values)):
            edit = ColumnEdit(np.array([7, 50]), values.take(pa.array([other, other])))
            assert left(file, edit) == ([] if at == other else [7, 50]), (values[at], values[other])


@pytest.mark.parametrize("kind", [name for name in VALUES if name not in ("list", "struct")])
def test_of_values_in_several_pages_only_the_new_ones_remain(kind: str) -> None:
    values = VALUES[kind]
    held = values.take(pa.array(np.arange(ROWS) % len(values)))
    rows = np.arange(0, ROWS, 3)
    shown = (rows + (rows % 2)) % len(values)  # every other row gets the next one's value
    edit = ColumnEdit(rows, values.take(pa.array(shown)))
    for options in ({}, {"use_dictionary": False}, {"write_page_index": False}):
        assert left(file_of(held, **options), edit) == rows[rows % 2 == 1].tolist()


def test_pages_that_were_given_only_values_that_they_have_are_counted() -> None:
    file = file_of(pa.array(np.arange(ROWS)))
    rows = np.array([5, 25, 26, 199])  # pages 0, 1 and 9
    edit = ColumnEdit(rows, pa.array([5, 25, 0, 199]))
    found = compared(SourceFile(file, "file"), Edits(rows, {"x": edit}), Options(threads=2))
    assert found.pages_equal == 2
    assert found.edits.columns["x"].rows.tolist() == [26]


def test_if_every_sampled_page_has_a_new_value_the_others_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, reads = list[int](), rows_of_pages.read_chunk_rows

    def counted(source: SourceFile, row_group: int, column: int, rows: Any, *more: Any) -> pa.Array:
        read.append(len(rows))
        return reads(source, row_group, column, rows, *more)

    monkeypatch.setattr(comparing, "read_chunk_rows", counted)
    file = file_of(pa.array(np.arange(ROWS)), max_rows_per_page=4, write_batch_size=4)
    rows = np.arange(ROWS)
    assert left(file, ColumnEdit(rows, pa.array(rows + (rows % 4 == 3)))) != []
    assert sum(read) == 8 * 4
    read.clear()
    # One page that has all of its values, among those looked at, and the rest is compared.
    new = pa.array(rows + (rows >= 4))
    assert left(file, ColumnEdit(rows, new)) == rows[4:].tolist()
    assert sum(read) == 8 * 4 + ROWS


CONSTANTS = [name for name in VALUES if name not in ("list", "struct", "float", "double", "half")]


@pytest.mark.parametrize("kind", [name for name in CONSTANTS if name != "double or null"])
def test_pages_of_one_value_are_compared_by_their_bounds(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> pa.Array:
        raise AssertionError("a page was read")

    monkeypatch.setattr(comparing, "read_chunk_rows", fails)
    values = VALUES[kind]
    # Of each page the rows have one value, and the pages have all.
    held = np.arange(ROWS) // ROWS_PER_PAGE % len(values)
    rows = np.arange(0, ROWS, 7)
    given = np.where(rows % 2 == 0, held[rows], (held[rows] + 1) % len(values))
    edit = ColumnEdit(rows, values.take(pa.array(given)))
    file = file_of(values.take(pa.array(held)), ours=True)
    assert left(file, edit) == rows[rows % 2 == 1].tolist()


def test_pages_of_one_value_and_others_are_compared_each_in_its_way() -> None:
    held = np.where(np.arange(ROWS) % 40 < 20, 1, np.arange(ROWS))
    rows = np.arange(0, ROWS, 3)
    edit = ColumnEdit(rows, pa.array(held[rows] + rows % 2))
    assert left(file_of(pa.array(held), ours=True), edit) == rows[rows % 2 == 1].tolist()


@pytest.mark.parametrize("held", [floats(0, NAN), floats(0, 1 << 63), pa.array([0.0, None])])
def test_bounds_do_not_tell_floating_point_values(held: pa.Array) -> None:
    file = file_of(held.take(pa.array([0] * (ROWS - 1) + [1])), ours=True)
    edit = ColumnEdit(np.array([0, ROWS - 1]), held.take(pa.array([0, 0])))
    assert left(file, edit) == [ROWS - 1]


def test_only_bounds_that_we_wrote_are_believed() -> None:
    """Nothing says that other writers' weren't cut."""
    same = pa.array(["same"] * ROWS)
    theirs, ours = (SourceFile(file_of(same, ours=ours), "file") for ours in (False, True))
    assert constant_pages(theirs, 0, 0) is None
    found = constant_pages(ours, 0, 0)
    assert found is not None
    assert found.values.to_pylist() == ["same"] * (ROWS // ROWS_PER_PAGE)


@pytest.mark.parametrize("kind", ["long", "list"])
def test_a_damaged_page_is_left_for_the_splice_to_report(kind: str) -> None:
    held = VALUES[kind].take(pa.array(np.arange(ROWS) % 2))
    file = file_of(held)
    data = bytearray(file.read())
    middle = SourceFile(pa.BufferReader(bytes(data)), "file").chunk(0, 0)
    data[middle.start + middle.compressed_size // 2] ^= 1
    edit = ColumnEdit(np.arange(ROWS), held)
    assert left(pa.BufferReader(bytes(data)), edit) == edit.rows.tolist()


def test_new_values_and_erased_ones_are_not_compared() -> None:
    file = file_of(pa.array(np.arange(ROWS)))
    edit = ColumnEdit(np.array([3]), pa.array([3]))
    assert left(file, edit, Options(erase=True)) == [3]
    known = Edits(edit.rows, {"x": edit}, known_new=frozenset("x"))
    assert compared(SourceFile(file, "file"), known, Options()).edits == known


@pytest.mark.parametrize(
    "edit",
    [
        ColumnEdit(np.array([ROWS]), pa.array([0])),
        ColumnEdit(np.array([-1]), pa.array([0])),
        ColumnEdit(np.array([0]), pa.array(["text"])),
    ],
)
def test_edits_that_do_not_fit_are_left_for_the_splice_to_refuse(edit: ColumnEdit) -> None:
    assert left(file_of(pa.array(np.arange(ROWS))), edit) == edit.rows.tolist()
