"""A source whose schema changes in the middle of a topic: the table equals the source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakesplice.model.names import SYSTEM_COLUMNS
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import DEFAULT_POLICY, Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.base_files import open_base
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from tests.support import altered
from tests.support.altered import event
from tests.support.simulated import rows_of

LENIENT = SchemaPolicy(
    alter_column_type=Behaviour.LENIENT,
    rename_column=Behaviour.LENIENT,
    drop_column=Behaviour.LENIENT,
)
INT = {"id": "int32", "n": "int32", "name": "string"}
LONG = {"id": "int64", "n": "int64", "name": "string"}
MORE = {**INT, "c": "int32"}
WIDE_N = {"id": "int32", "n": "int64", "name": "string"}
WITHOUT = {"id": "int32", "name": "string"}


def row(id_: int, n: int | None, name: str) -> dict[str, Any]:
    return {"id": id_, "n": n, "name": name}


class Life(altered.Life):
    """A topic of two partitions and its driver, which nobody tells of schema changes."""

    def __init__(
        self, lake: LocalStore, policy: SchemaPolicy = DEFAULT_POLICY, read_tasks: int = 2
    ) -> None:
        super().__init__(lake, None, policy, read_tasks)


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


@pytest.mark.slow
def test_the_first_batch_of_a_new_table_runs_once(lake: LocalStore) -> None:
    life = Life(lake)
    life.topic.append(0, [event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b"))])
    life.topic.append(1, [event(INT, 3, row(3, 3, "c"))])
    starts = life.driver.table.next_offsets(life.topic.ends)
    assert life.driver.run_tasks(starts, life.topic.ends)() is CommitOutcome.DONE
    assert life.rows() == [row(1, 1, "a"), row(2, 2, "b"), row(3, 3, "c")]
    life.take(event(MORE, 4, {**row(4, 4, "d"), "c": 1}))
    assert life.rows()[-1] == {**row(4, 4, "d"), "c": 1}


@pytest.mark.slow
@pytest.mark.parametrize("read_tasks", [1, 2])
def test_partitions_of_a_new_table_that_met_other_columns_are_read_again(
    lake: LocalStore, read_tasks: int
) -> None:
    life = Life(lake, read_tasks=read_tasks)
    life.topic.append(0, [event(MORE, 5, {**row(1, 1, "a"), "c": 7})])
    life.topic.append(1, [event(INT, 3, row(2, 2, "b"))])
    starts = life.driver.table.next_offsets(life.topic.ends)
    assert life.driver.run_tasks(starts, life.topic.ends)() is CommitOutcome.AGAIN
    life.take()
    assert life.rows() == [{**row(1, 1, "a"), "c": 7}, {**row(2, 2, "b"), "c": 5}]


@pytest.mark.slow
def test_old_rows_waiting_changes_and_stragglers_are_of_the_new_type(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(*(event(INT, at, row(at, at, "a")) for at in (1, 2, 3)))
    life.take(event(INT, 10, row(2, 20, "a"), row(2, 2, "a")))  # waits in a delta
    big = 1 << 40
    life.take(event(LONG, 20, row(3, big, "a"), row(3, 3, "a")), event(LONG, 21, row(4, 4, "new")))
    life.take(event(INT, 15, row(1, 11, "late"), row(1, 1, "a")), partition=1)
    expected = [row(1, 11, "late"), row(2, 20, "a"), row(3, big, "a"), row(4, 4, "new")]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected
    assert rows_of(life.store, View.READ_OPTIMISED) == expected
    snapshot = life.driver.table.snapshot
    assert snapshot is not None
    for path in snapshot.manifest.files:
        with life.store.open(path) as source:
            kinds = pq.read_schema(source)
        assert (kinds.field("id").type, kinds.field("n").type) == (pa.int64(), pa.int64())


@pytest.mark.slow
def test_any_delta_reader_sees_one_type_before_compaction_too(
    lake: LocalStore, tmp_path: Any
) -> None:
    life = Life(lake)
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, None, "b")))
    before = life.driver.table.version
    life.take(event(LONG, 3, row(3, 1 << 40, "c")))
    table = DeltaTable(str(tmp_path / "lake" / "s" / "t"))
    assert table.protocol().min_reader_version == 1
    found = table.to_pyarrow_table(columns=["id", "n"]).sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3], "n": [1, None, 1 << 40]}
    old = Table(life.store, before).read()
    assert old.schema.field("n").type == pa.int32()
    assert old.num_rows == 2


def test_a_change_that_alters_values_parks_the_table_and_names_the_remedy(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event(INT, 1, row(1, 1, "a")), event({**INT, "n": "string"}, 2, row(2, 0, "x")))
    life.topic.append(0, [event({**INT, "n": "boolean"}, 3, {"id": 3, "n": True, "name": "x"})])
    life.driver.batch()
    parked = life.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.SCHEMA_CHANGE
    assert "schema_changes.alter_column_type: lenient" in parked.detail
    assert "lakesplice unpark" in parked.detail


@pytest.mark.slow
def test_leniently_a_table_continues_past_every_change(lake: LocalStore) -> None:
    life = Life(lake, LENIENT)
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b")))
    life.take(event(WITHOUT, 3, {"id": 1, "name": "c"}, {"id": 1, "name": "a"}))
    life.take(event(INT, 4, row(2, 7, "b"), row(2, None, "b")))
    other = {**INT, "n": "boolean"}
    life.take(event(other, 5, {"id": 3, "n": True, "name": "d"}))
    life.driver.compact()
    assert life.driver.table.parked is None
    assert life.rows() == [
        {"id": 1, "n_2": None, "name": "c", "n": None, "n_3": None},
        {"id": 2, "n_2": None, "name": "b", "n": 7, "n_3": None},
        {"id": 3, "n_2": None, "name": "d", "n": None, "n_3": True},
    ]


@pytest.mark.parametrize(
    "cut", [3, *(pytest.param(at, marks=pytest.mark.slow) for at in (0, 1, 2, 4, 5, 6))]
)
def test_a_change_of_type_anywhere_in_a_batch_ends_the_same(lake: LocalStore, cut: int) -> None:
    events = [
        event(INT, 1, row(1, 1, "a")),
        event(INT, 2, row(2, 2, "b")),
        event(INT, 3, row(1, 5, "a"), row(1, 1, "a")),
        event(WIDE_N, 4, row(2, 1 << 40, "b"), row(2, 2, "b")),
        event(WIDE_N, 5, row(1, 6, "a"), row(1, 5, "a")),
        event(WIDE_N, 6, None, row(2, 1 << 40, "b")),
    ]
    life = Life(lake)
    for part in (events[:cut], events[cut:]):
        if part:
            life.take(*part)
    assert life.rows() == [row(1, 6, "a")]
    life.driver.compact()
    assert life.rows() == [row(1, 6, "a")]


def more(id_: int, n: int | None, name: str, c: int | None) -> dict[str, Any]:
    return {**row(id_, n, name), "c": c}


@pytest.mark.slow
def test_a_default_is_in_old_rows_waiting_changes_and_late_ones(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(*(event(INT, at, row(at, at, "a")) for at in (1, 2, 3)))
    life.take(event(INT, 10, row(2, 20, "a"), row(2, 2, "a")))  # waits in a delta
    life.take(event(MORE, 20, more(4, 4, "new", 9)), event(MORE, 21, more(5, 5, "new", None)))
    life.take(event(INT, 15, row(1, 11, "late"), row(1, 1, "a")), partition=1)
    life.take(event(INT, 16, row(6, 6, "late")), partition=1)
    expected = [
        more(1, 11, "late", 5),
        more(2, 20, "a", 5),
        more(3, 3, "a", 5),
        more(4, 4, "new", 9),
        more(5, 5, "new", None),
        more(6, 6, "late", 5),
    ]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected
    assert rows_of(life.store, View.READ_OPTIMISED) == expected


@pytest.mark.slow
def test_a_table_born_after_the_alter_fills_what_comes_from_before_it(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(event(MORE, 20, more(4, 4, "new", 9)), event(MORE, 21, more(5, 5, "new", None)))
    life.take(event(INT, 15, row(1, 11, "late")), event(INT, 16, row(4, 1, "old")), partition=1)
    expected = [more(1, 11, "late", 5), more(4, 4, "new", 9), more(5, 5, "new", None)]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_lost_change_of_a_filled_column_is_corrected_by_the_next_change(
    lake: LocalStore, compacted: bool, waits: bool
) -> None:
    """The change that set it null is lost to compaction of the topic; the next one names another
    column only, computed from a row whose digest is that of the row before the ALTER.
    """
    life = Life(lake)
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b")))
    if waits:
        life.take(event(INT, 3, row(1, 3, "a"), row(1, 1, "a")))
    n = 3 if waits else 1
    life.take(event(MORE, 9, more(3, 3, "c", 5)))
    if compacted:
        life.driver.compact()
    life.take(event(MORE, 12, more(1, n, "later", None), more(1, n, "a", None)))
    expected = [more(1, n, "later", None), more(2, 2, "b", 5), more(3, 3, "c", 5)]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected


@pytest.mark.slow
def test_leniently_a_default_is_left_to_the_rows_that_change(lake: LocalStore) -> None:
    life = Life(lake, SchemaPolicy(add_column=Behaviour.LENIENT))
    life.take(event(INT, 1, row(1, 1, "a")), event(MORE, 2, more(2, 2, "b", 5)))
    assert life.rows() == [more(1, 1, "a", None), more(2, 2, "b", 5)]


@pytest.mark.slow
def test_foreign_readers_see_the_default_and_a_later_type(lake: LocalStore, tmp_path: Any) -> None:
    life = Life(lake)
    life.take(event(INT, 1, row(1, 1, "a")), event(MORE, 2, more(2, 2, "b", 6)))
    life.take(event({**MORE, "c": "int64"}, 3, more(3, 3, "c", 1 << 40)))
    life.take(event(INT, 1, row(4, 4, "late")), partition=1)
    table = DeltaTable(str(tmp_path / "lake" / "s" / "t"))
    found = table.to_pyarrow_table(columns=["id", "c"]).sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3, 4], "c": [5, 6, 1 << 40, 5]}


@pytest.mark.slow
def test_a_dropped_column_is_gone_for_every_reader_and_comes_back_empty(
    lake: LocalStore, tmp_path: Any
) -> None:
    life = Life(lake, SchemaPolicy(drop_column=Behaviour.EVOLVE))
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, 2, "b")))
    life.take(event(WITHOUT, 10, {"id": 1, "name": "c"}, {"id": 1, "name": "a"}))
    life.take(event(INT, 5, row(2, 9, "late"), row(2, 2, "b")), partition=1)
    without = [{"id": 1, "name": "c"}, {"id": 2, "name": "late"}]
    assert life.rows() == without
    life.driver.compact()
    assert life.rows() == without
    table = DeltaTable(str(tmp_path / "lake" / "s" / "t"))
    user = [name for name in table.to_pyarrow_table().column_names if not name.startswith("_")]
    assert user == ["id", "name"]
    life.take(event(INT, 20, row(3, 3, "new")))
    life.driver.compact()
    assert [(found["id"], found["n"]) for found in life.rows()] == [(1, None), (2, None), (3, 3)]
    assert life.rows()[0].keys() == {"id", "name", "n"}


@pytest.mark.slow
def test_a_file_of_between_two_changes_of_type_is_read_under_the_later_schema(
    lake: LocalStore,
) -> None:
    life = Life(lake)
    life.take(event(INT, 1, row(1, 1, "a")), event(INT, 2, row(2, None, "b")))
    more = {**WIDE_N, "x": "string"}
    life.take(event(more, 3, {**row(3, 3, "c"), "x": "new"}))
    between = Table(life.store).snapshot.manifest
    life.take(event({**more, "id": "int64"}, 4, {**row(4, 4, "d"), "x": "new"}))
    present = Table(life.store).snapshot.manifest.schema
    found = []
    for file in between.files.values():
        with open_base(life.store, file, present) as reader:
            assert len(reader.names) - len(SYSTEM_COLUMNS) in {3, 4}
            found += reader.read(0, ["id", "n", "name"]).to_pylist()
    assert sorted(found, key=lambda one: one["id"]) == [
        row(1, 1, "a"),
        row(2, None, "b"),
        row(3, 3, "c"),
    ]
