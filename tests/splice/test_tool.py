"""`lakesplice splice` and `splice_file`: a file's next version, or what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakesplice
from lakesplice.errors import CorruptFileError, UsageError
from tests.support.command_line import CommandLine

ROWS = 10_000


@pytest.fixture
def lakesplice_command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.parquet"
    at = np.arange(ROWS)
    table = pa.table({"id": at, "name": [f"n{n % 30}" for n in at], "price": at / 8})
    pq.write_table(table, path, write_page_index=True, max_rows_per_page=500)
    return path


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    path = tmp_path / "changes.parquet"
    pq.write_table(pa.table({"id": [5, 7_000, -1], "name": ["five", None, "nobody"]}), path)
    return path


def test_rows_are_changed_by_key_and_the_summary_says_what_was_done(
    source: Path, changes: Path, tmp_path: Path, lakesplice_command: CommandLine
) -> None:
    out = tmp_path / "out.parquet"
    (told,) = lakesplice_command.rows(
        "splice", source, "--changes", changes, "--key", "id", "--out", out
    )
    assert (told["rows"], told["rows_changed"], told["unmatched"]) == (ROWS, 2, 1)
    assert told["columns"] == ["name"]
    assert told["rewritten"] is None
    assert (told["pages_encoded"], told["pages_copied"]) == (2, 58)
    assert told["bytes_after"] == out.stat().st_size
    before, after = pq.read_table(source), pq.read_table(out)
    assert after.select(["id", "price"]).equals(before.select(["id", "price"]))
    names = before.column("name").to_pylist()
    names[5], names[7_000] = "five", None
    assert after.column("name").to_pylist() == names


def test_the_summary_is_readable(
    source: Path, changes: Path, tmp_path: Path, lakesplice_command: CommandLine
) -> None:
    ended = lakesplice_command(
        *("splice", source, "--changes", changes, "--key", "id", "--out", tmp_path / "o.parquet")
    )
    assert ended.code == 0, ended.err
    assert f"rows changed: 2 of {ROWS}, in name" in ended.out
    assert "changes that found no row: 1" in ended.out
    assert "pages copied: 58, encoded: 2" in ended.out


def test_rows_are_changed_by_position(source: Path, tmp_path: Path) -> None:
    changes = pa.table({"row": [ROWS - 1, 0], "price": [-1.0, None]})
    done = lakesplice.splice_file(source, changes, tmp_path / "out.parquet", by_position="row")
    assert (done.rows_changed, done.unmatched, done.columns) == (2, 0, ("price",))
    price = pq.read_table(tmp_path / "out.parquet").column("price")
    assert (price[0].as_py(), price[ROWS - 1].as_py()) == (None, -1.0)


def test_a_nested_column_is_encoded_whole_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"id": [1, 2], "tags": [["a"], None]}), path, write_page_index=True)
    changes = pa.table({"id": [2], "tags": [["new"]]})
    done = lakesplice.splice_file(path, changes, tmp_path / "out.parquet", key="id")
    assert (done.rewritten, done.encoded_whole) == (None, {"tags.list.element": "nested"})
    assert done.pages_copied == 1, "that of id"
    assert pq.read_table(tmp_path / "out.parquet").column("tags").to_pylist() == [["a"], ["new"]]


def test_a_file_that_cannot_be_spliced_is_rewritten_and_reported(tmp_path: Path) -> None:
    path, times = tmp_path / "int96.parquet", pa.array([1, 2, 3], pa.timestamp("us"))
    table = pa.table({"id": [1, 2], "at": times[:2]})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    changes = pa.table({"id": [2], "at": times[2:]})
    done = lakesplice.splice_file(path, changes, tmp_path / "out.parquet", key="id")
    assert done.rewritten == "other_layout"
    found = pq.read_table(tmp_path / "out.parquet").column("at")
    assert found.to_pylist() == [times[0].as_py(), times[2].as_py()]


def test_changes_without_a_row_can_be_refused(source: Path, changes: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no row of the file has"):
        lakesplice.splice_file(source, changes, tmp_path / "o", key="id", require_all=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changes.parquet", "source.parquet"]


def test_an_existing_target_is_left_alone(source: Path, changes: Path) -> None:
    before = source.read_bytes()
    with pytest.raises(UsageError, match="exists"):
        lakesplice.splice_file(source, changes, source, key="id")
    assert source.read_bytes() == before


@pytest.mark.parametrize("way", [{}, {"key": "id", "by_position": "id"}, {"key": []}])
def test_one_way_to_find_rows_must_be_named(
    way: dict[str, Any], source: Path, changes: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        lakesplice.splice_file(source, changes, tmp_path / "o", **way)


def test_a_damaged_source_leaves_no_target(source: Path, changes: Path, tmp_path: Path) -> None:
    source.write_bytes(source.read_bytes()[:-30])
    with pytest.raises(CorruptFileError, match=r"source\.parquet"):
        lakesplice.splice_file(source, changes, tmp_path / "o", key="id")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_wrong_call_ends_with_its_reason(
    source: Path, changes: Path, tmp_path: Path, lakesplice_command: CommandLine
) -> None:
    out = tmp_path / "o.parquet"
    missing = lakesplice_command(
        *("splice", tmp_path / "none", "--changes", changes, "--key", "id", "--out", out)
    )
    assert missing.code == 1
    assert "none" in missing.err
    wrong = lakesplice_command(
        "splice", source, "--changes", changes, "--key", "nome", "--out", out
    )
    assert wrong.code == 2
    assert "nome" in wrong.err
