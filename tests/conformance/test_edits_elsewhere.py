"""Every engine reads every version of a table with every kind of edit, and its change feed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.model.names import COMMIT_TIME, IS_DELETED
from lakesplice.spark.jars import DELTA
from lakesplice.storage.local import LocalStore
from tests.conformance.conftest import SomeOf
from tests.support import machine
from tests.support.by_hand import WHOLE, given, row
from tests.support.delta_feed import read_feed, require_delta_feed, require_same
from tests.support.delta_spark import exported, run_delta_feed, run_delta_spark
from tests.support.readers import READERS

# What Spark says to them: it refuses to write, and would check the constraints.
FOREIGN_STATEMENTS = {
    "update {table} set price = 0": "lakesplice",
    "update {table} set n = 0": "CHECK constraint positive",
}


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """All edits, some that are merged at once and some that are compacted, and constraints."""
    rows = given([row(key, f"r{key}", key) for key in range(40)], WHOLE)
    path = tmp_path_factory.mktemp("lake") / "shop" / "goods"
    table = Table.create(path, rows, key=["id"], change_feed=True)
    table.set_required("name")  # Spark reads no feed from before it
    table.update({"price": "round(price * 1.1, 2)", "name": "upper(name)"}, "n > 30", merge=True)
    table.delete("id IN (0, 7, 14)")
    source = given([row(key, "new", 100 + key, "3.00") for key in (1, 14, 50, 51)], WHOLE)
    (
        table.merge(source)
        .when_matched_update({"n": "source.n"})
        .when_not_matched_insert()
        .when_not_matched_by_source_delete("n BETWEEN 20 AND 22")
        .execute()
    )
    table.compact()
    table.add_constraint("positive", "n > 0")
    table.purge(older_than_hours=0)
    table.overwrite(given([row(30, "over"), row(60, "over")], WHOLE), "id >= 30", merge=True)
    table.update({"n": "n + 1"}, merge=True)
    return table


def at(table: Table, version: int) -> pa.Table:
    """The read-optimised view as we read it, with deleted rows and system columns."""
    read = table.read("read_optimised", version=version, include_deleted=True, include_system=True)
    return read.sort_by("id").combine_chunks()


def require_equal(theirs: pa.Table, ours: pa.Table, version: int) -> None:
    assert theirs.schema.names == ours.schema.names
    assert theirs.cast(ours.schema).sort_by("id").combine_chunks().equals(ours), version


def folder(table: Table) -> Path:
    store = table._store
    assert isinstance(store, LocalStore)
    return store.root


@pytest.mark.parametrize("engine", READERS)
def test_every_version_is_the_same_elsewhere(edited: Table, engine: str) -> None:
    for version in range(edited.version + 1):
        require_equal(READERS[engine](folder(edited), version), at(edited, version), version)


def test_spark_reads_each_version_and_the_feed_and_writes_nothing(
    edited: Table, tmp_path: Path, some_of: SomeOf
) -> None:
    root, last = folder(edited), edited.version
    versions = some_of(last + 1)
    jars = machine.jars(DELTA)
    found = run_delta_spark(
        jars, root, tmp_path, versions, ("id",), [*FOREIGN_STATEMENTS], export=True
    )
    for version in versions:
        require_equal(pq.read_table(exported(tmp_path, version)), at(edited, version), version)
    for statement, outcome in found.outcomes.items():
        assert FOREIGN_STATEMENTS[statement] in outcome[:800], statement
    assert require_delta_feed(LocalStore(root), root) > 0
    meant = read_feed(root, 1, last)
    for rows in run_delta_feed(jars, root, tmp_path, 1, last).values():
        images = rows.drop([COMMIT_TIME]).to_pylist()
        require_same([image for image in images if not image[IS_DELETED]], meant)
    rows = edited.read().sort_by("id").to_pylist()
    assert rows[-1] == {"id": 60, "name": "over", "n": 2, "price": Decimal("1.50")}
