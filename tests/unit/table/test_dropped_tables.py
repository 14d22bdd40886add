"""A table that was dropped at its source: its policy is applied, and rows of the next table are
kept.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events.values.fences import Fence
from lakesplice.model.choices import NotInserts
from lakesplice.model.progress.epochs import Epoch
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.testing.doubles import FixedClock
from tests.support.dropping import Scene
from tests.support.steps import redirect

EVOLVE, LENIENT = Behaviour.EVOLVE, Behaviour.LENIENT


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, EVOLVE)


@pytest.fixture
def lenient(tmp_path: Path) -> Scene:
    return Scene(tmp_path, LENIENT)


@pytest.mark.slow
def test_rows_of_a_dropped_table_go_and_those_of_the_next_one_stay(scene: Scene) -> None:
    scene.take(scene.ledger.insert(0, 20))
    scene.take(scene.ledger.update(range(5), "before"))
    late = scene.ledger.update([7], "late")
    scene.drop(range(20))
    assert scene.deal() is not None
    scene.settle()
    scene.take(scene.ledger.insert(3, 9))
    scene.take(late, 1)
    scene.settle()


def test_with_evolve_a_drop_takes_the_rows_though_no_table_follows(scene: Scene) -> None:
    scene.take(scene.ledger.insert(0, 4))
    version = scene.driver.table.version
    scene.teller.drop(scene.dropped(range(4)))
    dealt = scene.deal()
    assert dealt is not None
    assert (dealt.parked, dealt.rows) == (False, 4)
    assert (scene.keys, scene.driver.table.version) == ([], version + 1)


@pytest.mark.slow
def test_a_drop_is_handled_once_even_if_it_is_read_again(scene: Scene) -> None:
    scene.take(scene.ledger.insert(0, 4))
    scene.drop(range(4))
    scene.deal()
    version, table = scene.driver.table.version, scene.driver.table
    assert table.raise_fence(Fence(table.source.fence)) == 0
    assert scene.deal() is None
    scene.take(scene.ledger.insert(0, 2))
    scene.restart()
    assert scene.deal() is None
    assert scene.driver.table.version == version + 1
    scene.settle()


@pytest.mark.slow
def test_rows_of_a_table_dropped_without_a_driver_are_deleted_by_the_next_driver(
    scene: Scene,
) -> None:
    scene.take(scene.ledger.insert(0, 4))
    scene.drop(range(4))
    scene.topic.append(0, scene.ledger.insert(2, 6))
    scene.restart()
    assert scene.deal() is not None
    scene.driver.batch()
    scene.settle()


@pytest.mark.parametrize(
    "order",
    [
        ("tell", "old", "new"),
        *(
            pytest.param(order, marks=pytest.mark.slow)
            for order in list(permutations(("tell", "old", "new")))[1:]
        ),
    ],
)
def test_when_a_drop_is_reported_and_what_comes_late_make_no_difference(
    scene: Scene, order: tuple[str, ...]
) -> None:
    scene.take(scene.ledger.insert(0, 6))
    old = scene.ledger.update(range(3), "late")
    place = scene.dropped(range(6))
    new = scene.ledger.insert(2, 9)
    for what in order:
        if what == "tell":
            scene.teller.drop(place)
            scene.teller.create(place)
            scene.deal()
        else:
            scene.take(old if what == "old" else new, int(what == "old"))
            scene.deal()
    scene.settle()


@pytest.mark.slow
def test_a_table_that_begins_with_an_old_drop_holds_what_came_after(scene: Scene) -> None:
    scene.topic.append(0, scene.ledger.insert(0, 6))
    scene.drop(range(6))
    scene.topic.append(0, scene.ledger.insert(4, 8))
    assert scene.deal() is None, "nothing was read yet"
    scene.driver.batch()
    scene.deal()
    scene.settle()


@pytest.mark.slow
def test_by_default_rows_stay_until_the_source_has_the_table_again(lenient: Scene) -> None:
    lenient.take(lenient.ledger.insert(0, 4))
    place = lenient.dropped(range(4))
    lenient.teller.drop(place)
    assert lenient.deal() is None
    assert lenient.keys == [0, 1, 2, 3]
    lenient.restart()
    assert lenient.deal() is None
    lenient.teller.create(place)
    assert lenient.deal() is not None
    assert lenient.keys == []
    lenient.take(lenient.ledger.insert(1, 3))
    lenient.settle()


@pytest.mark.slow
def test_by_default_a_row_above_the_drop_shows_that_the_table_exists_again(lenient: Scene) -> None:
    lenient.take(lenient.ledger.insert(0, 4))
    lenient.teller.drop(lenient.dropped(range(4)))
    assert lenient.deal() is None
    lenient.take(lenient.ledger.insert(2, 6))
    assert lenient.deal() is not None
    lenient.settle()


@pytest.mark.slow
def test_rows_may_stay_among_those_of_the_next_table(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Behaviour.IGNORE)
    scene.take(scene.ledger.insert(0, 4))
    scene.drop(range(4))
    scene.take(scene.ledger.insert(2, 6))
    assert scene.deal() is None
    assert scene.keys == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_the_policy_may_park_and_continues_under_another(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Behaviour.EXCEPTION)
    scene.take(scene.ledger.insert(0, 4))
    scene.drop(range(4))
    dealt = scene.deal()
    assert dealt is not None
    assert dealt.parked
    assert "schema_changes.drop_table to evolve" in scene.parked
    assert scene.keys == [0, 1, 2, 3]
    redirect(scene.driver, parked=None)
    assert scene.deal() is not None, "it parks again"
    redirect(scene.driver, parked=None)
    scene.policy = SchemaPolicy(drop_table=EVOLVE)
    scene.topic.append(0, scene.ledger.insert(2, 6))
    scene.restart()
    scene.deal()
    scene.driver.batch()
    scene.settle()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("RENAME TABLE `{0}` TO other", "rename_table"),
        ("RENAME TABLE other TO `{0}`", "rename_table"),
        ("RENAME TABLE `{0}` TO tmp, other TO `{0}`, tmp TO other", "rename_table"),
        ("ALTER TABLE `{0}` DROP PARTITION p0", "drop_partition"),
        ("ALTER TABLE `{0}` TRUNCATE PARTITION p0, p1", "drop_partition"),
    ],
)
def test_rows_that_move_without_an_event_park_the_table_until_somebody_decides(
    tmp_path: Path, sql: str, kind: str
) -> None:
    scene = Scene(tmp_path, LENIENT)
    scene.take(scene.ledger.insert(0, 4))
    scene.teller.tell(sql.format(scene.driver.name.table), scene.dropped(range(4)))
    dealt = scene.deal()
    assert dealt is not None
    assert dealt.parked
    assert f"set schema_changes.{kind} to evolve" in scene.parked
    redirect(scene.driver, parked=None)
    scene.restart()
    assert scene.deal() is not None, "it parks again"
    redirect(scene.driver, parked=None)
    ignoring: dict[str, Any] = {kind: Behaviour.IGNORE}
    scene.policy = SchemaPolicy(**ignoring)
    scene.restart()
    assert scene.deal() is None
    assert scene.keys == [0, 1, 2, 3]
    evolving: dict[str, Any] = {kind: EVOLVE}
    scene.policy = SchemaPolicy(**evolving)
    scene.topic.append(0, scene.ledger.insert(2, 6))  # a snapshot's, say
    scene.restart()
    scene.deal()
    scene.driver.batch()
    scene.settle()
    assert scene.deal() is None, "its fence says that it is done"


@pytest.mark.slow
def test_an_old_drop_that_no_row_lived_before_parks_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Behaviour.EXCEPTION)
    scene.ledger.insert(0, 4)
    scene.drop(range(4))
    scene.take(scene.ledger.insert(2, 6))
    scene.deal()
    assert scene.parked == ""
    version = scene.driver.table.version
    assert scene.deal() is None
    assert scene.driver.table.version == version
    scene.settle()


@pytest.mark.slow
def test_a_table_that_is_dropped_for_its_copy_keeps_its_rows(lenient: Scene) -> None:
    _with_copy(lenient)
    place = lenient.ledger.update([0], "moves on")[0]
    lenient.teller.drop(place)
    lenient.teller.tell("RENAME TABLE _ledger_new TO ledger", place, 1)
    lenient.take(lenient.ledger.update([1], "of the copy"))
    assert lenient.deal() is None
    assert lenient.keys == [0, 1, 2, 3]


def test_a_fence_that_proves_wrong_parks_the_table_once(scene: Scene) -> None:
    _with_copy(scene)
    place = scene.ledger.update([0], "moves on")[0]
    scene.teller.drop(place)
    scene.deal()
    assert scene.keys == []
    scene.teller.tell("RENAME TABLE _ledger_new TO ledger", place, 1)
    scene.deal()
    assert "reload the table" in scene.parked


def _with_copy(scene: Scene) -> None:
    """A table with rows, of which a tool that alters it online has a copy."""
    events = scene.ledger.insert(0, 4)
    scene.take(events)
    scene.teller.tell("CREATE TABLE ledger (id int)", events[0])
    scene.teller.tell("CREATE TABLE _ledger_new LIKE ledger", events[0], 1)


def test_behind_a_failover_a_new_drop_parks_and_an_old_one_does_nothing(scene: Scene) -> None:
    scene.take(scene.ledger.insert(0, 4))
    redirect(scene.driver, source=replace(scene.driver.table.source, epochs=(Epoch(1),)))
    scene.drop(range(4))
    scene.restart()
    assert scene.deal() is None
    scene.ledger.insert(0, 1)
    scene.drop([0])
    scene.deal()
    assert "another server took over" in scene.parked
    assert scene.keys == [0, 1, 2, 3]


def test_a_drop_that_is_newer_and_stands_lower_parks_the_table(scene: Scene) -> None:
    events = scene.ledger.insert(0, 4)
    scene.take(events)
    newer = json.loads(scene.ledger.insert(5, 6)[0].value or b"")["payload"]["source"]["gtid"]
    scene.teller.drop(events[0], gtid=newer)
    scene.deal()
    assert f"its transaction {newer} is newer" in scene.parked


@pytest.mark.parametrize("behaviour", [EVOLVE, LENIENT, Behaviour.EXCEPTION])
def test_an_insert_only_table_parks_since_its_rows_cannot_go(
    tmp_path: Path, behaviour: Behaviour
) -> None:
    scene = Scene(tmp_path, behaviour, not_inserts=NotInserts.PARK)
    scene.take(scene.ledger.insert(0, 4))
    scene.drop(range(4))
    scene.deal()
    assert "insert-only" in scene.parked
    assert scene.keys == [0, 1, 2, 3]


@pytest.mark.slow
def test_rows_of_a_dropped_table_can_be_purged(scene: Scene) -> None:
    scene.take(scene.ledger.insert(0, 9))
    scene.drop(range(9))
    scene.deal()
    for partition in (0, 1):
        scene.take(scene.ledger.insert(10 + partition, 11 + partition), partition)
    scene.settle()
    assert scene.driver.purge(FixedClock().now_ms() * 1000 + 1) is not None
    assert sum(file.rows for file in scene.driver.table.manifest.files.values()) == 2
    scene.settle()
