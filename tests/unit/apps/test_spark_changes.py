"""How a stream of changes is divided among tasks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from lakesplice.apps.library.table import Table
from lakesplice.apps.spark_format.changes import ChangesStream
from lakesplice.apps.spark_format.source import LakespliceSource
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.changes import ChangesPart, changes_of


def versions_per_task(folder: Path, first: int, end: int) -> list[list[int]]:
    return [list(part.versions) for part in parts_of(stream(folder, first), first, end)]


def stream(folder: Path, first: int) -> ChangesStream:
    options = {"path": str(folder), "changes": "true", "starting_version": str(first)}
    reader = LakespliceSource(options).streamReader(StructType())
    assert isinstance(reader, ChangesStream)
    return reader


def parts_of(reader: ChangesStream, first: int, end: int) -> list[Any]:
    start, stop = ({"version": at, "whole": False} for at in (first, end))
    return list(reader.partitions(start, stop))


@pytest.mark.slow
def test_small_commits_share_a_task_and_large_ones_have_one_each(tmp_path: Path) -> None:
    folder, chance = tmp_path / "s" / "t", random.Random(7)
    table = Table.create(folder, pa.table({"id": [1, 2], "body": [b"", b""]}), key=["id"])
    for number in range(6):
        table.upsert(pa.table({"id": [1], "body": [b"%d" % number]}))
    small = table.version + 1
    for _ in range(3):
        table.upsert(pa.table({"id": [2], "body": [chance.randbytes(9 << 20)]}))
    assert versions_per_task(folder, 1, small) == [[1, 2, 3, 4], [5, 6]]
    assert versions_per_task(folder, small, table.version + 1) == [[7], [8], [9]]
    assert versions_per_task(folder, 1, table.version + 1) == [[1, 2, 3, 4], [5, 6, 7], [8], [9]]


@pytest.mark.slow
def test_a_large_commit_is_cut_by_its_files_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    folder, chance = tmp_path / "s" / "t", random.Random(7)
    table = Table.create(folder, pa.table({"id": [1], "body": [b""]}), key=["id"])
    bodies = [chance.randbytes(9 << 20) for _ in range(2)]
    table.upsert(pa.table({"id": [1, 2], "body": bodies}))
    version = table.version
    reader = stream(folder, version)
    parts = parts_of(reader, version, version + 1)
    assert [list(part.versions) for part in parts] == [[version], [version]]
    told = [pa.Table.from_batches(reader.read(part)) for part in parts]
    assert [rows.num_rows for rows in told] == [1, 1]
    found = pa.concat_tables(told).sort_by("id")
    assert found.column("body").to_pylist() == bodies
    assert found.column("_commit_version").to_pylist() == [version] * 2


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shares_of_any_number_are_the_whole_together(tmp_path: Path, of: int) -> None:
    folder = tmp_path / "s" / "t"
    table = Table.create(folder, pa.table({"id": [0, 1], "n": [0, 0]}), key=["id"])
    for first in (2, 4, 6):
        table.upsert(pa.table({"id": [first, first + 1], "n": [0, 0]}))
    table.upsert(pa.table({"id": [1, 3, 5, 7, 8, 9], "n": [1] * 6}))
    store = LocalStore(folder)
    schema = open_snapshot(store).manifest.schema
    told = [
        key
        for at in range(of)
        for rows in changes_of(store, table.version, ["id"], schema, ChangesPart(at, of))
        for key in rows.column("id").to_pylist()
    ]
    assert sorted(told) == [1, 3, 5, 7, 8, 9]
