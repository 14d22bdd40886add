"""The change feed in Delta's own layout, as deltalake reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from lakesplice.apps.library.table import Table as LibraryTable
from lakesplice.errors import UsageError
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.upkeep import plan_splice
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.ports import UNWATCHED
from lakesplice.table.upkeep.compact import Compacted, splice_of
from lakesplice.testing.doubles import FixedClock
from tests.support.altered import event
from tests.support.by_hand import COLUMNS, WHOLE, clock_of, created, given, opened, row, three_goods
from tests.support.clocked import ClockedStore
from tests.support.delta_feed import Images, load_feed, require_delta_feed
from tests.support.partitioned import INT, begun
from tests.support.partitioned import row as row_of


@pytest.fixture
def table(store: LocalStore) -> HandFedTable:
    table = three_goods(store)
    table.set_change_feed(on=True)
    return table


def told(table: HandFedTable, store: LocalStore) -> list[tuple[int, str, Any]]:
    """Which rows the newest version changed, how, and their names."""
    images: Images = load_feed(store.root, table.version)
    return sorted((image["id"], image["_change_type"], image["name"]) for image in images)


@pytest.mark.slow
def test_a_compaction_reports_what_it_merges_into_base_files(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "A"), row(4, "d")], WHOLE), delete=given([row(2)], ["id"]))
    assert told(table, store) == [(4, "insert", "d")]
    table.compact()
    assert told(table, store) == [
        (1, "update_postimage", "A"),
        (1, "update_preimage", "a"),
        (2, "delete", "b"),
    ]
    table.upsert(given([row(2, "back")], WHOLE))
    table.compact()
    assert told(table, store) == [(2, "insert", "back")]


@pytest.mark.slow
def test_the_feed_of_a_merged_upsert_has_all_changed_and_added_rows(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(3, "C"), row(9, "new")], WHOLE), merge=True)
    images = [(3, "update_postimage", "C"), (3, "update_preimage", "c"), (9, "insert", "new")]
    assert told(table, store) == images


@pytest.mark.slow
def test_the_feed_omits_a_row_that_gets_only_values_it_already_has(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "A"), row(3, "c", 7)], WHOLE), merge=True)
    assert {key for key, _, _ in told(table, store)} == {1}
    assert table.snapshot.manifest.feed is not None
    assert len(table.snapshot.manifest.feed.files) == 1


@pytest.mark.slow
def test_commits_that_only_rewrite_files_have_no_change_data(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(5)], WHOLE), delete=given([row(1)], ["id"]))
    table.compact()
    before = table.version
    table.purge(older_than_hours=-1)
    assert table.version > before
    assert load_feed(store.root, before + 1) == []
    require_delta_feed(store, store.root)


@pytest.mark.slow
def test_a_restored_version_is_recognised_by_its_files(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "A")], WHOLE), delete=given([row(2)], ["id"]))
    table.compact()
    table.restore(1)
    assert {kind for _, kind, _ in told(table, store)} == {"insert", "delete"}
    assert require_delta_feed(store, store.root)


@pytest.mark.slow
def test_a_row_that_moves_to_another_partition_is_updated(tmp_path: Path) -> None:
    life = begun(tmp_path)
    life.driver.table.set_change_feed(on=True)
    life.take(
        event(INT, 20, row_of(1, 9, "b"), row_of(1, 1, "a")),
        event(INT, 21, None, row_of(2, 2, "a")),
        event(INT, 22, row_of(5, 5, "b")),
    )
    images = load_feed(life.root, life.driver.table.version)
    found = [(i["id"], i["_change_type"], i["n"], i["name"]) for i in images]
    assert sorted(found) == [
        (1, "update_postimage", 9, "b"),
        (1, "update_preimage", 1, "a"),
        (2, "delete", 2, "a"),
        (5, "insert", 5, "b"),
    ]
    life.driver.compact()
    require_delta_feed(life.store, life.root)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["type", "name"])
def test_a_column_that_changes_is_reported_in_every_row(tmp_path: Path, what: str) -> None:
    life = begun(tmp_path)
    table = life.driver.table
    table.set_change_feed(on=True)
    life.take(event(INT, 20, row_of(1, 9, "a"), row_of(1, 1, "a")))
    life.driver.compact()
    column = next(one for one in table.schema.columns if one.name == "n")
    other = {"type": ColumnType(Primitive.LONG)} if what == "type" else {"name": "m"}
    changed = replace(column, **other)
    table.evolve(table.schema.with_columns((), table.schema.key, [changed]))
    kinds = Counter(image["_change_type"] for image in load_feed(life.root, table.version))
    assert kinds == {"insert": 4, "delete": 4}
    require_delta_feed(life.store, life.root)


def test_a_table_may_have_a_feed_from_its_beginning(tmp_path: Path) -> None:
    rows = given([row(1), row(2)], WHOLE)
    table = LibraryTable.create(tmp_path, rows, key=["id"], change_feed=True)
    table.upsert(given([row(1, "A")], WHOLE), merge=True)
    kinds = sorted(image["_change_type"] for image in load_feed(tmp_path, 0))
    assert kinds == ["insert", "insert", "update_postimage", "update_preimage"]


@pytest.mark.slow
def test_an_adopted_table_has_images_of_rows_that_others_wrote(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "n": [1.5, -0.0, float("nan")]})
    deltalake.write_deltalake(str(tmp_path), rows)
    table = LibraryTable.adopt(tmp_path, key=["id"])
    table.set_change_feed(on=True)
    changes = pa.table({"id": [1, 2, 3], "name": ["A", "b", "c"], "n": [1.5, 0.0, float("nan")]})
    table.upsert(changes, merge=True)
    found = sorted(
        (image["id"], image["_change_type"], image["name"], str(image["n"]))
        for image in load_feed(tmp_path, table.version)
    )
    assert found == [
        (1, "update_postimage", "A", "1.5"),
        (1, "update_preimage", "a", "1.5"),
        (2, "update_postimage", "b", "0.0"),
        (2, "update_preimage", "b", "-0.0"),
    ], "a NaN is itself, and -0.0 isn't 0.0"
    table.upsert(delete=pa.table({"id": [2]}))
    table.compact()
    assert [(i["id"], i["_change_type"]) for i in load_feed(tmp_path, table.version)] == [
        (2, "delete")
    ]


def test_versions_from_before_the_feed_are_refused(table: HandFedTable, store: LocalStore) -> None:
    with pytest.raises(Exception, match=r"(?i)change data"):
        load_feed(store.root, 0)
    assert load_feed(store.root, 1) == []


@pytest.mark.slow
def test_a_change_feed_can_be_ended_and_started_again(
    table: HandFedTable, store: LocalStore
) -> None:
    assert table.set_change_feed(on=True) == 1, "it has one"
    assert table.set_change_feed(on=False) == 2
    table.upsert(given([row(1, "A")], WHOLE), merge=True)
    assert not (store.root / "_change_data").exists()
    assert table.set_change_feed(on=True) == 4
    table.upsert(given([row(1, "B")], WHOLE), merge=True)
    assert [name for _, _, name in told(table, store)] == ["B", "A"]
    assert table.snapshot.manifest.feed is not None
    assert table.snapshot.manifest.feed.since == 4


def test_a_column_that_has_a_name_of_the_feed_refuses_it(tmp_path: Path) -> None:
    named = pa.schema([pa.field("id", pa.int64()), pa.field("_Change_Type", pa.string())])
    with pytest.raises(UsageError, match="rename them first"):
        LibraryTable.create(tmp_path / "one", named, key=["id"], change_feed=True)
    table = LibraryTable.create(tmp_path / "two", named, key=["id"])
    with pytest.raises(UsageError, match="rename them first"):
        table.set_change_feed(on=True)


@pytest.mark.slow
def test_a_rewrite_that_races_with_the_start_of_the_feed_is_retried(store: LocalStore) -> None:
    table = three_goods(store)
    table.upsert(given([row(1, "A")], WHOLE))
    other = opened(store, seed=30)
    intent = plan_splice(table._writer, table.snapshot.manifest, 1, UNWATCHED)
    other.set_change_feed(on=True)
    assert not isinstance(table._writer.commit(intent), Committed)
    table.compact()
    assert [kind for _, kind, _ in told(table, store)] == ["update_postimage", "update_preimage"]


@pytest.mark.slow
def test_images_go_with_their_versions(tmp_path: Path) -> None:
    table = created(LocalStore(tmp_path), [row(1), row(2)])
    table.set_change_feed(on=True)
    names = []
    for day in range(3):
        table.upsert(given([row(1, f"day {day}")], COLUMNS.names), merge=True)
        assert table.snapshot.manifest.feed is not None
        names += [file.path for file in table.snapshot.manifest.feed.files]
        clock_of(table).advance(86_400)
    table.vacuum(retention_hours=36)
    assert [(tmp_path / name).exists() for name in names] == [False, True, True]
    oldest = table.snapshot.manifest.retention.retained_from
    texts = [image["name"] for image in load_feed(tmp_path, oldest)]
    assert sorted(texts) == ["day 0", "day 1", "day 1", "day 2"]


def test_an_image_that_nothing_names_is_an_orphan(tmp_path: Path) -> None:
    clock = FixedClock()
    store = ClockedStore(tmp_path, clock)
    table = created(store, [row(1)])
    table.set_change_feed(on=True)
    table.upsert(given([row(1, "A")], WHOLE), merge=True)
    orphan = "_change_data/00000000000000aa.parquet"
    store.put_new(orphan, b"")
    for one in (clock, clock_of(table)):
        one.advance(9 * 86_400)
    assert [*table.vacuum().orphans] == [orphan]
    assert len(load_feed(tmp_path, table.version - 1)) == 0


def test_a_missing_image_fails_a_reader(table: HandFedTable, store: LocalStore) -> None:
    table.upsert(given([row(1, "A")], WHOLE), merge=True)
    assert table.snapshot.manifest.feed is not None
    (file,) = table.snapshot.manifest.feed.files
    store.delete(file.path)
    with pytest.raises(Exception, match=r"(?i)not found|no such file"):
        load_feed(store.root, table.version)


def test_a_compaction_one_part_of_which_has_no_images_has_none() -> None:
    """Otherwise it could be committed after the table's change feed began, without its changes."""
    without, with_ = (Compacted({}, {}, {}, 1, images) for images in (None, ()))
    assert splice_of(1, 1, [with_, without]).images is None
    assert splice_of(1, 1, [with_, with_]).images == ()
