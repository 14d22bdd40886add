"""Adoption of tables with partitions: their columns' types, keys and files."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.table.protocol.layout import commit_path
from tests.support.adopting import TWO, folder, refusal


def test_files_within_and_without_partitions_are_refused(tmp_path: Path) -> None:
    pq.write_to_dataset(TWO, tmp_path, partition_cols=["name"])
    assert "c.parquet is not in a folder of name" in refusal(folder(tmp_path, c=TWO))


def test_a_partition_is_not_hidden_by_the_first_letter_of_its_name(tmp_path: Path) -> None:
    pq.write_to_dataset(TWO.rename_columns(["id", "_name"]), tmp_path, partition_cols=["_name"])
    folder(tmp_path / "_temporary", a=TWO)
    folder(tmp_path / ".hidden", a=TWO)
    table = Table.adopt(tmp_path, key=["id"])
    assert sorted(table.read()["_name"].to_pylist()) == ["a", "b"]


def test_a_column_that_folders_are_named_by_and_files_have_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "name=a", a=TWO)
    assert "has a column 'name'" in refusal(tmp_path)


@pytest.mark.slow
def test_partitions_of_a_folder_get_the_type_that_all_values_are_written_as(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "whole": ["-7", "0", None],
            "padded": ["01", "2", "3"],
            "day": ["2024-02-29", None, "0001-01-01"],
            "no_day": ["2024-02-30", "2024-01-01", "2024-01-01"],
            "odd": ["a=b/c", "", "%20"],
        }
    )
    by = [name for name in rows.column_names if name != "id"]
    pq.write_to_dataset(rows, tmp_path, partition_cols=by)
    would = dict(Table.adoption(tmp_path, key=["id"]).columns)
    types = {"whole": "long", "padded": "string", "day": "date", "no_day": "string"}
    assert would == {"id": "long", **types, "odd": "string"}
    found = Table.adopt(tmp_path, key=["id"]).read().sort_by("id")
    assert found["whole"].to_pylist() == [-7, 0, None]
    assert found["padded"].to_pylist() == ["01", "2", "3"]
    assert found["day"].to_pylist() == [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]
    assert found["odd"].to_pylist() == ["a=b/c", None, "%20"]


def respelt(path: Path) -> str:
    """Let the log of a Delta table of one file spell its path as nobody else would."""
    log = path / commit_path(0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    spelt: str = "%" + format(ord(add["path"][0]), "x") + add["path"][1:]
    add["path"] = spelt
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return spelt


def test_a_file_that_stays_under_a_name_in_unusual_escapes_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), TWO)
    respelt(tmp_path)
    assert "unusual escapes" in refusal(tmp_path)


def test_a_file_that_is_rewritten_leaves_the_log_under_the_name_that_it_had(
    tmp_path: Path,
) -> None:
    one = TWO.slice(0, 1)
    deltalake.write_deltalake(str(tmp_path), one, partition_by=["name"])
    spelt = respelt(tmp_path)
    table = Table.adopt(tmp_path, key=["id"])
    log = (tmp_path / commit_path(table.version)).read_text().splitlines()
    (removed,) = (line["remove"] for line in map(json.loads, log) if "remove" in line)
    assert (removed["path"], removed["partitionValues"]) == (spelt, {"name": "a"})
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize("keyed", ["id", "name"])
def test_keys_in_partitions_are_indexed(tmp_path: Path, keyed: str) -> None:
    deltalake.write_deltalake(str(tmp_path), TWO, partition_by=[keyed])
    table = Table.adopt(tmp_path, key=[keyed])
    table.upsert(pa.table({"id": [2, 3], "name": ["b", "c"]}), delete=TWO.select([keyed])[:1])
    assert table.read(columns=["id", "name"]).sort_by("id").to_pydict() == {
        "id": [2, 3],
        "name": ["b", "c"],
    }


def test_a_null_partition_is_no_key(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=["name"])
    assert "row 0 of name=__HIVE_DEFAULT_PARTITION__" in refusal(tmp_path, "name")


def test_a_file_of_a_partition_that_can_t_stay_is_rewritten_as_a_whole(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.uint16()), "name": ["a", "b"]})
    pq.write_to_dataset(rows, tmp_path, partition_cols=["name"])
    table = Table.adopt(tmp_path, key=["id"])
    assert table.read(columns=["id", "name"]).sort_by("id").to_pydict() == rows.to_pydict()
