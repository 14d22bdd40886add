"""Partition columns: a row is only in files of its own partition, however it was moved."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.index_check import rebuild
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import (
    Source,
    folder,
    require_finished,
    require_true,
    rows_of,
)
from tests.support.steps import KEYS, Step, read_again, redirect, steps, take_step

ONE_FILE = st.tuples(st.just("compact a file"), st.integers(0, 5), st.just(0))
POLICY = SchemaPolicy(partition_by=("name",))


def started(source: Source, lake: Store) -> SimulatedDriver:
    return SimulatedDriver(
        lake,
        source.topic,
        FixedClock(),
        SeededEntropy(1),
        ranges=2,
        read_tasks=2,
        policy=POLICY,
    )


def rebuild_index(driver: SimulatedDriver) -> None:
    table = driver.table
    assert table.snapshot is not None
    redirect(
        driver, runs=(rebuild(table.store, table.snapshot, SeededEntropy(1_000 + table.version)),)
    )


def seen_elsewhere(root: Path) -> set[int]:
    """The keys that a Delta reader of the newest version finds, none of them twice."""
    rows = DeltaTable(str(root)).to_pyarrow_table(columns=["id", "_is_deleted"]).to_pylist()
    keys = [row["id"] for row in rows if not row["_is_deleted"]]
    assert len(keys) == len({*keys}), sorted(keys)
    return {*keys}


def require_apart(store: Store, root: Path) -> None:
    """Every file's rows are of the partition that manifest, log and folder name."""
    snapshot = open_snapshot(store)
    assert snapshot.log.metadata.partition_columns == ("name",)
    for path, file in snapshot.manifest.files.items():
        told = snapshot.log.adds[path].partition_values
        assert told == {"name": file.partition[0]}
        found = set(pq.read_table(root / path, partitioning=None).column("name").to_pylist())
        assert found <= {file.partition[0]}, path


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(taken=st.lists(steps("rebuild", puts=2) | ONE_FILE, min_size=5, max_size=50))
def test_rows_that_move_between_partitions_are_true_after_anything_and_after_all_of_it_again(
    taken: list[Step],
) -> None:
    source = Source()
    with folder() as path:
        driver = started(source, LocalStore(path))
        for partition in (0, 1):
            source.topic.append(partition, source.put(partition))
        assert driver.batch() is CommitOutcome.DONE
        root = path / driver.name.path
        seen = seen_elsewhere(root)
        for step in taken:
            take_step(step, source, driver)
            if step[0] == "compact a file":
                files = sorted(driver.table.manifest.files)
                driver.compact([files[step[1] % len(files)]])
            before, seen = seen, seen_elsewhere(root)
            live = {row["id"] for row in source.truth(driver.table.next_offsets((0, 1)))}
            assert before & live <= seen, "a row that was seen is hidden, though it lives"
            if step[0] == "rebuild":
                rebuild_index(driver)
            require_true(source, driver.table.store)
            require_apart(driver.table.store, root)
        for _ in range(2):
            read_again(driver)
            driver.compact()
            require_finished(source, driver)
            require_apart(driver.table.store, root)
            rebuild_index(driver)
        rest = rows_of(driver.table.store, View.READ_OPTIMISED)
        for name in {row["name"] for row in rest}:
            predicate = f"name = '{name}'" if name else "name is null"
            paths = DeltaTable(str(root)).file_uris(file_pruning_predicate=predicate)
            rows = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
            found = {row["id"] for row in rows if not row["_is_deleted"]}
            assert found == {row["id"] for row in rest if row["name"] == name}


@settings(max_examples=examples(40), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "put", "delete", "cut"]), st.integers(0, KEYS - 1)),
        min_size=3,
        max_size=30,
    )
)
def test_how_changes_are_cut_into_batches_makes_no_difference_to_where_rows_are(
    steps: list[tuple[str, int]],
) -> None:
    source = Source()
    with folder() as path:
        cut = started(source, LocalStore(path / "cut"))
        for what, key in steps:
            if what == "cut":
                assert cut.batch() is CommitOutcome.DONE
            else:
                take_step((what, key, 0), source, cut)
        whole = started(source, LocalStore(path / "whole"))
        for driver in (cut, whole):
            assert driver.batch() is CommitOutcome.DONE
            if driver.table.snapshot is not None:
                require_true(source, driver.table.store)
        if whole.table.snapshot is not None:
            assert rows_of(cut.table.store) == rows_of(whole.table.store)
