"""Erasure: of an erased row no byte is left, and nothing that is read again brings it back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakesplice
from lakesplice.apps.erasing.byte_search import files_in, search
from lakesplice.apps.erasing.searched_table import values_of_keys
from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.pins import pin
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.shop import Event
from tests.support.altered import event
from tests.support.erasing import erase_keys, wanted
from tests.support.erasure_scene import Scene
from tests.support.partitioned import INT
from tests.support.simulated import require_finished, require_tidy, require_true, rows_of

ROWS, ERASED = 3_000, 1_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def at(pos: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> Event:
    return event(INT, pos, after, before, topic="t.s.t")


def token(rng: random.Random) -> str:
    return f"{rng.getrandbits(80):020x}"


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_row_that_the_source_inserts_later_is_a_new_one(scene: Scene) -> None:
    erase_keys(scene.driver, [3])
    scene.take(*scene.source.put(3), partition=1)
    assert scene.stored_keys() == [0, 1, 2, 3, 4, 5]
    require_true(scene.source, scene.driver.table.store)
    scene.read_all_again()
    scene.driver.compact()
    require_finished(scene.source, scene.driver)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_change_that_came_late_decides_about_no_row(scene: Scene) -> None:
    """It waits for its row all the same, below the row's position."""
    inserted, deleted = scene.source.put(8), scene.source.delete(8)
    scene.take(*deleted, partition=0)
    scene.take(*inserted, partition=1)
    deleted, inserted = scene.source.delete(2), scene.source.put(2)
    scene.take(*inserted, partition=0)
    scene.take(*deleted, partition=1)
    with pytest.raises(UsageError, match="aren't deleted"):
        erase_keys(scene.driver, [2])
    assert (done := erase_keys(scene.driver, [8])).rows == 1
    assert done.live == 0
    require_true(scene.source, scene.driver.table.store)


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


@pytest.mark.slow
def test_older_versions_expire(scene: Scene) -> None:
    before = scene.driver.table.version
    done = erase_keys(scene.driver, [3])
    assert done.versions == done.version
    with pytest.raises(VersionNotFoundError):
        Table(scene.driver.table.store, before)
    (entry,) = Table(scene.driver.table.store).history()
    assert entry.info.operation == "ERASED"
    assert entry.info.metrics["rows"] == 1


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_run_of_the_index_whose_keys_are_all_erased_is_gone(scene: Scene) -> None:
    scene.take(*scene.source.put(6), partition=0)
    scene.take(*scene.source.delete(6), partition=0)
    before = len(scene.driver.table.manifest.runs)
    erase_keys(scene.driver, [6])
    runs = scene.driver.table.manifest.runs
    assert len(runs) == before - 1
    assert all(run.entries for run in runs)
