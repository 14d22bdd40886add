"""Memory and batch sizes are bounded for large transactions, hot keys, wide tables, and the row
index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.splice.memory import anonymous_bytes, watched
from lakesplice.formats.rowindex import Entries
from lakesplice.model.arrays import KeyHashes
from lakesplice.model.offsets import Offset
from lakesplice.planning.rows.locate import locate
from lakesplice.spark.jobs.decode_stage import ANSWERS, decode_records
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.index_runs import RunCache, write_merged, write_run
from lakesplice.table.reading.table import Table
from lakesplice.testing.compare import compare
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, TableSpec
from lakesplice.testing.shop.columns import bigint, integer
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.simulated import SMALL, Source, driver_of, require_finished, row

TRANSACTION_ROWS, OFFSETS_PER_BATCH = 12_000, 2_000
HOT_CHANGES, KEYS = 12_000, 50
COLUMNS, ROWS = 4_000, 20
BLOCKS, ENTRIES_PER_BLOCK = 12, 1 << 18
ENTRY_BYTES = 24


def test_a_giant_transaction_is_taken_in_batches_that_each_continue(tmp_path: Path) -> None:
    """A batch ends where its offsets do, wherever that is in a transaction."""
    source = Source()
    with source.database.transaction():
        source.database.insert(SMALL.name, [row(key, key) for key in range(TRANSACTION_ROWS)])
    source.topic.append(0, source.database.drain())
    driver = driver_of(source, LocalStore(tmp_path))
    for end in range(OFFSETS_PER_BATCH, TRANSACTION_ROWS + 1, OFFSETS_PER_BATCH):
        driver.batch({0: Offset(end), 1: Offset(0)})
        assert Table(driver.table.store).read().num_rows == end
    driver.compact()
    require_finished(source, driver)


def test_a_hot_key_is_one_change_before_it_is_passed_on_to_other_tasks(tmp_path: Path) -> None:
    source = Source()
    for key in range(KEYS):
        source.topic.append(0, source.put(key))
    driver = driver_of(source, LocalStore(tmp_path))
    driver.batch()
    starts = source.topic.ends
    for key in (*range(KEYS), *[0] * HOT_CHANGES):
        source.topic.append(0, source.put(key))
    plan = driver._plan(source.topic.ends)
    passed_on = [
        pa.ipc.open_stream(rows["payload"][0].as_py()).read_all().num_rows
        for rows in decode_records(plan, source.topic.read(starts, source.topic.ends))
        if rows["topic"][0].as_py() != ANSWERS
    ]
    assert 0 < sum(passed_on) <= KEYS
    driver.batch()
    driver.compact()
    require_finished(source, driver)


def test_a_table_of_four_thousand_columns_is_followed_and_compacted(tmp_path: Path) -> None:
    columns = [integer(f"c{number}") for number in range(COLUMNS - 1)]
    wide = TableSpec("wide", (bigint("id", optional=False), *columns), ("id",))
    database = Database([wide])
    topic = SimulatedTopic(database.topic("wide"))
    driver = SimulatedDriver(LocalStore(tmp_path), topic, FixedClock(), SeededEntropy(1))
    database.insert("wide", [(key, *range(COLUMNS - 1)) for key in range(ROWS)])
    topic.append(0, database.drain())
    driver.batch()
    database.update("wide", [(key,) for key in range(0, ROWS, 2)], lambda old: (*old[:-1], -1))
    topic.append(0, database.drain())
    driver.batch()
    driver.compact()
    for view in ("real_time", "read_optimised"):
        found = Table(driver.table.store).read(view)
        assert compare(database.truth("wide"), found, ["id"]) is None


def blocks(odd: int) -> Iterator[Entries]:
    """Entries rising by hash, those of an odd and an even index in between each other."""
    count = BLOCKS * ENTRIES_PER_BLOCK
    step = (1 << 64) // (2 * count)
    for number in range(BLOCKS):
        at = np.arange(number * ENTRIES_PER_BLOCK, (number + 1) * ENTRIES_PER_BLOCK)
        high = (2 * at + odd).astype(np.uint64) * np.uint64(step)
        group = (at % 500).astype(np.int64)
        yield Entries(high, high ^ np.uint64(7), group, at.astype(np.int64))


def test_an_index_is_looked_up_and_merged_in_less_memory_than_it_has_bytes(tmp_path: Path) -> None:
    store, count = LocalStore(tmp_path), BLOCKS * ENTRIES_PER_BLOCK
    runs = [write_run(store, f"{odd}.run", blocks(odd), count) for odd in (0, 1)]
    whole = sum(run.file.bytes for run in runs)
    assert whole >= 2 * count * ENTRY_BYTES
    before = anonymous_bytes()
    with watched() as seen:
        merged = write_merged(store, runs, RunCache(), SeededEntropy(1))
        (opened,) = RunCache().open_runs(store, [merged])
        some = next(blocks(1))
        group, at = locate([opened], KeyHashes(some.high, some.low), np.arange(500))
    assert merged.entries == 2 * count
    assert np.array_equal(group, some.group)
    assert np.array_equal(at, some.row)
    assert seen[0] - before < 0.75 * whole
