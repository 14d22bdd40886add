"""`lakesplice inspect pages` on one file and on two."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.command_line import CommandLine
from tests.support.parquet_parts import parquet, some_table

TABLE = some_table(500)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(TABLE))
    return path


def test_the_pages_of_a_file_are_listed_in_order(lakesplice: CommandLine, file: Path) -> None:
    rows = lakesplice("inspect", "pages", file, "--format", "json").rows
    assert len(rows) == 4 * 6
    dictionary, first, second, *_ = rows
    assert dictionary["kind"] == "dictionary"
    assert dictionary["page"] is None
    assert (first["column"], first["page"], first["first_row"]) == ("id", 0, 0)
    assert (second["page"], second["first_row"], second["values"]) == (1, 100, 100)
    assert second["encoding"] == "RLE_DICTIONARY"
    assert second["offset"] == first["offset"] + first["bytes"]
    assert second["checksum"] is True


def test_a_column_and_a_row_group_can_be_asked_for(lakesplice: CommandLine, file: Path) -> None:
    rows = lakesplice(
        "inspect", "pages", file, "--column", "few", "--row-group", 0, "--format", "json"
    ).rows
    assert {row["column"] for row in rows} == {"few"}
    assert "no such column" in lakesplice("inspect", "pages", file, "--column", "none").err
    assert "has no such row group" in lakesplice("inspect", "pages", file, "--row-group", 1).err
    cut = lakesplice("inspect", "pages", file, "--limit", 3)
    assert "there are more" in cut.err
    assert cut.code == 0


def test_rows_are_counted_where_there_is_no_index(lakesplice: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    path.write_bytes(parquet(TABLE, write_page_index=False, use_dictionary=False))
    rows = lakesplice("inspect", "pages", path, "--column", "id", "--format", "json").rows
    assert [row["first_row"] for row in rows] == [0, 100, 200, 300, 400]


def test_two_files_share_the_pages_that_are_the_same_bytes(
    lakesplice: CommandLine, file: Path, tmp_path: Path
) -> None:
    holes = pc.if_else(pc.equal(TABLE["id"], 250), 0.5, TABLE["holes"])
    changed = TABLE.set_column(3, "holes", holes).append_column("more", TABLE["id"])
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    before.write_bytes(parquet(TABLE, use_dictionary=False))
    after.write_bytes(parquet(changed, use_dictionary=False))
    *columns, total = lakesplice("inspect", "pages", before, after, "--format", "json").rows
    shares = {row["column"]: (row["pages_shared"], row["pages"]) for row in columns}
    assert shares == {"id": (5, 5), "few": (5, 5), "many": (5, 5), "holes": (4, 5), "more": (0, 5)}
    assert (total["column"], total["pages_shared"], total["pages"]) == (None, 19, 25)
    assert total["bytes_shared"] == sum(row["bytes_shared"] for row in columns)
    assert 0 < total["bytes_shared"] < total["bytes"]
    assert "(sum)" in lakesplice("inspect", "pages", before, after).out


def test_a_page_counts_as_often_as_the_first_file_has_it(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    once, thrice = tmp_path / "once.parquet", tmp_path / "thrice.parquet"
    rows = pa.table({"n": pa.array([7] * 100, pa.int32())})
    once.write_bytes(parquet(rows, use_dictionary=False))
    thrice.write_bytes(parquet(pa.concat_tables([rows] * 3), use_dictionary=False))
    *_, total = lakesplice("inspect", "pages", once, thrice, "--format", "json").rows
    assert (total["pages"], total["pages_shared"]) == (3, 1)


def test_a_file_that_is_not_parquet_is_named(lakesplice: CommandLine, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no pages here, but long enough")
    refused = lakesplice("inspect", "pages", text)
    assert refused.code == 1
    assert "notes.txt" in refused.err
    missing = lakesplice("inspect", "pages", tmp_path / "nothing.parquet")
    assert missing.code == 2
    assert "cannot be opened" in missing.err
    assert lakesplice("inspect", "pages", text, text, "--column", "x").code == 2
