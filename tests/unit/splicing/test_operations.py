"""Files made from the chunks of others: merged, with appended rows, and with added, dropped or
rebuilt columns.
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
from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.metadata.writer_names import CREATED_BY
from lakesplice.splicing.operations import (
    NewColumn,
    add_columns,
    append_rows,
    drop_column,
    merge_files,
    replace_column,
)
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Sink
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.copying import FileSink

ROWS = 1000
TABLE = pa.table(
    {
        "id": pa.array(np.arange(ROWS)),
        "name": pa.array([f"name {at % 37}" for at in range(ROWS)]),
        "price": pa.array([None if at % 7 == 0 else at / 4 for at in range(ROWS)], pa.float64()),
    }
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.parquet"
    order = pq.SortingColumn.from_ordering(TABLE.schema, [("id", "ascending")])
    pq.write_table(
        TABLE,
        path,
        row_group_size=400,
        max_rows_per_page=100,
        write_batch_size=50,
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=order,
    )
    return path


def made(source: Path, operation: Callable[[pa.NativeFile, Sink], Spliced]) -> pa.Table:
    target = source.with_name("target.parquet")
    with pa.memory_map(str(source)) as opened, pa.OSFile(str(target), "wb") as sink:
        done = operation(opened, FileSink(sink))
    found = pq.read_table(target, page_checksum_verification=True)
    assert done.rows == found.num_rows
    return found


def target_of(source: Path) -> pq.FileMetaData:
    return pq.read_metadata(source.with_name("target.parquet"))


def test_the_version_that_files_are_signed_with_is_the_packages() -> None:
    assert f"lakesplice version {lakesplice.__version__}" == CREATED_BY


def test_merged_files_hold_the_row_groups_of_all(source: Path) -> None:
    def merge(opened: pa.NativeFile, sink: Sink) -> Spliced:
        return merge_files([(opened, "a"), (opened, "b")], sink)

    assert made(source, merge).equals(pa.concat_tables([TABLE, TABLE]).combine_chunks())
    assert target_of(source).num_row_groups == 6


def test_files_of_different_schemas_are_not_merged(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(TABLE.drop_columns(["name"]), other)

    def merge(opened: pa.NativeFile, sink: Sink) -> Spliced:
        with pa.memory_map(str(other)) as second:
            return merge_files([(opened, "a"), (second, "b")], sink)

    with pytest.raises(UnsupportedError, match="the same schema"):
        made(source, merge)


def test_appended_rows_come_behind_the_old(source: Path) -> None:
    more = TABLE.slice(100, 300)
    found = made(source, lambda opened, sink: append_rows(opened, "a", [more], sink))
    assert found.equals(pa.concat_tables([TABLE, more]).combine_chunks())


@pytest.mark.parametrize("value", [None, "grün"])
@pytest.mark.parametrize("before", [None, "id", "price"])
def test_an_added_column_is_constant_where_it_is_not_edited(
    source: Path, value: str | None, before: str | None
) -> None:
    rows = np.array([5, 399, 400, 999])
    new = pa.array(["a", "b", None, "c"])
    names = pa.array(["x", "x", "y", "z"])
    edits = Edits(rows, {"colour": ColumnEdit(rows, new), "name": ColumnEdit(rows, names)})
    column = NewColumn(
        pa.field("colour", pa.string()), None if value is None else pa.scalar(value), before
    )
    found = made(source, lambda opened, sink: add_columns(opened, "a", [column], edits, sink))
    colours = [value] * ROWS
    expected = TABLE.column("name").to_pylist()
    for row, colour, name in zip(rows.tolist(), new.to_pylist(), names.to_pylist(), strict=True):
        colours[row], expected[row] = colour, name
    assert found.column("colour").to_pylist() == colours
    assert found.column("name").to_pylist() == expected
    assert found.column("price").equals(TABLE.column("price"))
    places = {None: 3, "id": 0, "price": 2}
    assert found.column_names.index("colour") == places[before]
    order = target_of(source).row_group(0).sorting_columns
    assert [one.column_index for one in order] == [found.column_names.index("id")]


def test_a_dropped_column_is_gone_and_nothing_is_encoded(source: Path) -> None:
    def drop(opened: pa.NativeFile, sink: Sink) -> Spliced:
        done = drop_column(opened, "a", "name", sink)
        assert done.pages_encoded == 0
        return done

    assert made(source, drop).equals(TABLE.drop_columns(["name"]))


def test_a_column_that_does_not_exist_cannot_be_dropped(source: Path) -> None:
    with pytest.raises(UsageError, match="no such flat column"):
        made(source, lambda opened, sink: drop_column(opened, "a", "colour", sink))


def test_a_replaced_column_has_its_new_type_and_values(source: Path) -> None:
    field = pa.field("id", pa.string())

    def change(opened: pa.NativeFile, sink: Sink) -> Spliced:
        return replace_column(opened, "a", field, lambda old: pc.cast(old, pa.string()), sink)

    found = made(source, change)
    assert found.schema.field("id").type == pa.string()
    assert found.column("id").to_pylist() == [str(at) for at in range(ROWS)]
    assert found.drop_columns(["id"]).equals(TABLE.drop_columns(["id"]))
    assert not target_of(source).row_group(0).sorting_columns


def test_an_erased_value_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "source.parquet"
    names = [f"somebody {at % 50}" for at in range(ROWS)]
    names[123] = "Erika Mustermann"
    pq.write_table(
        pa.table({"name": names}),
        path,
        compression="none",
        max_rows_per_page=100,
        write_batch_size=50,
        write_page_index=True,
    )
    assert b"Erika" in path.read_bytes()
    edits = Edits(np.array([123]), {"name": ColumnEdit(np.array([123]), pa.array([None], "str"))})
    made(path, lambda opened, sink: splice(opened, "a", edits, sink, Options(erase=True)))
    assert b"Erika" not in path.with_name("target.parquet").read_bytes()


def test_a_file_with_copied_pages_names_its_first_writer(source: Path) -> None:
    made(source, lambda opened, sink: drop_column(opened, "a", "name", sink))
    target = source.with_name("target.parquet")
    with pa.memory_map(str(target)) as opened:
        file = SourceFile(opened, "target")
        assert file.footer.created_by == CREATED_BY
        assert (file.key_value(b"original.created.by") or b"").startswith(b"parquet-cpp-arrow")
