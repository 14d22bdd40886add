"""Our reader reads the acceptance tables of the Delta project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

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


def test_a_table_of_others_is_none_of_ours(shared: SharedPages) -> None:
    case = shared("corpora", "delta-acceptance", "with_checkpoint")
    with pytest.raises(TableNotFoundError):
        open_snapshot(LocalStore(case / "delta"))
