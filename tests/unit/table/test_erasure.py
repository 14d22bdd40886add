"""Erasure: of an erased row no byte is left, and nothing that is read again brings it back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lakesplice
from lakesplice.apps.erasing.byte_search import files_in, search
from lakesplice.apps.erasing.searched_table import values_of_keys
from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.pins import pin
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.faulty_store import Call, FaultyStore
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.altered import event
from tests.support.erasing import erase_keys, found, wanted
from tests.support.partitioned import INT, Life, row
from tests.support.shards import Scene as Shards
from tests.support.shards import filled
from tests.support.simulated import (
    Source,
    driver_of,
    require_finished,
    require_tidy,
    require_true,
    rows_of,
)
from tests.support.versions import HistoryWorld, intervals

ROWS, ERASED = 3_000, 1_000


class Scene:
    """A table of six rows, the history of each in two partitions; 3 is deleted."""

    def __init__(self, root: Path) -> None:
        self.root, self.source = root, Source()
        self.driver: SimulatedDriver = driver_of(self.source, LocalStore(root))
        for _ in range(2):
            for key in range(6):
                self.take(*self.source.put(key), partition=key % 2)
        self.driver.compact()
        self.take(*self.source.delete(3), partition=1)

    def take(self, *events: Event, partition: int) -> None:
        self.source.topic.append(partition, events)
        self.driver.batch()

    def left(self, *keys: int) -> dict[str, int]:
        return found(self.root, self.driver.table.manifest, keys)

    def stored_keys(self) -> list[int]:
        rows = Table(self.driver.table.store).read(include_deleted=True).to_pylist()
        return sorted(row["id"] for row in rows)

    def read_all_again(self) -> None:
        self.driver.table.continue_at(
            lambda source: moved(source, {0: Offset(0), 1: Offset(0)}), "again"
        )
        self.driver.batch()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def at(pos: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> Event:
    return event(INT, pos, after, before, topic="t.s.t")


def token(rng: random.Random) -> str:
    return f"{rng.getrandbits(80):020x}"


def test_of_a_thousand_erased_rows_no_value_is_left_in_any_byte(tmp_path: Path) -> None:
    """Texts as keys, in dictionaries and in bounds; numbers; waiting and compacted changes; images
    of the change feed.
    """
    rng, uri = random.Random(7), tmp_path / "lake" / "shop" / "people"

    def rows(keys: list[str]) -> pa.Table:
        count = len(keys)
        return pa.table(
            {
                "email": keys,
                "name": [token(rng) for _ in keys],
                "number": pa.array([rng.getrandbits(60) for _ in keys]),
                "city": [("Berlin", "Delhi")[at % 2] for at in range(count)],
            }
        )

    keys = [token(rng) for _ in range(ROWS)]
    erased = sorted(keys)[:1] + rng.sample(keys, ERASED - 1)
    first, second = rows(keys), rows(erased)
    table = lakesplice.Table.create(
        uri, first, key=["email"], change_feed=True, stats_columns=["email", "name"]
    )
    table.upsert(second)
    table.compact()
    third = rows(erased)
    table.upsert(third)
    table.upsert(delete=third.select(["email"]))
    gone = set(erased)
    planted = [
        str(value)
        for part in (first, second, third)
        for value_row in part.to_pylist()
        if value_row["email"] in gone
        for value in (value_row["email"], value_row["name"], value_row["number"])
    ]
    wanted_keys = wanted(table.snapshot.manifest, sorted(gone))
    planted = [
        *dict.fromkeys(planted),
        *values_of_keys(table.snapshot.manifest.schema, wanted_keys),
    ]
    before = search(files_in(tmp_path), planted)
    assert set().union(*before.values()) == set(planted)
    assert {path.split("/")[3] for path in before} == {
        "_change_data", "_delta_log", "_lakesplice", "base",
    }  # fmt: skip
    done = table.erase(sorted(gone))
    assert (done.rows, done.live) == (len(gone), 0)
    assert search(files_in(tmp_path), planted) == {}
    left = {row["email"] for row in table.read().to_pylist()}
    assert left == set(keys) - gone
    assert [entry.info.operation for entry in table.history()] == ["ERASED"]


def test_an_erased_row_stays_away_however_often_its_records_are_read(scene: Scene) -> None:
    assert scene.left(3)
    done = erase_keys(scene.driver, [3])
    assert (done.rows, done.live) == (1, 0)
    assert scene.left(3) == {}
    scene.read_all_again()
    assert scene.left(3) == {}
    assert scene.stored_keys() == [0, 1, 2, 4, 5]
    scene.driver.compact()
    require_finished(scene.source, scene.driver)
    require_tidy(scene.driver.table.store)


def test_a_row_that_the_source_inserts_later_is_a_new_one(scene: Scene) -> None:
    erase_keys(scene.driver, [3])
    scene.take(*scene.source.put(3), partition=1)
    assert scene.stored_keys() == [0, 1, 2, 3, 4, 5]
    require_true(scene.source, scene.driver.table.store)
    scene.read_all_again()
    scene.driver.compact()
    require_finished(scene.source, scene.driver)


def test_rows_that_live_are_erased_only_on_demand(scene: Scene) -> None:
    version = scene.driver.table.version
    with pytest.raises(UsageError, match="aren't deleted") as raised:
        erase_keys(scene.driver, [2, 3])
    assert "live=1" in str(raised.value)
    assert scene.driver.table.version == version
    done = erase_keys(scene.driver, [2, 3], also_live=True)
    assert (done.rows, done.live) == (2, 1)
    assert scene.left(2, 3) == {}
    scene.read_all_again()
    assert [found["id"] for found in rows_of(scene.driver.table.store)] == [0, 1, 4, 5]


def test_a_pin_prevents_an_erasure_and_is_named(scene: Scene) -> None:
    table = scene.driver.table
    assert table.snapshot is not None
    entropy = SeededEntropy(9)
    pin(
        table.store,
        table.snapshot,
        "quarter",
        table.commit,
        entropy=entropy,
        retries=table.retries(),
        generation=table.generation,
    )
    with pytest.raises(UsageError, match="unpin") as raised:
        erase_keys(scene.driver, [3])
    assert "quarter" in str(raised.value)


def test_older_versions_expire(scene: Scene) -> None:
    before = scene.driver.table.version
    done = erase_keys(scene.driver, [3])
    assert done.versions == done.version
    with pytest.raises(VersionNotFoundError):
        Table(scene.driver.table.store, before)
    (entry,) = Table(scene.driver.table.store).history()
    assert entry.info.operation == "ERASED"
    assert entry.info.metrics["rows"] == 1


def test_a_second_erasure_of_the_same_keys_finds_nothing(scene: Scene) -> None:
    erase_keys(scene.driver, [3])
    remembered = scene.driver.table.manifest.erased
    done = erase_keys(scene.driver, [3], seed=2)
    assert (done.rows, done.files, done.runs) == (0, 0, 0)
    assert scene.driver.table.manifest.erased == remembered
    erase_keys(scene.driver, [3, 4], seed=3, also_live=True)
    assert scene.driver.table.manifest.erased != remembered
    assert scene.left(3, 4) == {}
    scene.read_all_again()
    assert scene.stored_keys() == [0, 1, 2, 5]


def test_changes_that_wait_for_other_rows_of_the_same_files_and_deltas_are_kept(
    scene: Scene,
) -> None:
    for key in (0, 1, 3, 5):
        scene.source.topic.append(key % 2, scene.source.put(key))
    scene.driver.batch()
    scene.take(*scene.source.delete(3), partition=1)
    assert erase_keys(scene.driver, [3]).deltas
    assert scene.driver.table.manifest.deltas
    assert scene.left(3) == {}
    require_true(scene.source, scene.driver.table.store)
    scene.driver.compact()
    require_finished(scene.source, scene.driver)


def test_dead_letters_of_the_rows_are_dropped_and_others_kept(scene: Scene) -> None:
    letters = [scene.source.put(key)[0]._replace(value=b"{") for key in (3, 4)]
    scene.take(*letters, partition=1)
    unreadable = json.dumps({"payload": {"after": {"id": 3}}}).encode()
    scene.take(scene.source.put(1)[0]._replace(key=b"?", value=unreadable), partition=1)
    assert sum(ref.rows for ref in scene.driver.table.manifest.dead_letters) == 3
    assert erase_keys(scene.driver, [3]).dead_letters == 2
    table = scene.driver.table
    (left,) = table.manifest.dead_letters
    assert left.rows == 1
    assert read_dead_letters(table.store, left)["key"].to_pylist() == [letters[1].key]


def test_a_dead_letter_that_nobody_can_attribute_prevents_an_erasure(scene: Scene) -> None:
    binary = b"\0\0\0\0\1\6"
    scene.take(scene.source.put(1)[0]._replace(key=binary, value=binary), partition=1)
    with pytest.raises(UsageError, match="dlq"):
        erase_keys(scene.driver, [3])


def test_the_places_that_a_row_moved_away_from_and_its_partitions_are_erased(
    tmp_path: Path,
) -> None:
    """The value of a partition is in names of folders and in the log, also in checkpoints."""
    life = Life(tmp_path)
    life.take(at(1, row(1, 1, "Rosalind")), at(2, row(2, 2, "ada")))
    life.take(at(3, row(1, 1, "Franklin"), row(1, 1, "Rosalind")))
    life.driver.compact()
    life.take(at(4, None, row(1, 1, "Franklin")))
    manifest = life.driver.table.manifest
    named = ("Rosalind", "Franklin")
    assert found(tmp_path, manifest, [1], *named)
    erase_keys(life.driver, [1])
    assert found(tmp_path, life.driver.table.manifest, [1], *named) == {}
    assert [path for path, _ in files_in(tmp_path) if any(name in path for name in named)] == []
    assert life.rows == [row(2, 2, "ada")]


def test_a_row_that_was_purged_before_stays_away_after_a_table_starts_over(scene: Scene) -> None:
    scene.take(*scene.source.put(0), partition=0)
    scene.take(*scene.source.put(1), partition=1)
    scene.driver.compact()
    scene.driver.purge(1 << 60)
    assert scene.stored_keys() == [0, 1, 2, 4, 5]
    erase_keys(scene.driver, [3])
    table = scene.driver.table
    assert table.snapshot is not None
    erased = open_snapshot(table.store).manifest.erased
    assert erased is not None
    assert erased.keys == 1


def test_files_that_another_writer_left_are_erased_from_an_adopted_table(
    tmp_path: Path,
) -> None:
    """Its files are somewhere in the folder, its commits have bounds, and so have other files."""
    folder, name = tmp_path / "t", "Rosalind Franklin"
    for first in (0, 10):
        rows = pa.table({"id": [*range(first, first + 10)], "name": [name, *"abcdefghi"]})
        deltalake.write_deltalake(folder, rows, mode="append")
    deltalake.DeltaTable(folder).optimize.compact()
    (folder / "_delta_log" / f"{1:020d}.crc").write_text(json.dumps({"maxValues": name}))
    table = lakesplice.Table.adopt(folder, key=["id"])
    table.upsert(delete=pa.table({"id": [0, 10]}))
    assert len(search(files_in(folder), [name])) > 4
    table.erase([0, 10])
    assert search(files_in(folder), [name]) == {}
    assert deltalake.DeltaTable(folder).to_pyarrow_table().num_rows == 18


def test_a_row_of_one_shard_is_erased_and_the_others_of_its_number_are_kept(
    tmp_path: Path,
) -> None:
    scene = filled(Shards(tmp_path))
    scene.first.drop(1)
    scene.batch()
    driver = scene.first.driver
    assert erase_keys(driver, [["shop_0", 1]]).rows == 1
    scene.batch()
    scene.holds(View.REAL_TIME)
    stored = Table(scene.store).read(include_deleted=True).to_pylist()
    kept = {(row["database_name"], row["id"]) for row in stored}
    assert ("shop_0", 1) not in kept
    assert ("shop_1", 1) in kept


def test_changes_that_are_committed_meanwhile_are_merged_and_the_rows_erased_then(
    tmp_path: Path,
) -> None:
    """A batch changes rows of the file that is being written again; an index merge comes later."""
    source, bare = Source(), LocalStore(tmp_path)
    other = driver_of(source, bare, seed=2)
    for key in range(6):
        source.topic.append(0, source.put(key))
    for events in ((), source.delete(3), source.put(6)):
        source.topic.append(0, events)
        other.batch()
    other.compact()
    for key in (0, 1, 2, 4, 5):
        source.topic.append(0, source.put(key))
    rivals: list[Callable[[], object]] = [other.batch, lambda: other.merge_runs(2)]

    def meanwhile(call: Call) -> None:
        if rivals and call.method == "writer" and call.path.startswith("shop/goods/base/"):
            rivals.pop(0)()

    driver = driver_of(source, FaultyStore(bare, before_call=meanwhile))
    assert erase_keys(driver, [3], bare=bare.within("shop/goods")).rows == 1
    assert rivals == []
    assert found(tmp_path, open_snapshot(bare.within("shop/goods")).manifest, [3]) == {}
    require_true(source, bare.within("shop/goods"))
    assert rows_of(bare.within("shop/goods")) == source.truth(source.topic.ends)


def test_all_versions_of_a_row_are_erased_from_a_history_table(tmp_path: Path) -> None:
    world = HistoryWorld(tmp_path)
    for statements in ([("put", 1), ("put", 2)], [("put", 1)], [("put", 2)], [("delete", 1)]):
        world.servers.commit(statements)
        world.send(1)
        world.batch()
    store = world.driver.table.store
    assert found(tmp_path, world.driver.table.manifest, [1])
    expected = [row for row in world.servers.history(range(4)) if row[0] == 2]
    with pytest.raises(UsageError, match="aren't deleted"):
        erase_keys(world.driver, [1, 2])
    done = erase_keys(world.driver, [1, 7])
    assert (done.keys, done.rows, done.live) == (2, 3, 0)
    assert found(tmp_path, world.driver.table.manifest, [1]) == {}
    assert intervals(world.table.read_history()) == expected
    world.driver.table.continue_at(
        lambda source: moved(source, {0: Offset(0), 1: Offset(0)}), "again"
    )
    world.batch()
    assert intervals(world.table.read_history()) == expected
    assert erase_keys(world.driver, [1]).rows == 0
    world.servers.commit([("put", 1)])
    world.send(1)
    world.batch()
    assert world.table.read_history(["id"], current=True).sort_by("id")["id"].to_pylist() == [1, 2]
    assert erase_keys(world.driver, [1, 2], also_live=True).live == 2
    assert Table(store).read_history().num_rows == 0


def test_a_run_of_the_index_whose_keys_are_all_erased_is_gone(scene: Scene) -> None:
    scene.take(*scene.source.put(6), partition=0)
    scene.take(*scene.source.delete(6), partition=0)
    before = len(scene.driver.table.manifest.runs)
    erase_keys(scene.driver, [6])
    runs = scene.driver.table.manifest.runs
    assert len(runs) == before - 1
    assert all(run.entries for run in runs)
