"""`lakesplice.merge_files` and similar functions write a new file that is complete and checked, or
none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lakesplice
from lakesplice.apps.library.new_file import appearing
from lakesplice.errors import CorruptFileError, LakespliceError, UnsupportedError, UsageError

TABLE = pa.table({"id": np.arange(1000), "name": [f"n{at % 9}" for at in range(1000)]})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.parquet"
    pq.write_table(TABLE, path, row_group_size=400, write_page_index=True)
    return path


def test_files_are_merged(source: Path, tmp_path: Path) -> None:
    done = lakesplice.merge_files([source, str(source)], tmp_path / "target")
    assert (done.rows, done.pages_encoded) == (2000, 0)
    assert done.bytes_after == (tmp_path / "target").stat().st_size
    assert pq.read_table(tmp_path / "target").equals(pa.concat_tables([TABLE, TABLE]))


def test_rows_are_appended(source: Path, tmp_path: Path) -> None:
    more = TABLE.slice(0, 10)
    assert lakesplice.append_rows(source, more, tmp_path / "one").rows == 1010
    assert lakesplice.append_rows(source, [more, more], tmp_path / "two").rows == 1020
    assert pq.read_table(tmp_path / "one").slice(1000).equals(more)


def test_columns_are_added_dropped_and_replaced(source: Path, tmp_path: Path) -> None:
    lakesplice.add_column(
        source, pa.field("flag", pa.bool_()), tmp_path / "more", value=True, before="name"
    )
    more = pq.read_table(tmp_path / "more")
    assert more.column_names == ["id", "flag", "name"]
    assert pc.all(more.column("flag")).as_py()
    lakesplice.drop_column(tmp_path / "more", "id", tmp_path / "less")
    assert pq.read_table(tmp_path / "less").column_names == ["flag", "name"]
    lakesplice.replace_column(
        source, pa.field("id", pa.string()), lambda old: old.cast(pa.string()), tmp_path / "other"
    )
    assert pq.read_table(tmp_path / "other").column("id")[7].as_py() == "7"


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda source, out: lakesplice.merge_files([], out), UsageError),
        (lambda source, out: lakesplice.drop_column(source, "colour", out), UsageError),
        (
            lambda source, out: lakesplice.append_rows(source, pa.table({"id": [1]}), out),
            UsageError,
        ),
        (lambda source, out: lakesplice.merge_files([source], source), UsageError),
        (
            lambda source, out: lakesplice.add_column(
                source, pa.field("l", pa.list_(pa.int8())), out
            ),
            UnsupportedError,
        ),
    ],
)
def test_work_that_fails_leaves_no_files(
    work: Callable[[Path, Path], object],
    error: type[LakespliceError],
    source: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(error):
        work(source, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_a_file_is_opened_again_before_it_gets_its_name(source: Path, tmp_path: Path) -> None:
    whole = source.read_bytes()
    for data in (whole[:-1], whole[:-9] + b"!" + whole[-8:], b""):
        with (
            pytest.raises(CorruptFileError, match="partial"),
            appearing(tmp_path / "target") as sink,
        ):
            sink.write(data)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_a_check_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def refuse(written: pa.NativeFile, path: str) -> None:
        assert pq.read_table(written).equals(TABLE)
        raise CorruptFileError("it isn't what was meant", path=path)

    with (
        pytest.raises(CorruptFileError, match="isn't what was meant"),
        appearing(tmp_path / "target", refuse) as sink,
    ):
        pq.write_table(TABLE, sink)
    assert not list(tmp_path.iterdir())
