"""Commits: the resulting tables, generations, and calls of the store that fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.errors import FencedError, StorageError, UnsupportedError, UsageError
from lakesplice.formats.log.actions import CommitInfo
from lakesplice.formats.log.commit_file import decode_commit
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode, commit, create
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.intents import Create, Evolve, IndexMerge, Intent, Purge, Redirect
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.snapshot import latest, open_snapshot
from lakesplice.testing.faulty_store import Fault, FaultyStore, How
from tests.support.tables import SCHEMA, SOURCE, TableUnderTest, local_table

PARKED = ParkReason(ParkCode.NO_KEY, "give it a key")
SCORE = Column(3, "score", "score", ColumnType(Primitive.DOUBLE), "double")


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    return local_table(tmp_path)


def test_create_makes_version_0_with_schema_source_and_generation(table: TableUnderTest) -> None:
    snapshot = table.create(generation=4, parked=PARKED)
    assert snapshot.version == 0
    assert snapshot == table.now()
    assert snapshot.manifest.schema == SCHEMA
    assert snapshot.manifest.source == SOURCE
    assert snapshot.manifest.generation == 4
    assert snapshot.manifest.parked == PARKED


def test_a_second_create_is_a_conflict(table: TableUnderTest) -> None:
    first = table.create()
    outcome = create(table.store, Create(1), clock=table.clock, entropy=table.entropy)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.EXISTS
    assert table.now() == first


def test_an_ingest_adds_its_files_deltas_and_runs_and_moves_the_offsets(
    table: TableUnderTest,
) -> None:
    table.create()
    first = table.file(1)
    table.committed(table.ingest(files=(first,), runs=(table.run(),)))
    delta, second, run = table.delta(1), table.file(2), table.run()
    snapshot = table.committed(table.ingest(5, files=(second,), deltas=(delta,), runs=(run,)))
    manifest = snapshot.manifest
    assert snapshot == table.now()
    assert list(manifest.files) == [first.base.path, second.base.path]
    assert [d.file for d in manifest.deltas] == [delta.file]
    assert [r.keys_version for r in manifest.runs] == [1, 2]
    assert manifest.source is not None
    assert manifest.source.partitions == {
        0: PartitionState(Offset(10)),
        1: PartitionState(Offset(7)),
    }


def test_an_ingest_without_a_change_still_moves_the_offsets(table: TableUnderTest) -> None:
    table.create()
    snapshot = table.committed(table.ingest(100))
    assert snapshot.manifest.source is not None
    assert snapshot.manifest.source.partitions[0].next_offset == 100


def test_a_splice_retires_a_delta_when_none_of_its_groups_waits(table: TableUnderTest) -> None:
    table.create()
    files = (table.file(1), table.file(2))
    table.committed(table.ingest(files=files))
    table.committed(table.ingest(deltas=(table.delta(1, 2),)))
    after_one = table.committed(table.splice(files[0].base.path))
    assert [dict(delta.waiting) for delta in after_one.manifest.deltas] == [{2: 1}]
    after_both = table.committed(table.splice(files[1].base.path))
    assert after_both.manifest.deltas == ()
    assert after_both.manifest.groups == {1, 2}
    assert after_both.log.adds.keys() == after_both.manifest.files.keys()


def test_a_splice_that_changes_segments_is_a_defect(table: TableUnderTest) -> None:
    table.create()
    table.committed(table.ingest(files=(table.file(1),)))
    splice = table.splice()
    other = {path: table.file(1, count=4) for path in splice.replaced}
    with pytest.raises(UsageError):
        table.commit(replace(splice, replaced=other))


def test_a_delta_for_groups_that_its_ingest_does_not_name_is_a_defect(
    table: TableUnderTest,
) -> None:
    table.create()
    table.committed(table.ingest(files=(table.file(1),)))
    with pytest.raises(UsageError):
        table.commit(table.ingest(deltas=(table.delta(1),), addressed_groups=frozenset()))


def test_a_merged_run_takes_the_place_of_its_inputs(table: TableUnderTest) -> None:
    table.create()
    for group in range(4):
        table.committed(table.ingest(files=(table.file(group),), runs=(table.run(),)))
    old = table.now().manifest.runs
    output = table.run()
    inputs = tuple(run.file.path for run in old[1:3])
    snapshot = table.committed(IndexMerge(1, inputs, output))
    assert [r.file for r in snapshot.manifest.runs] == [old[0].file, output.file, old[3].file]
    assert [r.keys_version for r in snapshot.manifest.runs] == [1, 3, 4]


def test_a_merge_of_runs_does_not_disturb_an_ingest_that_located_against_its_inputs(
    table: TableUnderTest,
) -> None:
    table.create()
    for group in range(2):
        table.committed(table.ingest(files=(table.file(group),), runs=(table.run(),)))
    planned = table.ingest(files=(table.file(9),), runs=(table.run(),))
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    table.committed(IndexMerge(1, inputs, table.run()))
    assert isinstance(table.commit(planned), Committed)


def test_evolve_makes_the_next_schema_version_everywhere(table: TableUnderTest) -> None:
    before = table.create()
    evolved = SCHEMA.with_columns([SCORE], SCHEMA.key)
    snapshot = table.committed(Evolve.of(1, before.manifest, evolved))
    assert snapshot.manifest.schema == evolved
    assert '"score"' in snapshot.log.metadata.schema_json
    assert snapshot.log.metadata.id == before.log.metadata.id
    assert snapshot.log.metadata.properties == before.log.metadata.properties
    assert table.now() == snapshot


def test_a_redirect_intent_parks_unparks_resets_and_replaces_the_index(
    table: TableUnderTest,
) -> None:
    table.create()
    table.committed(table.ingest(files=(table.file(1),), runs=(table.run(),)))
    parked = table.committed(Redirect(1, 1, parked=PARKED))
    assert parked.manifest.parked == PARKED
    assert parked.manifest.runs != ()
    reset = SourceState("t.shop.orders", "topic-2", {0: PartitionState(Offset(0))})
    run = table.run()
    running = table.committed(Redirect(1, 2, source=reset, runs=(run,)))
    assert running.manifest.parked is None
    assert running.manifest.source == reset
    assert [r.file for r in running.manifest.runs] == [run.file]


def test_every_commit_says_first_what_it_is(table: TableUnderTest) -> None:
    table.create()
    table.committed(table.ingest(files=(table.file(1),), counts={"updated": 3}))
    path = commit_path(1)
    info, *_ = decode_commit(table.store.read(path), path)
    assert isinstance(info, CommitInfo)
    assert info.operation == "INGEST"
    assert info.metrics == {"updated": 3}
    assert info.parameters["generation"] == "1"
    assert info.parameters["offsets"] == '{"0": 5, "1": 7}'
    assert len(info.id) == 32
    assert [entry.info.operation for entry in history(table.store)] == ["INGEST", "CREATE TABLE"]


def test_the_view_floor_stays_at_the_start_of_the_oldest_waiting_delta(
    table: TableUnderTest,
) -> None:
    def floors() -> list[str]:
        return [entry.info.parameters["viewFloor"] for entry in history(table.store)]

    table.create()
    table.committed(table.ingest(5, files=(table.file(1),)))
    table.committed(table.ingest(5, deltas=(table.delta(1),)))
    table.committed(table.ingest(5, deltas=(table.delta(1),)))
    assert floors()[:3] == ['{"0": 5, "1": 7}'] * 3
    table.committed(table.splice())
    assert floors()[0] == '{"0": 15, "1": 7}'


def test_commit_times_rise_although_the_clock_falls_back(table: TableUnderTest) -> None:
    first = table.create()
    table.clock.jump_to(1000)
    second = table.committed(table.ingest())
    third = table.committed(table.ingest())
    assert [second.timestamp_ms, third.timestamp_ms] == [
        first.timestamp_ms + 1,
        first.timestamp_ms + 2,
    ]


def test_deltas_and_dead_letters_are_stamped_with_the_commits_time(table: TableUnderTest) -> None:
    table.create()
    table.committed(table.ingest(files=(table.file(1),)))
    snapshot = table.committed(table.ingest(deltas=(table.delta(1),)))
    assert [d.committed_ms for d in snapshot.manifest.deltas] == [snapshot.timestamp_ms]


def test_a_driver_below_the_manifests_generation_is_fenced(table: TableUnderTest) -> None:
    table.create(generation=1)
    old = table.ingest(files=(table.file(1),))
    table.committed(replace(table.ingest(0), generation=2))
    for intent in (old, table.splice(), Redirect(1, 1), IndexMerge(1, (), table.run())):
        with pytest.raises(FencedError):
            table.commit(replace(intent, generation=1))


def test_a_table_with_a_writer_feature_of_the_future_is_not_written(
    table: TableUnderTest,
) -> None:
    before = table.create()
    features = (*before.log.protocol.writer_features, "lakesplice2")
    protocol = replace(before.log.protocol, writer_features=features)
    newer = replace(before, log=replace(before.log, protocol=protocol))
    with pytest.raises(UnsupportedError):
        table.commit(table.ingest(), on=newer)


@pytest.mark.slow
@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST])
def test_if_any_call_fails_an_ingest_happens_once_or_not_at_all(tmp_path: Path, how: How) -> None:
    calls = _calls_of_an_ingest(tmp_path / "dry run")
    for number in range(calls):
        table = local_table(tmp_path / f"{how}{number}")
        before = table.create()
        intent = table.ingest(files=(table.file(1),))
        store = FaultyStore(table.store, [Fault.at(number, how)])
        _commit_whatever_happens(store, table, intent)
        after = table.now()
        assert after.version in (0, 1)
        if after.version == 0:
            assert after == before
            table.committed(intent)
        assert table.now().manifest.groups == {1}
        assert latest(table.store, before) == table.now()


def _calls_of_an_ingest(folder: Path) -> int:
    table = local_table(folder)
    table.create()
    store = FaultyStore(table.store)
    _commit_whatever_happens(store, table, table.ingest(files=(table.file(1),)))
    return len(store.calls)


def _commit_whatever_happens(store: FaultyStore, table: TableUnderTest, intent: Intent) -> None:
    from lakesplice.testing.faulty_store import Crash

    try:
        snapshot = open_snapshot(store)
        commit(store, snapshot, intent, clock=table.clock, entropy=table.entropy)
    except (StorageError, Crash):
        pass


def test_a_purge_floor_that_rose_since_an_ingest_was_planned_stays(table: TableUnderTest) -> None:
    reached = {
        at: replace(state, position=Position(1, 9)) for at, state in SOURCE.partitions.items()
    }
    table.create(source=replace(SOURCE, partitions=reached))
    late, floors = table.ingest(), {SOURCE.topic: Position(0, 5)}
    table.committed(Purge(1, (), (), None, floors, table.now().version))
    table.committed(late)
    assert table.now().manifest.purge_floor == Position(0, 5)
