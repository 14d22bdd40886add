"""Spark and Trino read Delta's change feed of a table with every kind of commit, Spark also as a
stream.

deltalake reads the feeds of random histories (`tests/support/delta_feed.py`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.model.names import COMMIT_TIME, IS_DELETED
from lakesplice.spark.jars import DELTA
from lakesplice.storage.system import SystemClock
from lakesplice.table.upkeep.restore import restore
from tests.support import machine
from tests.support.altered import event
from tests.support.delta_feed import Images, read_feed, require_delta_feed, require_same
from tests.support.delta_spark import run_delta_feed
from tests.support.partitioned import ALL, INT, MORE, Life, begun, row
from tests.support.trino import LocalTrino, TrinoError


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Updates, deletes, moves, a row that lives again, one more column with a default, a merge of
    files, a purge, a restored version, and changes after it.
    """
    life = begun(tmp_path, SystemClock())
    table = life.driver.table
    table.set_change_feed(on=True)
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    life.take(event(INT, 21, None, row(2, 2, "a")), event(INT, 22, row(3, 8, "b"), row(3, 3, "b")))
    life.driver.compact()
    life.take(event(INT, 23, row(2, 5, "a")), event(INT, 24, None, row(4, 4, None)))
    life.driver.compact()
    kept = table.version
    life.take(event(MORE, 30, {**row(6, 6, "c"), "c": 1}))
    life.take(event(MORE, 31, {**row(3, 7, "b"), "c": 2}, {**row(3, 8, "b"), "c": 5}))
    life.driver.compact()
    life.driver.merge_files(2)
    life.driver.purge(ALL)
    assert table.snapshot is not None
    restore(table.store, table.snapshot, kept, table.commit, 1, retries=table.retries())
    life.take(event(MORE, 40, {**row(1, 3, "a"), "c": 3}, {**row(1, 9, "b"), "c": 5}))
    life.driver.compact()
    return life


def shown(found: pa.Table) -> Images:
    """What a consumer looks at."""
    return [image for image in found.drop([COMMIT_TIME]).to_pylist() if not image[IS_DELETED]]


def test_spark_reads_the_same_feed_as_a_batch_by_sql_and_as_a_stream(
    life: Life, tmp_path: Path
) -> None:
    manifest = life.driver.table.manifest
    assert manifest.feed is not None
    first, last = manifest.feed.since, life.driver.table.version
    assert require_delta_feed(life.store, life.root) > 0
    meant = read_feed(life.root, first, last)
    found = run_delta_feed(machine.jars(DELTA), life.root, tmp_path, first, last)
    assert {*found} == {"batch", "sql", "stream"}
    for rows in found.values():
        require_same(shown(rows), meant)


@pytest.mark.nightly
def test_trino_reads_the_same_feed_after_the_last_version_that_has_none(
    life: Life, trino: LocalTrino
) -> None:
    """It refuses a range in which files changed without change files, as by a restored version."""
    life.driver.merge_files(2)
    manifest = life.driver.table.manifest
    assert manifest.feed is not None
    first, last = manifest.feed.since, life.driver.table.version
    told = [version for version in range(first, last + 1) if in_whole_files(life.root, version)]
    schema, table = trino.registered(life.root).split(".")

    def feed(version: int) -> pa.Table:
        # Trino's function begins after the version that it is given.
        return trino.run(
            f"select * from table(delta.system.table_changes(schema_name => '{schema}',"
            f" table_name => '{table}', since_version => {version - 1}))"
        )

    require_same(shown(feed(told[-1] + 1)), read_feed(life.root, told[-1] + 1, last))
    for version in told:
        with pytest.raises(TrinoError, match="'remove' entries without 'cdc' entries"):
            feed(version)


def in_whole_files(root: Path, version: int) -> bool:
    """Whether readers derive the changes of a version from files that it removes."""
    lines = (root / f"_delta_log/{version:020d}.json").read_text().splitlines()
    actions = [next(iter(json.loads(line).items())) for line in lines]
    removed = any(name == "remove" and action["dataChange"] for name, action in actions)
    return removed and not any(name == "cdc" for name, _ in actions)
