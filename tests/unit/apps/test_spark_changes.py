"""How a stream of changes is shared out to tasks."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import StructType

from lakesplice.apps.library import Table
from lakesplice.apps.spark_source import LakespliceSource


def versions_per_task(folder: Path, first: int, end: int) -> list[list[int]]:
    options = {"path": str(folder), "changes": "true", "starting_version": str(first)}
    reader = LakespliceSource(options).streamReader(StructType())
    start, stop = ({"version": at, "whole": False} for at in (first, end))
    return [list(part.value) for part in reader.partitions(start, stop)]


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
