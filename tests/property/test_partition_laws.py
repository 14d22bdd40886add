"""Partition columns: a row is in the files of its own partition alone, whatever moved it there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.planning.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.commit import Committed
from lakesplice.table.index import rebuild
from lakesplice.table.intents import Redirect
from lakesplice.table.ports import Store
from lakesplice.table.read import View
from lakesplice.table.settle import Settled
from lakesplice.table.snapshot import open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import (
    Source,
    memory_folder,
    require_finished,
    require_true,
    rows_of,
)

ALL = 1 << 60
KEYS = 3
POLICY = SchemaPolicy(partition_by=("name",))


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir=memory_folder()))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def started(source: Source, lake: Store, generation: int = 1) -> SimulatedDriver:
    return SimulatedDriver(
        lake,
        source.topic,
        FixedClock(),
        SeededEntropy(generation),
        generation=generation,
        ranges=2,
        read_tasks=2,
        policy=POLICY,
    )


def redirect(driver: SimulatedDriver, **changes: object) -> None:
    table = driver.table
    intent = replace(Redirect(table.generation, table.version), **changes)
    assert isinstance(table.commit(intent), Committed)


def read_again(driver: SimulatedDriver) -> None:
    source = driver.table.source
    partitions = {at: replace(state, next_offset=0) for at, state in source.partitions.items()}
    redirect(driver, source=replace(source, partitions=partitions))
    assert driver.batch() is Settled.DONE


def rebuild_index(driver: SimulatedDriver) -> None:
    table = driver.table
    assert table.snapshot is not None
    redirect(
        driver, runs=(rebuild(table.store, table.snapshot, SeededEntropy(1_000 + table.version)),)
    )


def require_apart(store: Store, root: Path) -> None:
    """Every file's rows are of the partition that manifest, log and folder name."""
    snapshot = open_snapshot(store)
    assert snapshot.log.metadata.partition_columns == ("name",)
    for path, file in snapshot.manifest.files.items():
        told = snapshot.log.adds[path].partition_values
        assert told == {"name": file.partition[0]}
        found = set(pq.read_table(root / path, partitioning=None).column("name").to_pylist())
        assert found <= {file.partition[0]}, path


STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(0, KEYS - 1), st.integers(0, 1)),
    st.tuples(st.just("put"), st.integers(0, KEYS - 1), st.integers(0, 1)),
    st.tuples(st.just("delete"), st.integers(0, KEYS - 1), st.integers(0, 1)),
    st.tuples(st.just("hear of one"), st.just(0), st.integers(0, 1)),
    st.tuples(
        st.sampled_from(["batch", "compact", "purge", "merge", "again", "rebuild"]),
        st.just(0),
        st.just(0),
    ),
)


def take_step(what: str, key: int, partition: int, source: Source, driver: SimulatedDriver) -> None:
    if what == "put":
        source.topic.append(partition, source.put(key))
    elif what == "delete" and key in source.keys:
        source.topic.append(partition, source.delete(key))
    elif what == "batch":
        assert driver.batch() is Settled.DONE
    elif what == "hear of one":
        ahead = driver.table.next_offsets((0, 1))
        ends = {**ahead, partition: source.topic.ends[partition]}
        assert driver.batch(ends) is Settled.DONE
    elif what == "compact":
        driver.compact()
    elif what == "merge":
        driver.merge_files(2)
        driver.merge_runs(2)
    elif what == "purge":
        driver.purge(ALL)
    elif what == "again":
        read_again(driver)
    elif what == "rebuild":
        rebuild_index(driver)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEP, min_size=5, max_size=50))
def test_rows_that_move_between_partitions_are_true_after_anything_and_after_all_of_it_again(
    steps: list[tuple[str, int, int]],
) -> None:
    source = Source()
    with folder() as path:
        driver = started(source, LocalStore(path))
        for partition in (0, 1):
            source.topic.append(partition, source.put(partition))
        assert driver.batch() is Settled.DONE
        root = path / driver.name.path
        for what, key, partition in steps:
            take_step(what, key, partition, source, driver)
            require_true(source, driver.table.store)
            require_apart(driver.table.store, root)
        for _ in range(2):
            read_again(driver)
            driver.compact()
            require_finished(source, driver)
            require_apart(driver.table.store, root)
            rebuild_index(driver)
        live = rows_of(driver.table.store, View.READ_OPTIMISED)
        for name in {row["name"] for row in live}:
            predicate = f"name = '{name}'" if name else "name is null"
            paths = DeltaTable(str(root)).file_uris(file_pruning_predicate=predicate)
            rows = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
            found = {row["id"] for row in rows if not row["_is_deleted"]}
            assert found == {row["id"] for row in live if row["name"] == name}


@settings(max_examples=40, deadline=None)
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
                assert cut.batch() is Settled.DONE
            else:
                take_step(what, key, 0, source, cut)
        whole = started(source, LocalStore(path / "whole"))
        for driver in (cut, whole):
            assert driver.batch() is Settled.DONE
            if driver.table.snapshot is not None:
                require_true(source, driver.table.store)
        if whole.table.snapshot is not None:
            assert rows_of(cut.table.store) == rows_of(whole.table.store)
