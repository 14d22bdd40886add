"""A table that fails is parked or rests, writes nothing meanwhile, and hinders no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.errors import CorruptFileError, LakespliceError, StorageError
from lakesplice.model.driver_status import TopicCondition, TopicState
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from tests.support.schema_topics import told_late
from tests.support.topic_conditions import GOODS, Scene


@pytest.mark.slow
def test_a_table_whose_log_takes_no_file_rests_on_and_writes_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    scene.fail(StorageError("the disk is full"))
    in_the_way = tmp_path / "shop" / "goods"
    in_the_way.parent.mkdir()
    in_the_way.write_text("no folder")
    files = scene.files()
    for _ in range(600):
        scene.clock.advance(0.5)
        assert not scene.sources.any_due()
        assert not scene.sources.look().starts, "nor is it read, so that nothing else is written"
        assert scene.files() == files
    assert scene.standing().state is TopicState.RESTING
    assert "shop/goods" in scene.standing().reason or "folder" in scene.standing().reason
    in_the_way.unlink()
    scene.clock.advance(60)
    assert scene.sources.any_due()
    assert scene.sources.look().starts == {GOODS: {0: 0}}
    assert not scene.sources.any_due(), "it is read again: nothing is to be restarted for it"
    assert not scene.files() - {tmp_path / "_lakesplice" / "tmp"}


def test_a_table_that_cannot_be_parked_yet_reads_nothing_on_and_is_parked_once_it_can(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    in_the_way = tmp_path / "shop"
    in_the_way.write_text("no folder")
    scene.table().park(ParkReason(ParkCode.NO_KEY, "it has no key", GOODS))
    scene.table().forget_failures()
    assert (scene.standing().state, scene.standing().code) == (TopicState.PARKED, "no-key")
    assert "it has no key" in scene.standing().reason
    assert "can't be written" in scene.standing().reason
    for _ in range(100):
        scene.clock.advance(1)
        assert not scene.sources.any_due()
        assert not scene.sources.look().starts
    in_the_way.unlink()
    scene.clock.advance(60)
    assert not scene.sources.any_due(), "no query is to be restarted for a table that is parked"
    (parked,) = open_snapshot(scene.lake.within("shop/goods")).manifest.parkings
    assert parked.detail == scene.standing().reason == "it has no key"
    assert not scene.sources.look().starts


def test_a_drop_that_cannot_be_followed_yet_lets_its_table_rest(tmp_path: Path) -> None:
    told = told_late("DROP TABLE x")
    told.tell("CREATE TABLE x (id int)", 25)
    told.look()
    scene = Scene(tmp_path, r"db\..*", schema_topics=told.topics)
    scene.broker.ends["db.shop.x"] = 3
    scene.sources.look()
    table = scene.table("db.shop.x")
    table.create_or_open(TableSchema())
    reached = {0: PartitionState(Offset(2), Position.of(0, 3, 30, 0, 1))}
    source = replace(table.source, ordering=Ordering.BINLOG, partitions=reached)
    table.commit(Redirect(table.generation, table.version, source))
    drops = TableDrops(scene.driver, scene.tables, scene.broker.catalogue)
    assert drops.any_due()
    temporary = tmp_path / "_lakesplice" / "tmp"
    temporary.rmdir()
    temporary.write_text("no folder: nothing can be put into the lake")
    assert drops.handle_all(), "what could be read is asked again"
    assert table.rests
    assert not drops.any_due()
    assert scene.sources.look().starts == {}
    temporary.unlink()
    scene.clock.advance(60)
    assert drops.any_due()
    assert not drops.handle_all()
    assert not drops.any_due()
    assert scene.standing("db.shop.x").state is TopicState.RUNNING


def test_an_unreadable_log_is_opened_again_once_it_is_repaired(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    damaged = tmp_path / "shop" / "goods" / "_delta_log" / f"{0:020d}.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    with capture_logs() as logged:
        assert not scene.sources.look().starts
        scene.clock.advance(1)
        assert not scene.sources.any_due()
    assert [one["event"] for one in logged] == ["table-not-opened"], "said once"
    assert scene.standing().state is TopicState.RESTING
    damaged.unlink()
    assert not scene.sources.any_due(), "its pause isn't over"
    scene.clock.advance(60)
    assert scene.sources.any_due()
    assert scene.sources.look().starts == {GOODS: {0: 0}}


def test_failures_park_or_rest_a_table_by_what_they_are(tmp_path: Path) -> None:
    def after(*errors: Exception) -> TopicCondition:
        scene = Scene(tmp_path / str(len(list(tmp_path.iterdir()))), a_shop_goods=3)
        scene.root.mkdir()
        scene.sources.look()
        for error in errors:
            scene.fail(error)
        return scene.standing()

    away = StorageError("away")
    assert after(*[away] * 9).state is TopicState.RESTING
    assert after(CorruptFileError("damaged")).code == ParkCode.CORRUPT
    defect = LakespliceError("no idea")
    assert after(defect, away, defect).state is TopicState.RESTING
    assert after(defect, away, defect, ValueError()).code == ParkCode.JOB_DIED


def test_a_lost_race_is_followed_at_once_and_the_next_after_a_pause(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    assert scene.failures.overtaken(scene.table(), "offsets")
    assert not scene.table().rests
    assert not scene.failures.overtaken(scene.table(), "offsets")
    assert scene.standing().state is TopicState.RESTING
    scene.failures.went_well(scene.table())
    assert scene.failures.overtaken(scene.table(), "offsets")
