"""Tables with partition columns: where rows are, how they move, and what such a table refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from lakesplice.apps.spark_format.source import LakespliceSource
from lakesplice.errors import CorruptFileError, MissingFileError
from lakesplice.model.choices import NotInserts
from lakesplice.model.manifest import ParkCode, PartitionState
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check, rebuild
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.altered import event
from tests.support.simulated import rows_of

ALL = 1 << 60
BY_NAME = SchemaPolicy(partition_by=("name",))
INT = {"id": "int32", "n": "int32", "name": "string"}
WITHOUT_N = {"id": "int32", "name": "string"}
WITHOUT_NAME = {"id": "int32", "n": "int32"}
MORE = {**INT, "c": "int32"}


def row(id_: int, n: int | None, name: str | None) -> dict[str, Any]:
    return {"id": id_, "n": n, "name": name}


class Life:
    """A topic of two partitions and the driver of its table."""

    def __init__(
        self, root: Path, policy: SchemaPolicy = BY_NAME, shape: Shape | None = None
    ) -> None:
        self.root = root / "s" / "t"
        self.lake = LocalStore(str(root))
        self.topic = SimulatedTopic("t.s.t", 2)
        self.seed = 0
        self.drive(policy, shape)

    def drive(self, policy: SchemaPolicy = BY_NAME, shape: Shape | None = None) -> None:
        self.seed += 1
        self.driver = SimulatedDriver(
            self.lake,
            self.topic,
            FixedClock(),
            SeededEntropy(self.seed),
            ranges=2,
            policy=policy,
            shape=shape,
        )
        self.store = self.lake.within("s/t")

    def take(self, *events: Event, partition: int = 0) -> None:
        self.topic.append(partition, events)
        outcome = self.driver.batch()
        assert getattr(outcome, "name", None) == "DONE", outcome

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows_of(self.store)

    @property
    def merged(self) -> list[dict[str, Any]]:
        self.driver.compact()
        return rows_of(self.store, View.READ_OPTIMISED)

    @property
    def partitions(self) -> list[tuple[str | None, ...]]:
        found = [file.partition for file in self.driver.table.manifest.files.values()]
        return sorted(found, key=str)

    def parked(self) -> tuple[ParkCode, str]:
        parked = self.driver.table.manifest.parked
        assert parked is not None
        return parked.code, parked.detail


@pytest.fixture
def life(tmp_path: Path) -> Life:
    found = Life(tmp_path)
    found.take(*(event(INT, 10 + at, row(at, at, "a")) for at in (1, 2)))
    found.take(event(INT, 13, row(3, 3, "b")), event(INT, 14, row(4, 4, None)))
    return found


def elsewhere(life: Life, name: str) -> list[int]:
    """The keys of live rows in the files that a Delta reader finds for a partition."""
    predicate = f"name = '{name}'" if name else "name is null"
    paths = DeltaTable(str(life.root)).file_uris(file_pruning_predicate=predicate)
    rows = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(row["id"] for row in rows if not row["_is_deleted"])


def test_a_file_has_rows_of_one_partition_and_any_reader_can_tell(life: Life) -> None:
    assert life.partitions == [("a",), ("b",), (None,)]
    assert DeltaTable(str(life.root)).metadata().partition_columns == ["name"]
    assert {path.split("/")[1] for path in life.driver.table.manifest.files} == {
        "name=a",
        "name=b",
        "name=__HIVE_DEFAULT_PARTITION__",
    }
    assert elsewhere(life, "a") == [1, 2]
    assert elsewhere(life, "") == [4]


def test_a_row_that_moves_leaves_its_old_place_in_the_commit_that_brings_the_new_one(
    life: Life,
) -> None:
    before = life.driver.table.version
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    assert life.driver.table.version == before + 1
    expected = [row(1, 9, "b"), row(2, 2, "a"), row(3, 3, "b"), row(4, 4, None)]
    assert life.rows == expected
    assert life.merged == expected
    assert elsewhere(life, "a") == [2]
    assert elsewhere(life, "b") == [1, 3]
    places = Table(life.store).read(include_deleted=True, include_system=True).to_pylist()
    positions = {place["_position_offset"] for place in places if place["id"] == 1}
    assert len(positions) == 1
    assert sorted(place["_is_deleted"] for place in places if place["id"] == 1) == [False, True]


def found_elsewhere(life: Life) -> list[tuple[Any, ...]]:
    """The live rows of the newest version, as Delta readers have them."""
    with duckdb.connect() as database:
        database.register("rows", DeltaTable(str(life.root)).to_pyarrow_table())
        found = database.sql("SELECT id, n, name FROM rows WHERE NOT _is_deleted ORDER BY id")
        return list(found.fetchall())


def test_a_row_that_moves_is_there_once_for_other_engines_before_any_compaction(
    life: Life,
) -> None:
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    assert found_elsewhere(life) == [(1, 9, "b"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)]
    life.take(event(INT, 30, row(1, 9, "a"), row(1, 9, "b")))
    assert found_elsewhere(life) == [(1, 9, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)]


def test_a_move_rewrites_the_file_it_leaves_once_and_its_compaction_doesnt(life: Life) -> None:
    files = set(life.driver.table.manifest.files)
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    then = life.driver.table.manifest
    assert len(files - set(then.files)) == 1
    life.driver.compact()
    now = life.driver.table.manifest
    assert now.files == then.files
    assert not now.deltas


def rival_of(life: Life, lake: FaultyStore) -> SimulatedDriver:
    seed = SeededEntropy(99)
    return SimulatedDriver(lake, life.topic, FixedClock(), seed, ranges=2, policy=BY_NAME)


def test_a_batch_that_dies_at_any_write_shows_moved_rows_before_or_after_and_never_twice(
    tmp_path: Path,
) -> None:
    before = [(1, 1, "a"), (2, 2, "a"), (3, 3, "b")]
    after = [(1, 9, "b"), (2, 2, "a"), (3, 8, "a")]
    for number in count():
        life = Life(tmp_path / str(number))
        life.take(*(event(INT, 10 + at, row(at, at, "_aab"[at])) for at in (1, 2, 3)))
        moves = [event(INT, 20, row(1, 9, "b"), row(1, 1, "a"))]
        moves.append(event(INT, 21, row(3, 8, "a"), row(3, 3, "b")))
        life.topic.append(0, moves)
        writes = [0]

        def nth(call: Call, number: int = number, writes: list[int] = writes) -> bool:
            writes[0] += call.method in ("put_new", "writer")
            return call.method in ("put_new", "writer") and writes[0] == number + 1

        died = False
        try:
            rival_of(life, FaultyStore(life.lake, [Fault(nth, How.CRASH_AFTER)])).batch()
        except Crash:
            died = True
        assert found_elsewhere(life) in (before, after)
        life.drive()
        assert life.driver.batch() is CommitOutcome.DONE
        assert found_elsewhere(life) == after
        if not died:
            assert number > 5
            return


def test_a_move_whose_file_is_compacted_meanwhile_rewrites_the_newer_one(
    life: Life,
) -> None:
    life.take(event(INT, 20, row(2, 7, "a"), row(2, 2, "a")))
    life.topic.append(0, [event(INT, 30, row(1, 9, "b"), row(1, 1, "a"))])
    left = [1]

    def compact_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and left[0]:
            left[0] -= 1
            life.driver.compact()

    assert (
        rival_of(life, FaultyStore(life.lake, before_call=compact_first)).batch()
        is CommitOutcome.DONE
    )
    assert left == [0]
    assert found_elsewhere(life) == [(1, 9, "b"), (2, 7, "a"), (3, 3, "b"), (4, 4, None)]
    assert life.rows == [row(1, 9, "b"), row(2, 7, "a"), row(3, 3, "b"), row(4, 4, None)]


def test_what_is_older_than_a_row_moves_it_nowhere(life: Life) -> None:
    life.take(event(INT, 30, row(1, 3, "b"), row(1, 2, "a")))
    files = life.partitions
    life.take(event(INT, 20, row(1, 2, "c"), row(1, 1, "a")), partition=1)
    life.take(event(INT, 30, row(1, 3, "b"), row(1, 2, "a")), partition=1)
    assert life.rows[0] == row(1, 3, "b")
    # A change that waits counts as much as one that is in its file.
    life.take(event(INT, 50, row(2, 5, "a"), row(2, 2, "a")))
    life.take(event(INT, 40, row(2, 4, "c"), row(2, 2, "a")), partition=1)
    assert life.rows[1] == row(2, 5, "a")
    assert life.partitions == files
    assert life.merged == life.rows


def test_a_row_moves_back_is_deleted_there_and_comes_again_elsewhere(life: Life) -> None:
    life.take(event(INT, 20, row(1, 1, "b"), row(1, 1, "a")))
    life.take(event(INT, 30, row(1, 1, "a"), row(1, 1, "b")))
    assert life.rows[0] == row(1, 1, "a")
    life.take(event(INT, 40, None, row(1, 1, "a")))
    assert [found["id"] for found in life.rows] == [2, 3, 4]
    life.take(event(INT, 35, row(1, 7, "c"), row(1, 1, "a")), partition=1)
    assert [found["id"] for found in life.rows] == [2, 3, 4]
    life.take(event(INT, 50, row(1, 8, "d")))
    assert life.rows[0] == row(1, 8, "d")
    assert life.merged == life.rows


def test_several_moves_of_a_row_in_one_batch_are_one(life: Life) -> None:
    life.take(
        event(INT, 20, row(1, 1, "b"), row(1, 1, "a")),
        event(INT, 21, row(1, 1, "c"), row(1, 1, "b")),
        event(INT, 22, row(1, 2, "d"), row(1, 1, "c")),
    )
    assert life.rows[0] == row(1, 2, "d")
    assert life.partitions == [("a",), ("b",), ("d",), (None,)]


def test_an_empty_text_stays_one_to_us_and_is_null_to_the_log(life: Life) -> None:
    files = life.partitions
    life.take(event(INT, 20, row(4, 4, ""), row(4, 4, None)))
    assert life.rows[3] == row(4, 4, "")
    assert life.merged[3] == row(4, 4, "")
    assert life.partitions == files
    life.take(event(INT, 30, row(5, 5, "")))
    assert life.rows[4] == row(5, 5, "")
    assert elsewhere(life, "") == [4, 5]


def test_a_move_takes_along_what_a_dropped_column_held(tmp_path: Path) -> None:
    policy = SchemaPolicy(drop_column=Behaviour.LENIENT, partition_by=("name",))
    life = Life(tmp_path, policy)
    life.take(event(INT, 10, row(1, 7, "a")))
    life.take(event(WITHOUT_N, 20, {"id": 1, "name": "b"}, {"id": 1, "name": "a"}))
    unpartitioned = Life(tmp_path / "other", SchemaPolicy(drop_column=Behaviour.LENIENT))
    unpartitioned.take(event(INT, 10, row(1, 7, "a")))
    unpartitioned.take(event(WITHOUT_N, 20, {"id": 1, "name": "b"}, {"id": 1, "name": "a"}))
    assert life.rows == unpartitioned.rows
    assert life.partitions == [("a",), ("b",)]


def test_rows_move_from_files_of_before_a_column_was_added(life: Life) -> None:
    added = {**row(1, 1, "b"), "c": 5}
    life.take(event(MORE, 20, added, {**row(1, 1, "a"), "c": None}))
    assert life.rows[0] == added
    assert life.merged[0] == added


def test_small_files_are_merged_within_their_partition(life: Life) -> None:
    for at in range(20, 26):
        life.take(event(INT, at, row(at, at, "ab"[at % 2])))
    expected = life.rows
    while life.driver.merge_files(2) is not None:
        pass
    assert life.partitions == [("a",), ("b",), (None,)]
    assert life.rows == expected


def test_changes_show_a_move_as_one_update(life: Life) -> None:
    life.take(
        event(INT, 20, row(1, 9, "b"), row(1, 1, "a")),
        event(INT, 21, None, row(2, 2, "a")),
        event(INT, 22, row(6, 6, "b")),
    )
    table = Table(life.store)
    found = table.changes(table.version, table.version).read_all().to_pylist()
    told = {change["id"]: (change["_change_type"], change["n"]) for change in found}
    assert len(found) == 3
    assert told[1] == ("update_postimage", 9)
    assert told[2][0] == "delete"
    assert told[6] == ("insert", 6)


def test_a_table_is_partitioned_by_what_is_computed(tmp_path: Path) -> None:
    shape = Shape(computed=(("tens", parse("truncate(n, 10)")),))
    policy = SchemaPolicy(partition_by=("tens",))
    life = Life(tmp_path, policy, shape)
    life.take(event(INT, 1, row(1, 7, "a")), event(INT, 2, row(2, 31, "a")))
    life.take(event(INT, 3, row(1, 32, "a"), row(1, 7, "a")))
    assert [found["tens"] for found in life.rows] == [30, 30]
    assert life.partitions == [("0",), ("30",), ("30",)]
    assert life.merged == life.rows


@pytest.mark.parametrize(
    "later",
    [
        {"id": "int32", "n": "int32"},
        {"id": "int32", "n": "int32", "called": "string"},
        {"id": "int32", "n": "int32", "name": "int32"},
    ],
)
def test_a_partition_column_that_is_dropped_renamed_or_retyped_parks_its_table(
    tmp_path: Path, later: dict[str, str]
) -> None:
    lenient = Behaviour.LENIENT
    policy = SchemaPolicy(
        alter_column_type=lenient,
        rename_column=lenient,
        drop_column=lenient,
        partition_by=("name",),
    )
    life = Life(tmp_path, policy)
    life.take(event(INT, 1, row(1, 1, "a")))
    values = {"id": 1, "n": 2, "called": "a", "name": 5}
    life.take(event(later, 2, {name: values[name] for name in later}))
    code, detail = life.parked()
    assert code is ParkCode.SCHEMA_CHANGE
    assert "is a partition column" in detail
    assert life.rows == [row(1, 1, "a")]


def test_other_columns_still_follow_their_policy(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy(drop_column=Behaviour.EVOLVE, partition_by=("name",)))
    life.take(event(INT, 1, row(1, 1, "a")))
    life.take(event(WITHOUT_N, 2, {"id": 2, "name": "b"}))
    assert [found["name"] for found in life.rows] == ["a", "b"]


@pytest.mark.parametrize("asked", [(), ("n",), ("name", "n")])
def test_other_partition_columns_of_a_table_that_is_there_park_it(
    life: Life, asked: tuple[str, ...]
) -> None:
    life.drive(SchemaPolicy(partition_by=asked))
    life.take(event(INT, 20, row(1, 9, "b")))
    code, detail = life.parked()
    assert code is ParkCode.SCHEMA_CHANGE
    assert "shape.partition_by" in detail
    assert "['name']" in detail


def test_a_table_that_is_there_gets_no_partition_columns(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy())
    life.take(event(INT, 1, row(1, 1, "a")))
    life.drive(BY_NAME)
    life.take(event(INT, 2, row(2, 2, "b")))
    assert life.parked()[0] is ParkCode.SCHEMA_CHANGE
    assert life.rows == [row(1, 1, "a")]


@pytest.mark.parametrize("kind", ["double", "bytes", "float"])
def test_what_readers_do_not_spell_alike_partitions_no_table(tmp_path: Path, kind: str) -> None:
    life = Life(tmp_path, SchemaPolicy(partition_by=("v",)))
    value = "YQ==" if kind == "bytes" else 1.5
    life.take(event({"id": "int32", "v": kind}, 1, {"id": 1, "v": value}))
    code, detail = life.parked()
    assert code is ParkCode.UNSUPPORTED
    assert "shape.computed" in detail


def test_a_column_that_the_source_has_not_partitions_no_table(tmp_path: Path) -> None:
    life = Life(tmp_path, SchemaPolicy(partition_by=("country",)))
    life.take(event(INT, 1, row(1, 1, "a")))
    code, detail = life.parked()
    assert code is ParkCode.UNSUPPORTED
    assert "'country'" in detail


def test_a_value_too_long_for_a_folder_is_told_by_the_log_alone(life: Life) -> None:
    long = "x" * 300
    life.take(event(INT, 20, row(1, 1, long), row(1, 1, "a")))
    assert life.rows[0] == row(1, 1, long)
    assert life.merged[0] == row(1, 1, long)
    assert elsewhere(life, long) == [1]


def test_rows_that_never_change_are_kept_apart_too(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.driver = SimulatedDriver(
        life.lake,
        life.topic,
        FixedClock(),
        SeededEntropy(5),
        policy=BY_NAME,
        not_inserts=NotInserts.PARK,
    )
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b")))
    life.take(event(INT, 3, row(1, 9, "c")), event(INT, 4, row(3, 3, "b")))
    assert life.rows == [row(1, 1, "a"), row(2, 2, "b"), row(3, 3, "b")]
    assert life.partitions == [("a",), ("b",), ("b",)]


def sound(life: Life) -> bool:
    report = check(life.store, Table(life.store).snapshot)
    return report.sound and not report.duplicates


def test_a_purge_leaves_the_index_where_rows_moved_to(life: Life) -> None:
    life.take(event(INT, 20, None, row(2, 2, "a")))
    life.take(event(INT, 25, row(1, 5, "b"), row(1, 1, "a")))
    life.driver.compact()
    assert sound(life)
    # Of two deleted rows of a file the one goes, and the place that row 1 has left stays.
    life.take(event(INT, 22, row(9, 9, "z")), partition=1)
    assert isinstance(life.driver.purge(ALL), Committed)
    assert life.driver.purge(ALL) is None
    assert sound(life)
    life.take(event(INT, 40, row(1, 6, "b"), row(1, 5, "b")))
    assert life.rows == [row(1, 6, "b"), row(3, 3, "b"), row(4, 4, None), row(9, 9, "z")]


def test_a_deleted_row_that_a_purge_keeps_is_found_by_what_is_older(life: Life) -> None:
    life.take(event(INT, 20, None, row(1, 1, "a")), event(INT, 40, None, row(2, 2, "a")))
    life.driver.compact()
    # The other partition has come to 22, so the row deleted at 20 may go, and that at 40 not yet.
    life.take(event(INT, 22, row(9, 9, "z")), partition=1)
    assert isinstance(life.driver.purge(ALL), Committed)
    life.take(event(INT, 30, row(2, 7, "a"), row(2, 2, "a")), partition=1)
    assert life.rows == [row(3, 3, "b"), row(4, 4, None), row(9, 9, "z")]
    assert sound(life)


def test_a_purged_row_does_not_come_back_to_a_place_that_it_had_left(life: Life) -> None:
    life.take(event(INT, 20, row(1, 5, "b"), row(1, 1, "a")))
    life.take(event(INT, 25, row(1, 6, "b"), row(1, 5, "b")), event(INT, 30, None, row(1, 6, "b")))
    life.take(event(INT, 40, row(8, 8, "z")))
    life.take(event(INT, 41, row(9, 9, "z")), partition=1)
    life.driver.compact()
    # What waits for a file keeps it from being purged, and so the place that row 1 had left.
    life.take(event(INT, 42, row(2, 3, "a"), row(2, 2, "a")))
    assert isinstance(life.driver.purge(ALL), Committed)
    expected = life.rows
    assert sound(life)
    table = life.driver.table
    assert table.snapshot is not None
    run = rebuild(life.store, table.snapshot, SeededEntropy(9))
    source = replace(table.source, partitions={0: PartitionState(0), 1: PartitionState(0)})
    again = Redirect(table.generation, table.version, source, runs=(run,))
    assert isinstance(table.commit(again), Committed)
    assert sound(life)
    for last in range(1, 10):
        ends = {0: min(last, life.topic.ends[0]), 1: life.topic.ends[1]}
        assert getattr(life.driver.batch(ends), "name", None) == "DONE"
        assert life.rows == expected
    life.take(event(INT, 50, row(1, 7, "a")))
    assert life.rows[0] == row(1, 7, "a")
    assert sound(life)


def test_an_older_version_comes_back_with_its_partitions(life: Life) -> None:
    version, before = life.driver.table.version, life.rows
    life.take(event(INT, 20, row(1, 5, "b"), row(1, 1, "a")))
    life.driver.compact()
    table = life.driver.table
    assert table.snapshot is not None
    restore(life.store, table.snapshot, version, table.commit, retries=table.retries())
    assert life.rows == before
    assert elsewhere(life, "a") == [1, 2]
    life.drive()
    assert getattr(life.driver.batch(), "name", None) == "DONE"
    assert life.rows[0] == row(1, 5, "b")


def test_a_log_that_names_other_partitions_than_the_manifest_is_noticed(life: Life) -> None:
    path = life.root / commit_path(life.driver.table.version)
    text = path.read_text()
    assert '"partitionValues":{"name":"b"}' in text
    path.write_text(text.replace('{"name":"b"}', '{"name":"c"}'))
    with pytest.raises(CorruptFileError, match="partitions"):
        Table(life.store)


def test_a_date_outside_of_what_the_log_can_say_is_none(tmp_path: Path) -> None:
    shape = Shape(computed=(("day", parse("cast(name, date)")),))
    life = Life(tmp_path, SchemaPolicy(partition_by=("day",)), shape)
    texts = ("0000-02-28", "0001-01-01", "9999-12-31", "10000-01-01", "-0001-01-01")
    life.take(*(event(INT, 10 + at, row(at, at, text)) for at, text in enumerate(texts)))
    assert set(life.partitions) == {("0001-01-01",), ("9999-12-31",), (None,)}
    life.take(event(INT, 30, row(1, 1, "0000-12-31"), row(1, 1, "0001-01-01")))
    assert [found["name"] for found in life.rows][1] == "0000-12-31"


def test_values_whose_folders_would_be_too_long_for_a_bucket_have_none(tmp_path: Path) -> None:
    columns = {"id": "int32", **dict.fromkeys("abcd", "string")}
    life = Life(tmp_path, SchemaPolicy(partition_by=("a", "b", "c", "d")))
    values = dict.fromkeys("abcd", "v" * 200)
    life.take(event(columns, 10, {"id": 1, **values}))
    (file,) = life.driver.table.manifest.files.values()
    assert "=" not in file.path
    assert file.partition == tuple(values.values())
    assert len(life.rows) == 1


NAME, N = ds.field("name"), ds.field("n")
CONDITIONS = (
    NAME == "a",
    NAME != "a",
    NAME.is_null(),
    NAME == "",
    ~NAME.is_null(),
    (NAME == "b") & (N > 3),
    (NAME == "b") | (N == 2),
    NAME.isin(["a", "", "x"]),
    pc.starts_with(NAME, "b"),
    (NAME == "a") | NAME.is_null(),
    N >= 3,
    NAME > "a",
)


def test_a_filter_on_partition_columns_leaves_the_rows_that_match(life: Life) -> None:
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")), event(INT, 21, row(5, 5, "")))
    life.take(event(INT, 22, row(4, 7, ""), row(4, 4, None)), event(INT, 23, row(3, 3, "bb")))
    life.take(event(INT, 24, None, row(2, 2, "a")), event(INT, 25, row(6, 2, "a")))
    table = Table(life.store)
    order = [("id", "ascending"), ("n", "ascending")]
    for view, deleted in product(View, (False, True)):
        everything = table.read(view, include_deleted=deleted)
        for condition in CONDITIONS:
            found = table.read(view, filter=condition, include_deleted=deleted)
            expected = everything.filter(condition).sort_by(order)
            assert found.sort_by(order).equals(expected), (view, deleted, str(condition))


def test_a_filter_opens_neither_files_nor_deltas_of_other_partitions(life: Life) -> None:
    life.take(event(INT, 20, row(3, 9, "b"), row(3, 3, "b")))
    life.take(event(INT, 21, row(1, 9, "a"), row(1, 1, "a")))
    manifest = life.driver.table.manifest
    others = {file.path for file in manifest.files.values() if file.partition != ("b",)}
    ours = manifest.files.keys() - others
    groups = {segment.group for path in ours for segment in manifest.files[path].segments}
    others |= {d.file.path for d in manifest.deltas if groups.isdisjoint(d.waiting)}
    assert any(path.endswith(".avro") for path in others)
    for path in others:
        (life.root / path).unlink()
    for condition in (NAME == "b", (NAME == "b") & (N > 3), NAME.isin(["b", "zz"])):
        assert Table(life.store).read(filter=condition).to_pylist() == [row(3, 9, "b")]
    with pytest.raises(MissingFileError):
        Table(life.store).read(filter=N == 9)
    assert Table(life.store).read(filter=NAME == "zz").num_rows == 0


def test_a_filter_by_moments_dates_numbers_and_flags_opens_no_other_files(tmp_path: Path) -> None:
    columns = {"id": "int32", "flag": "boolean", "text": "string"}
    shape = Shape(computed=(("at", parse("cast(text, timestamp)")),))
    life = Life(tmp_path, SchemaPolicy(partition_by=("flag", "at", "id")), shape)
    texts = ("2024-03-31 02:30:00", "2024-03-31 02:30:00.000001", None)
    rows = [{"id": at, "flag": at % 2 == 0, "text": texts[at % 3]} for at in range(6)]
    life.take(*(event(columns, 10 + at, found) for at, found in enumerate(rows)))
    manifest = life.driver.table.manifest
    keep = [path for path, file in manifest.files.items() if file.partition[2] == "1"]
    assert manifest.files[keep[0]].partition == ("false", "2024-03-31T02:30:00.000001Z", "1")
    for path in manifest.files.keys() - set(keep):
        (life.root / path).unlink()
    moment = datetime(2024, 3, 31, 2, 30, 0, 1, UTC)
    for condition in (
        (ds.field("at") == moment) & ~ds.field("flag") & (ds.field("id") < 3),
        (ds.field("at") > datetime(2024, 3, 31, 2, 30, tzinfo=UTC)) & (ds.field("id") == 1),
        ds.field("id") == 1,
    ):
        assert Table(life.store).read(filter=condition)["id"].to_pylist() == [1]


def test_tasks_of_spark_are_given_no_files_of_other_partitions(life: Life) -> None:
    def files(**more: str) -> set[tuple[str | None, ...]]:
        options = {"path": str(life.root), **more}
        reader = LakespliceSource(options).reader(StructType())
        parts: Sequence[Any] = reader.partitions()
        paths = [path for part in parts for path in part.paths]
        return {life.driver.table.manifest.files[path].partition for path in paths}

    assert files() == {("a",), ("b",), (None,)}
    assert files(filter="name = 'b' and n > 3") == {("b",)}
    assert files(filter="name = 'b'", include_deleted="true") == {("a",), ("b",), (None,)}
    assert files(filter="name = 'zz'") == set()
