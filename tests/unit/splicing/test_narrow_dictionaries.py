"""Arrow dictionaries with short indexes: a column that outgrows them can still be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakesplice
from lakesplice.errors import UsageError
from lakesplice.splicing.operations import append_rows
from lakesplice.storage.copying import FileSink

ROWS = 2000
NARROW = pa.dictionary(pa.int8(), pa.string())


def written(path: Path, kind: pa.DataType) -> Path:
    texts = pa.array([f"v{at % 100}" for at in range(ROWS)])
    field = pa.field("d", kind, metadata={"kept": "yes"})
    schema = pa.schema([("id", pa.int64()), field])
    table = pa.table([np.arange(ROWS), texts.dictionary_encode().cast(kind)], schema=schema)
    pq.write_table(table, path / "source.parquet", row_group_size=800, write_page_index=True)
    return path / "source.parquet"


def spliced(source: Path, count: int) -> pa.Table:
    target = source.with_name("target.parquet")
    changes = pa.table({"id": np.arange(count), "d": [f"new {at}" for at in range(count)]})
    lakesplice.splice_file(source, changes, target, key="id")
    found = pq.read_table(target)
    assert found.column("d").to_pylist()[:count] == changes.column("d").to_pylist()
    assert found.column("d").to_pylist()[count:] == pq.read_table(source)["d"].to_pylist()[count:]
    return found


def appended(source: Path, count: int) -> pq.ParquetFile:
    target = source.with_name("target.parquet")
    more = pa.table({"id": np.arange(count), "d": [f"more {at}" for at in range(count)]})
    with pa.memory_map(str(source)) as opened, pa.OSFile(str(target), "wb") as sink:
        append_rows(opened, "source", [more], FileSink(sink))
    found = pq.ParquetFile(target)
    last = found.read_row_group(found.num_row_groups - 1)
    assert last.column("d").to_pylist() == more["d"].to_pylist()
    return found


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()], ids=str)
def test_a_dictionary_that_outgrows_its_index_gets_a_wider_one(
    index: pa.DataType, tmp_path: Path
) -> None:
    found = spliced(written(tmp_path, pa.dictionary(index, pa.string())), 200)
    assert found.schema.field("d").type == pa.dictionary(pa.int32(), pa.string())
    assert found.schema.field("d").metadata[b"kept"] == b"yes"


# The file's texts are a hundred, and an index of eight bits with a sign tells 128 apart.
@pytest.mark.parametrize("new", [5, 28])
def test_a_dictionary_that_fits_keeps_its_index(new: int, tmp_path: Path) -> None:
    assert spliced(written(tmp_path, NARROW), new).schema.field("d").type == NARROW


@pytest.mark.parametrize(("count", "kept"), [(128, True), (129, False)])
def test_appended_rows_whose_values_fit_the_index_leave_it_as_it_is(
    count: int, kept: bool, tmp_path: Path
) -> None:
    assert (
        appended(written(tmp_path, NARROW), count).schema_arrow.field("d").type == NARROW
    ) is kept


def test_a_file_rewritten_whole_is_refused_rather_than_overflown(tmp_path: Path) -> None:
    source = written(tmp_path, NARROW)
    table = pq.read_table(source).append_column("t", pa.array(np.arange(ROWS), pa.timestamp("us")))
    pq.write_table(table, source, use_deprecated_int96_timestamps=True)
    times = pa.array(np.zeros(200, np.int64), pa.timestamp("us"))
    names = [f"new {at}" for at in range(200)]
    changes = pa.table({"id": np.arange(200), "d": names, "t": times})
    with pytest.raises(UsageError, match="don't fit a column's type"):
        lakesplice.splice_file(source, changes, tmp_path / "target.parquet", key="id")
    assert not (tmp_path / "target.parquet").exists()


def test_rows_are_appended_to_a_column_whose_index_is_too_short_for_them(tmp_path: Path) -> None:
    appended(written(tmp_path, NARROW), 300)
