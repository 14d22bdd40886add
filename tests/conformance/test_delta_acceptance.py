"""The acceptance tables of the Delta project: read, and adopted where their features allow it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.errors import TableNotFoundError, UnsupportedError
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot, read_log

WITHIN_REACH = (
    "all_primitive_types",
    "basic_append",
    "basic_partitioned",
    "cdf",
    "generated_columns",
    "multi_partitioned",
    "multi_partitioned_2",
    "nested_types",
    "no_replay",
    "no_stats",
    "partitioned_with_null",
    "stats_as_struct",
    "with_checkpoint",
    "with_schema_change",
)
FOR_NEWER_READERS = (
    "check_constraints",
    "column_mapping",
    "deletion_vectors",
    "iceberg_compat_v1",
    "timestamp_ntz",
)
# Tables that can be adopted, with a key; and why others can't, where the refusal names it.
ADOPTED = {
    "all_primitive_types": "utf8",
    "basic_append": "letter",
    "basic_partitioned": "number",
    "multi_partitioned_2": "time",
    "no_replay": "int",
    "no_stats": "int",
    "partitioned_with_null": "number",
    "stats_as_struct": "int",
    "with_checkpoint": "int",
    "with_schema_change": "num1",
}
NOT_ADOPTED = {
    "cdf": "delta.enableChangeDataFeed",
    "check_constraints": "deletionVectors",
    "column_mapping": "column mapping",
    "deletion_vectors": "deletionVectors",
    "generated_columns": "generation expression",
    "iceberg_compat_v1": "column mapping",
    "multi_partitioned": "isn't one exact binary",
    "nested_types": "type struct",
    "timestamp_ntz": "timestampNtz",
}
SharedPages = Callable[..., Path]


@pytest.mark.parametrize("name", WITHIN_REACH)
def test_a_table_of_others_replays_to_the_files_that_hold_its_rows(
    shared: SharedPages, name: str
) -> None:
    case = shared("corpora", "delta-acceptance", name)
    root = case / "delta"
    for expected in (case / "expected").iterdir():
        version = None if expected.name == "latest" else int(expected.name.removeprefix("v"))
        state = read_log(LocalStore(root), version)
        judge = DeltaTable(str(root), version=version)
        assert state.version == judge.version()
        assert state.adds.keys() == {_relative(uri, root) for uri in judge.file_uris()}
        rows = (pq.read_metadata(file).num_rows for file in expected.rglob("*.parquet"))
        assert sum(pq.read_metadata(root / path).num_rows for path in state.adds) == sum(rows)


def _relative(uri: str, root: Path) -> str:
    return Path(uri.removeprefix("file://")).relative_to(root).as_posix()


@pytest.mark.parametrize("name", FOR_NEWER_READERS)
def test_a_table_for_newer_readers_is_refused_by_name(shared: SharedPages, name: str) -> None:
    case = shared("corpora", "delta-acceptance", name)
    with pytest.raises(UnsupportedError, match="Delta reader version"):
        read_log(LocalStore(case / "delta"))


def test_no_acceptance_table_is_left_out(shared: SharedPages) -> None:
    folders = shared("corpora", "delta-acceptance").iterdir()
    assert {folder.name for folder in folders} == {*WITHIN_REACH, *FOR_NEWER_READERS}
    assert {*ADOPTED, *NOT_ADOPTED} == {*WITHIN_REACH, *FOR_NEWER_READERS}


@pytest.mark.parametrize(("name", "key"), ADOPTED.items())
def test_an_adopted_table_of_others_has_the_rows_that_delta_expects(
    shared: SharedPages, name: str, key: str, tmp_path: Path
) -> None:
    case, table = shared("corpora", "delta-acceptance", name), tmp_path / name
    shutil.copytree(case / "delta", table)
    expected = pa.concat_tables(
        (pq.read_table(file) for file in (case / "expected" / "latest").rglob("*.parquet")),
        promote_options="permissive",
    )
    adopted = Table.adopt(table, key=[key])
    assert _rows(adopted.read(), expected.column_names) == _rows(expected, expected.column_names)
    elsewhere = pa.table(DeltaTable(str(table)).to_pyarrow_table())
    assert _rows(elsewhere, expected.column_names) == _rows(expected, expected.column_names)


@pytest.mark.parametrize(("name", "reason"), NOT_ADOPTED.items())
def test_a_table_of_others_that_cannot_be_adopted_is_refused_by_its_feature(
    shared: SharedPages, name: str, reason: str, tmp_path: Path
) -> None:
    table = tmp_path / name
    shutil.copytree(shared("corpora", "delta-acceptance", name, "delta"), table)
    first = DeltaTable(str(table)).schema().fields[0].name
    with pytest.raises(UnsupportedError, match=reason):
        Table.adopt(table, key=[first])


def _rows(table: pa.Table, columns: list[str]) -> list[str]:
    return sorted(map(repr, table.select(columns).to_pylist()))


def test_a_table_of_others_is_none_of_ours(shared: SharedPages) -> None:
    case = shared("corpora", "delta-acceptance", "with_checkpoint")
    with pytest.raises(TableNotFoundError):
        open_snapshot(LocalStore(case / "delta"))
