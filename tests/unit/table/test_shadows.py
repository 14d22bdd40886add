"""Shadows: they get chunks of the source's rows, and become the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.errors import CorruptFileError, MissingFileError, UnsupportedError
from lakesplice.formats.manifests import decode_manifest, encode_manifest
from lakesplice.formats.manifests.shadow_plan import decode_shadow_plan, encode_shadow_plan
from lakesplice.model.choices import NotInserts
from lakesplice.model.moments import EpochMs
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.progress.shadow_plan import FilledFrom
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.masks import masks_of
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.shadow import read_shadow_plan
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.shadow_store import close_all_shadows, close_shadow, open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot, open_snapshot
from lakesplice.table.reading.changes import changes_of
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.table.upkeep.orphans import find_orphans
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.shadows import SHADOW, Filling, ReadSource, filled
from tests.support.simulated import SMALL, driver_of, row, rows_of

LATER_MS = 1 << 62


@pytest.fixture
def source() -> ReadSource:
    """Rows 0 to 4, of which no event tells."""
    source = ReadSource()
    source.database.load(SMALL.name, [row(key, key) for key in range(5)])
    return source


def first_write(act: Callable[[], object]) -> Callable[[Call], None]:
    """Act as somebody else does before the first file is written."""
    left = [act]

    def before(call: Call) -> None:
        if call.method in ("writer", "put_new") and "shadows/" not in call.path and left:
            left.pop()()

    return before


def filling_met_by(
    source: ReadSource, tmp_path: Path, act: Callable[[Filling], object]
) -> tuple[Filling, Filling]:
    """One who fills the table, whose first write a rival comes before, and that rival."""
    bare = LocalStore(tmp_path)
    rival = Filling(source, bare, FixedClock(), 2)
    met = FaultyStore(bare, before_call=first_write(lambda: act(rival)))
    return Filling(source, met, FixedClock(), 1), rival


def feed_all(filling: Filling) -> None:
    """Feed a shadow, though somebody else may have let its schema grow meanwhile."""
    assert CommitOutcome.DONE in (filling.driver.attempt(), filling.driver.attempt())


@pytest.mark.slow
def test_a_new_table_has_every_row_and_follows_the_stream(
    source: ReadSource, tmp_path: Path
) -> None:
    lake = LocalStore(tmp_path)
    filling = filled(source, lake, FixedClock())
    assert rows_of(filling.store) == source.present()
    (entry,) = history(filling.store)
    assert (entry.info.operation, entry.info.parameters["shadow"]) == ("SWAP", SHADOW)
    source.topic.append(1, source.put(3))
    successor = driver_of(source, lake, generation=2, seed=5)
    assert successor.batch() is CommitOutcome.DONE
    assert rows_of(filling.store) == source.present()


@pytest.mark.slow
def test_no_reader_sees_a_shadow(source: ReadSource, tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    live = driver_of(source, lake)
    source.topic.append(0, source.put(9))
    live.batch()
    filling = Filling(source, lake, FixedClock(), 7)
    filling.fill()
    assert [found["id"] for found in rows_of(live.table.store)] == [9]
    assert len(rows_of(filling.driver.table.store)) == 6
    filling.swap()
    assert rows_of(live.table.store) == source.present()
    with pytest.raises(UnsupportedError, match="a restore, a rebuild"):
        list(changes_of(live.table.store, 2, ["id"], live.table.manifest.schema))


@pytest.mark.slow
def test_a_chunk_is_judged_again_if_its_key_came_meanwhile(
    source: ReadSource, tmp_path: Path
) -> None:
    def feed(rival: Filling) -> None:
        source.topic.append(0, source.put(0))
        feed_all(rival)

    filling, _ = filling_met_by(source, tmp_path, feed)
    filling.commit(0, filling.read(0))
    store = filling.driver.table.store
    report = check(store, Table(store).snapshot)
    assert report.sound
    assert not report.duplicates
    assert rows_of(store)[0] == source.present()[0]


@pytest.mark.slow
def test_a_chunk_is_judged_again_if_the_table_was_truncated_meanwhile(
    source: ReadSource, tmp_path: Path
) -> None:
    source.topic.append(0, source.put(0))

    def truncate(rival: Filling) -> None:
        source.topic.append(0, source.truncate())
        feed_all(rival)

    filling, _ = filling_met_by(source, tmp_path, truncate)
    filling.commit(0, filling.read(0))
    assert rows_of(filling.driver.table.store) == []


def test_a_chunk_that_somebody_else_added_is_not_added_twice(
    source: ReadSource, tmp_path: Path
) -> None:
    filling, _ = filling_met_by(source, tmp_path, lambda rival: rival.commit(0, rival.read(0)))
    filling.commit(0, filling.read(0))
    backfill = filling.driver.table.manifest.backfill
    assert backfill is not None
    assert (backfill.done, backfill.rows) == (((0, 1),), 2)


@pytest.mark.slow
def test_no_orphan_is_deleted_while_a_shadow_is_open(source: ReadSource, tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    source.topic.append(0, source.put(9))
    live, filling = driver_of(source, lake), Filling(source, lake, FixedClock(), 7)
    live.batch()
    filling.fill()
    live.table.store.put_new("_lakesplice/index/0000000000000000.run", b"left by a crash")
    snapshot = open_snapshot(live.table.store)
    assert find_orphans(live.table.store, snapshot, EpochMs(LATER_MS)) == {}
    filling.store.delete(f"_lakesplice/shadows/{SHADOW}/plan.json")
    orphans = find_orphans(live.table.store, snapshot, EpochMs(LATER_MS))
    assert filling.driver.table.manifest.files.keys() < orphans.keys()
    assert any(path.startswith("_lakesplice/shadows/1/_delta_log/") for path in orphans)


@pytest.mark.slow
def test_a_closed_shadow_leaves_nothing(source: ReadSource, tmp_path: Path) -> None:
    filling = filled(source, LocalStore(tmp_path), FixedClock())
    assert open_shadows(filling.store) == []
    assert list(filling.store.list("_lakesplice/shadows/")) == []
    close_shadow(filling.store, SHADOW)
    with pytest.raises(MissingFileError):
        read_shadow_plan(filling.store, SHADOW)
    assert find_orphans(filling.store, open_snapshot(filling.store), EpochMs(LATER_MS)) == {}


def test_a_shadow_that_is_given_up_is_open_no_more(source: ReadSource, tmp_path: Path) -> None:
    filling = Filling(source, LocalStore(tmp_path), FixedClock(), 7)
    filling.fill()
    assert close_all_shadows(filling.store) == 1
    assert close_all_shadows(filling.store) == 0
    assert list(filling.store.list("_lakesplice/shadows/")) == []
    assert find_snapshot(filling.store) is None


def test_chunks_are_joined_to_ranges() -> None:
    state = BackfillState(5)
    for chunk, highest in ((3, 7), (0, 9), (1, 8)):
        state = state.with_chunks([chunk], Position(0, highest), 10)
    assert state == BackfillState(5, ((0, 2), (3, 4)), Position(0, 9), 30)
    assert state.open_chunks() == [2, 4]
    whole = state.with_chunks([2, 4], BEFORE_ALL, 0)
    assert whole.is_whole
    assert whole.done == ((0, 5),)


def test_a_shadows_state_and_plan_are_read_back(source: ReadSource, tmp_path: Path) -> None:
    filling = Filling(source, LocalStore(tmp_path), FixedClock(), 7)
    filling.commit(2, filling.read(2))
    manifest = filling.driver.table.manifest
    data = encode_manifest(manifest)
    assert b'"format":9' in data
    assert decode_manifest(data, "m") == manifest
    plan = filling.plan
    assert decode_shadow_plan(encode_shadow_plan(plan), "p") == plan
    with pytest.raises(UnsupportedError):
        decode_shadow_plan(encode_shadow_plan(plan).replace(b'"format":1', b'"format":5'), "p")
    replayed = replace(plan, bounds=(), filled_from=FilledFrom.TOPIC)
    assert b'"format":2' in encode_shadow_plan(replayed)
    assert b'"format":3' in encode_shadow_plan(replace(plan, filled_from=FilledFrom.FILES))
    of_snapshot = replace(plan, bounds=(), filled_from=FilledFrom.SNAPSHOT)
    assert b'"format":4' in encode_shadow_plan(of_snapshot)
    for one in (replayed, of_snapshot):
        assert decode_shadow_plan(encode_shadow_plan(one), "p") == one
    with pytest.raises(CorruptFileError):
        decode_shadow_plan(b"{}", "p")


SHAPED = Shape(
    masks=masks_of({"name": "hash"}),
    secret="a secret of sixteen bytes",
    computed=(("tens", parse("truncate(n, 10)")),),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "policy", "not_inserts"),
    [
        (None, SchemaPolicy(), None),
        (SHAPED, SchemaPolicy(), None),
        (SHAPED, SchemaPolicy(partition_by=("tens",)), None),
        (None, SchemaPolicy(), NotInserts.PARK),
    ],
    ids=["plain", "masked and computed", "partitioned", "insert-only"],
)
def test_a_row_is_stored_alike_whether_it_was_read_or_streamed(
    source: ReadSource,
    tmp_path: Path,
    shape: Shape | None,
    policy: SchemaPolicy,
    not_inserts: NotInserts | None,
) -> None:
    given: dict[str, Any] = {"policy": policy, "shape": shape, "not_inserts": not_inserts}
    filling = Filling(source, LocalStore(tmp_path / "read"), FixedClock(), 7, **given)
    filling.fill()
    filling.swap()
    source.topic.append(0, source.database.snapshot())
    streamed = driver_of(source, LocalStore(tmp_path / "streamed"), **given)
    assert streamed.batch() is CommitOutcome.DONE
    read, by_stream = Table(filling.store), Table(streamed.table.store)
    assert read.snapshot.manifest.schema.columns == by_stream.snapshot.manifest.schema.columns

    def rows(table: Table) -> list[dict[str, object]]:
        own = ("_position_file", "_position_offset", "_source_ts")
        kept = table.read(include_system=True).drop_columns(own)
        return sorted(kept.to_pylist(), key=lambda one: one["id"])

    assert rows(read) == rows(by_stream)
    assert len(rows(read)) == 5
