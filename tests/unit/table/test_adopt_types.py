"""Adoption of files of several types: what they become, and which are rewritten."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.errors import (
    UsageError,
)
from tests.support.adopting import TWO, folder

UNKNOWN_TO_DELTA = {
    "unsigned": pa.array([1, 2], pa.uint32()),
    "without_zone": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, pa.timestamp("us")),
    "nanoseconds": pa.array(
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, pa.timestamp("ns", tz="UTC")
    ),
    "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    "half": pa.array([1.5, 2.5], pa.float32()).cast(pa.float16()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNKNOWN_TO_DELTA)
def test_a_file_with_a_type_unknown_to_delta_readers_is_rewritten(
    tmp_path: Path, kind: str
) -> None:
    folder(
        tmp_path,
        a=TWO.append_column("c", UNKNOWN_TO_DELTA[kind]),
        b=TWO.set_column(0, "id", pa.array([3, 4])),
    )
    would = Table.adoption(tmp_path, key=["id"])
    assert would.rewritten.keys() == {"a.parquet"}
    table = Table.adopt(tmp_path, key=["id"])
    assert {path.partition("/")[0] for path in table.snapshot.manifest.files} == {
        "base",
        "b.parquet",
    }
    found = table.read().sort_by("id")
    assert found["id"].to_pylist() == [1, 2, 3, 4]
    assert found["c"].null_count == 2
    theirs = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert pa.table(theirs).sort_by("id")["c"].to_pylist() == found["c"].to_pylist()
    table.upsert(pa.table({"id": [1, 3], "name": ["x", "y"]}))
    table.compact()
    assert table.read().sort_by("id")["name"].to_pylist() == ["x", "b", "y", "b"]


def test_numbers_of_several_widths_become_the_widest(tmp_path: Path) -> None:
    narrow = TWO.append_column("n", pa.array([1, None], pa.int16()))
    wide = pa.table({"id": [3], "name": ["c"], "n": pa.array([1 << 40])})
    table = Table.adopt(folder(tmp_path, a=narrow, b=wide), key=["id"])
    assert table.schema.field("n").type == pa.int64()
    assert table.read().sort_by("id")["n"].to_pylist() == [1, None, 1 << 40]


def test_values_that_no_column_can_hold_are_refused(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("ns", tz="UTC"))
    folder(tmp_path, a=TWO.append_column("at", times))
    with pytest.raises(UsageError, match="has values that its type"):
        Table.adopt(tmp_path, key=["id"])


def test_a_file_without_a_column_shows_nulls(tmp_path: Path) -> None:
    table = Table.adopt(folder(tmp_path, a=TWO, b=pa.table({"id": [3]})), key=["id"])
    assert table.read().sort_by("id")["name"].to_pylist() == ["a", "b", None]
    table.upsert(pa.table({"id": [3], "name": ["c"]}))
    table.compact()
    assert table.read().sort_by("id")["name"].to_pylist() == ["a", "b", "c"]


@pytest.mark.slow
def test_files_of_large_strings_and_dictionaries_are_unchanged(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array(["a", "b"], pa.large_string()),
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "v": pa.array([b"x", None], pa.large_binary()),
        }
    )
    folder(tmp_path, a=rows)
    assert not Table.adoption(tmp_path, key=["id"]).rewritten
    table = Table.adopt(tmp_path, key=["id"])
    table.upsert(pa.table({"id": ["b"], "c": ["z"]}))
    assert table.read()["c"].to_pylist() == ["x", "z"]
    table.compact()
    assert table.read(view="read_optimised")["c"].to_pylist() == ["x", "z"]
    assert table.read()["v"].to_pylist() == [b"x", None]
