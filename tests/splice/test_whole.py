"""The plain rewrite of any Parquet file: the new file is like the source, or the rewrite is
refused.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.whole_rewrite import rewrite_whole
from tests.support.reader_matrix import same

ROWS = 3000


def rewritten(path: Path, edits: Edits | None = None) -> Path:
    target = path.with_name(f"new-{path.name}")
    with pa.memory_map(str(path)) as source, pa.OSFile(str(target), "wb") as sink:
        assert rewrite_whole(source, path.name, edits or Edits(), sink) >= 0
    return target


def edit(name: str, rows: list[int], values: list[Any], kind: pa.DataType) -> Edits:
    at = np.array(rows)
    return Edits(at, {name: ColumnEdit(at, pa.array(values, kind))})


def table() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "id": numbers,
            "name": pa.array([f"n{n % 50}" for n in numbers]),
            "price": pa.array(numbers / 7),
            "tags": pa.array([["a", str(n)] for n in numbers]),
        }
    ).replace_schema_metadata({"made by": "a test"})


def test_the_new_file_is_written_as_the_old_one_was(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    order = [pq.SortingColumn(0)]
    pq.write_table(
        table(),
        path,
        row_group_size=1100,
        compression={"id": "zstd", "name": "snappy", "price": "gzip", "tags.list.element": "none"},
        use_dictionary=["name"],
        column_encoding={"id": "DELTA_BINARY_PACKED", "price": "BYTE_STREAM_SPLIT"},
        write_page_index=True,
        max_rows_per_page=100,
        write_statistics=["id", "price"],
        data_page_version="2.0",
        sorting_columns=order,
    )
    before, after = pq.read_metadata(path), pq.read_metadata(rewritten(path))
    assert after.num_row_groups == before.num_row_groups == 3
    for group in range(3):
        old, new = before.row_group(group), after.row_group(group)
        assert new.num_rows == old.num_rows
        assert new.sorting_columns == old.sorting_columns
        for at in range(before.num_columns):
            was, now = old.column(at), new.column(at)
            assert (now.compression, now.encodings) == (was.compression, was.encodings)
            assert now.is_stats_set == was.is_stats_set
            assert now.has_offset_index == was.has_offset_index
            assert now.total_compressed_size == was.total_compressed_size
    kept = {**after.metadata}
    assert kept.pop(b"original.created.by") == before.created_by.encode()
    assert kept.keys() == before.metadata.keys()
    assert kept[b"made by"] == b"a test"


def test_a_sort_order_is_kept_only_while_its_column_is(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, sorting_columns=[pq.SortingColumn(0)])
    other = rewritten(path, edit("name", [1], ["x"], pa.string()))
    assert pq.read_metadata(other).row_group(0).sorting_columns
    same_column = rewritten(path, edit("id", [1], [9], pa.int64()))
    assert not pq.read_metadata(same_column).row_group(0).sorting_columns


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("x", pa.string())]), pa.null()])
def test_columns_of_any_type_can_be_edited(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    one = {"list": [1, None], "struct": {"x": "y"}, "null": None}[str(kind).partition("<")[0]]
    pq.write_table(pa.table({"c": pa.array([None, one] * 50, kind)}), path)
    got = pq.read_table(rewritten(path, edit("c", [0, 99], [one, None], kind)))
    assert got.column("c").to_pylist() == [one, *[one, None] * 49, None]


def test_dictionaries_stay_dictionaries(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    kind = pa.dictionary(pa.int8(), pa.string())
    pq.write_table(pa.table({"c": pa.array(["a", "b"] * 40, kind)}), path)
    got = pq.read_table(rewritten(path, edit("c", [3], ["new"], pa.string()))).column("c")
    assert got.type == kind
    assert got.to_pylist()[2:5] == ["a", "new", "a"]


@pytest.mark.parametrize("far", [False, True])
def test_int96_times_keep_their_type_and_value(far: bool, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    times = [dt.datetime(4000, 1, 1) if far else dt.datetime(2020, 1, 1), None]  # noqa: DTZ001
    pq.write_table(
        pa.table({"t": pa.array(times, pa.timestamp("us"))}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    target = rewritten(path)
    assert pq.ParquetFile(target).schema.column(0).physical_type == "INT96"
    got = pq.ParquetFile(target, coerce_int96_timestamp_unit="us").read()
    assert got.column("t").to_pylist() == times


def test_int96_times_that_fit_no_one_type_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    far = pa.array([dt.datetime(4000, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001
    fine = pa.array([1], pa.timestamp("ns"))
    pq.write_table(pa.table({"far": far, "fine": fine}), path, use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedError, match=path.name):
        rewritten(path)


def test_a_row_group_larger_than_the_bound_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    monkeypatch.setattr("lakesplice.splicing.whole_rewrite.ROW_GROUP_BYTES_MAX", 10_000)
    monkeypatch.setattr("lakesplice.splicing.whole_rewrite._BATCH_BYTES", 10_000)
    target = rewritten(path, edit("name", [0, ROWS - 1], ["x", "y"], pa.string()))
    assert pq.read_metadata(target).num_row_groups > 3
    got = pq.read_table(target)
    assert same(got.select(["id", "price", "tags"]), table().select(["id", "price", "tags"]))
    assert got.column("name").to_pylist()[:: ROWS - 1] == ["x", "y"]


def test_damage_is_reported_with_file_and_place(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[2000] ^= 255
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match=r"f\.parquet.*row group 0"):
        rewritten(path)
