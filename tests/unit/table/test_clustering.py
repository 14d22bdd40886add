"""Clustering: rows move to files with narrow ranges, and everything finds them there."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from lakesplice.errors import UsageError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.planning.upkeep.curve import COLUMNS_MAX
from lakesplice.planning.upkeep.file_merge import FileMergePolicy
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.clustering.clustering import Clustering, column_ids
from lakesplice.testing.doubles import SeededEntropy
from tests.support.by_hand import (
    COLUMNS,
    Row,
    created,
    given,
    require_rows,
    require_sound_index,
    rows_of,
)
from tests.support.simulated import Source, driver_of, require_finished, require_true

SMALL_FILES = ClusterPolicy(file_bytes=1_000)


def row(key: int, n: int = 0) -> Row:
    return {"id": key, "name": f"name {key % 7}", "n": n or key * 37 % 101, "price": None}


@pytest.mark.slow
def test_a_table_is_laid_out_once_and_every_reader_sees_the_same_rows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [row(key) for key in range(300)])
    table.upsert(given([row(key) for key in range(300, 400)], COLUMNS.names))
    table.upsert(given([row(2, 500)], COLUMNS.names), delete=given([row(3)], ["id"]))
    before, optimised = rows_of(table), rows_of(table, View.READ_OPTIMISED)
    done = table.optimize(["n", "id"], policy=SMALL_FILES)
    files = table.snapshot.manifest.files
    assert (done.files, done.files_written, done.rows) == (2, len(files), 400)
    assert len(files) > 2
    assert done.carried == 2
    assert rows_of(table) == before
    assert rows_of(table, View.READ_OPTIMISED) == optimised
    require_sound_index(store, table)
    ranges = [json.loads(add.stats or "") for add in table.snapshot.log.adds.values()]
    assert all(one["maxValues"]["n"] - one["minValues"]["n"] < 100 for one in ranges)
    paths = DeltaTable(str(tmp_path)).file_uris()
    found = duckdb.sql(f"select id from read_parquet({paths}) where not _is_deleted")
    assert sorted(key for (key,) in found.fetchall()) == sorted(optimised)
    entry = next(entry for entry in table.history() if entry.info.operation == "CLUSTER")
    assert entry.info.metrics["rows"] == 400
    assert entry.info.parameters.items() >= {("by", "n,id"), ("reason", "asked")}
    again = table.optimize(["n", "id"], policy=SMALL_FILES)
    assert (again.files, again.version) == (0, table.version)
    assert Clustering(store, ["n", "id"], SeededEntropy(1)).files(table.snapshot) == ()
    table.compact()
    require_rows(table, before)
    assert table.optimize(["n", "id"], policy=SMALL_FILES).files == 0
    assert table.merge_files(policy=FileMergePolicy(files_max=2)).files == 0
    assert {*DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()} >= {*before}


@pytest.mark.slow
def test_new_files_are_laid_out_with_small_cubes_and_other_columns_begin_again(
    tmp_path: Path,
) -> None:
    table = created(LocalStore(tmp_path), [row(key) for key in range(10)])
    table.optimize(["n"])
    table.upsert(given([row(key) for key in range(10, 20)], COLUMNS.names))
    planned = table.optimize(["n"], dry_run=True)
    assert (planned.files, planned.rows, planned.version) == (2, 20, table.version)
    assert table.optimize(["n"]).rows == 20
    assert table.optimize(["name"]).rows == 0
    table.upsert(given([row(key) for key in range(20, 25)], COLUMNS.names))
    assert table.optimize(["name"]).rows == 5
    table.upsert(given([row(25)], COLUMNS.names))
    assert table.optimize().rows == 6
    assert [table.optimize(full=True).rows, table.optimize(full=True).rows] == [26, 26]
    (only,) = table.snapshot.manifest.files.values()
    assert only.cube is not None
    assert only.cube.by == (table.snapshot.manifest.schema.by_source["name"].id,)
    assert rows_of(table) == {key: row(key) for key in range(26)}


def test_a_table_keeps_the_columns_that_it_was_created_with(tmp_path: Path) -> None:
    for wrong in (["nothing"], ["n", "n"]):
        with pytest.raises(UsageError):
            created(LocalStore(tmp_path / "wrong"), [row(1)], cluster_by=wrong)
    store = LocalStore(tmp_path / "right")
    table = created(store, [], cluster_by=["n", "id"])
    with pytest.raises(UsageError, match="none were chosen"):
        created(LocalStore(tmp_path / "none"), [row(1)]).optimize()
    table.upsert(given([row(key) for key in range(9)], COLUMNS.names))
    assert table.optimize().files == 1
    assert table.optimize(["name"]).files == 0
    table.upsert(given([row(9)], COLUMNS.names))
    assert table.optimize(["n"]).files == 1
    assert table.snapshot.manifest.upserts is not None
    assert table.snapshot.manifest.upserts.cluster_by == ("n",)


@pytest.mark.parametrize("by", [["nothing"], [], ["n", "n"]])
def test_other_columns_than_the_tables_are_refused(tmp_path: Path, by: list[str]) -> None:
    table = created(LocalStore(tmp_path), [row(1)])
    with pytest.raises(UsageError):
        table.optimize(by)
    assert table.version == 0


def test_a_table_is_laid_out_by_as_many_columns_as_the_curve_takes_and_no_more() -> None:
    names = [f"n{at}" for at in range(COLUMNS_MAX + 1)]
    long = ColumnType.parse("long")
    columns = [Column(at, name, name, long, "long") for at, name in enumerate(names)]
    schema = TableSchema(tuple(columns), ("n0",), (0, len(names)))
    assert column_ids(schema, names[:-1]) == tuple(range(COLUMNS_MAX))
    with pytest.raises(UsageError, match=f"1 to {COLUMNS_MAX} different columns"):
        column_ids(schema, names)


def test_rows_in_a_temporary_file_are_the_same_as_in_memory(tmp_path: Path) -> None:
    table = created(LocalStore(tmp_path), [row(key) for key in range(400)])
    found = [
        Clustering(
            LocalStore(tmp_path),
            ["n"],
            SeededEntropy(1 + number),
            policy=SMALL_FILES,
            open_scratch=scratch,
        ).plan(table.snapshot, 1)
        for number, scratch in enumerate((None, ScratchFile))
    ]
    stats = [[new.stats for new in made.outputs] for made in found if made is not None]
    assert len(stats[0]) > 2
    assert stats[0] == stats[1]


@pytest.mark.slow
def test_changes_that_come_while_rows_move_wait_at_the_new_addresses(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    table = driver.table
    for key in range(8):
        source.topic.append(key % 2, source.put(key))
    driver.batch()
    clustering = driver.clustering(("n",))
    assert table.snapshot is not None
    late = clustering.plan(table.snapshot, 1)
    overtaken = driver.plan_compaction()
    assert late is not None
    assert overtaken is None
    for key in (0, 1, 2, 9):
        source.topic.append(key % 2, source.put(key))
    source.topic.append(1, source.delete(5))
    driver.batch()
    overtaken = driver.plan_compaction()
    assert overtaken is not None
    outcome = table.commit(late)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.DELTAS
    carried = clustering.plan(table.snapshot, 1)
    assert carried is not None
    assert carried.outputs == late.outputs
    assert carried.counts["carried"] == 4
    source.topic.append(0, source.put(2))
    in_flight = driver.run_tasks(table.next_offsets((0, 1)), source.topic.ends)
    assert isinstance(table.commit(carried), Committed)
    require_true(source, table.store)
    for refused in (in_flight(), table.commit(overtaken)):
        assert isinstance(refused, Conflict)
        assert refused.reason in (ConflictCode.GROUPS, ConflictCode.FILES)
    driver.batch()
    require_true(source, table.store)
    driver.compact()
    require_finished(source, driver)


@pytest.mark.slow
def test_a_batch_of_new_rows_alone_neednt_be_planned_again(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(1))
    driver.batch()
    source.topic.append(0, source.put(2))
    batch = driver.run_tasks(driver.table.next_offsets((0, 1)), source.topic.ends)
    assert isinstance(driver.cluster(("n",)), Committed)
    assert not isinstance(batch(), Conflict)
    require_true(source, driver.table.store)


@pytest.mark.slow
def test_rows_are_laid_out_again_if_their_file_was_replaced_meanwhile(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for key in (1, 2):
        source.topic.append(0, source.put(key))
        driver.batch()
    clustering, table = driver.clustering(("n",)), driver.table
    assert table.snapshot is not None
    late = clustering.plan(table.snapshot, 1)
    source.topic.append(0, source.put(1))
    driver.batch()
    driver.compact()
    assert late is not None
    assert isinstance(table.commit(late), Conflict)
    again = clustering.plan(table.snapshot, 1)
    assert again is not None
    assert {new.base.path for new in again.outputs}.isdisjoint(n.base.path for n in late.outputs)
    assert isinstance(table.commit(again), Committed)
    require_finished(source, driver)


@pytest.mark.slow
def test_readers_of_changes_see_none_and_a_purged_file_stays_in_its_cube(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for key in range(4):
        source.topic.append(0, source.put(key))
    driver.batch()
    source.topic.append(0, [*source.put(1), *source.delete(2)])
    for partition in (0, 1):
        source.topic.append(partition, source.put(8 + partition))
    driver.batch()
    assert isinstance(driver.cluster(("n",)), Committed)
    reader = driver.table
    changes = Table(reader.store).changes(reader.version)
    assert changes.read_all().num_rows == 0
    driver.compact()
    assert isinstance(driver.purge(1 << 60), Committed)
    assert all(file.cube is not None for file in reader.manifest.files.values())
    require_true(source, reader.store)
