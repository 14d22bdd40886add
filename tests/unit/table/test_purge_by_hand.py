"""Purging a table fed by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from tests.support.by_hand import require_sound_index
from tests.support.command_line import CommandLine


def rows(*keys: int, name: str = "a") -> pa.Table:
    return pa.table({"id": list(keys), "name": [name] * len(keys)})


def stored(table: Table) -> int:
    return sum(file.rows for file in table.snapshot.manifest.files.values())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(tmp_path, rows(1, 2, 3, 4), key=["id"])


@pytest.mark.slow
def test_deleted_rows_leave_and_may_come_back(table: Table, tmp_path: Path) -> None:
    table.upsert(delete=pa.table({"id": [2, 3]}))
    assert table.purge(older_than_hours=0).rows == 0  # they wait
    table.compact()
    assert table.purge(older_than_hours=1).rows == 0  # deleted lately
    done = table.purge(older_than_hours=-1)
    assert (done.files, done.rows, done.version) == (1, 2, table.version)
    assert stored(table) == 2
    assert sorted(table.read()["id"].to_pylist()) == [1, 4]
    assert table.upsert(rows(2, 4, name="b")).inserted == 1
    table.compact()
    found = {row["id"]: row["name"] for row in table.read().to_pylist()}
    assert found == {1: "a", 2: "b", 4: "b"}
    require_sound_index(LocalStore(tmp_path), table)


@pytest.mark.slow
def test_a_file_with_only_deleted_rows_is_purged_completely(table: Table, tmp_path: Path) -> None:
    table.upsert(delete=pa.table({"id": [1, 2, 3, 4]}))
    table.compact()
    assert table.purge(older_than_hours=-1).rows == 4
    assert not table.snapshot.manifest.files
    assert table.read().num_rows == 0
    table.upsert(rows(1))
    assert table.read()["id"].to_pylist() == [1]
    require_sound_index(LocalStore(tmp_path), table)


@pytest.mark.slow
def test_older_versions_keep_what_left(table: Table) -> None:
    table.upsert(delete=pa.table({"id": [1]}))
    table.compact()
    before = table.version
    table.purge(older_than_hours=-1)
    assert table.read(version=before, include_deleted=True).num_rows == 4
    table.restore(before)
    assert stored(table) == 4


@pytest.mark.slow
def test_adopted_rows_are_purged_as_others(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows(1, 2, 3), tmp_path / "a.parquet")
    table = Table.adopt(tmp_path, key=["id"])
    assert table.purge(older_than_hours=-1).rows == 0
    table.upsert(delete=pa.table({"id": [2]}))
    table.compact()
    assert table.purge(older_than_hours=-1).rows == 1
    assert table.read()["id"].to_pylist() == [1, 3]
    require_sound_index(LocalStore(tmp_path), table)


@pytest.mark.slow
def test_the_command_purges(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lakesplice = CommandLine(capsys)
    table.upsert(delete=pa.table({"id": [2]}))
    table.compact()
    assert "0 deleted rows" in lakesplice("purge", tmp_path).out
    assert "1 deleted rows removed" in lakesplice("purge", tmp_path, "--older-than-hours", 0).out
    assert lakesplice("index", "check", tmp_path).code == 0


def test_a_table_that_a_source_feeds_is_refused(tmp_path: Path) -> None:
    from tests.support.simulated import Source, driver_of

    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(1))
    driver.batch()
    with pytest.raises(UsageError, match="source"):
        Table.open(tmp_path / "shop" / "goods").purge()
