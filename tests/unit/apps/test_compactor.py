"""The service's own compactor, with its rewrites done in this process."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakesplice.apps.service.upkeep import compactor, small_rewrites
from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.apps.service.upkeep.small_rewrites import rewrite_by_size
from lakesplice.apps.service.upkeep.table_upkeep import Upkeep
from lakesplice.errors import CorruptFileError, FencedError, MissingFileError, StorageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.parking import ParkCode
from lakesplice.planning.upkeep.compaction import TableBacklog, backlog
from lakesplice.spark.jobs.rewrites import RewriteTask, rewrite_files
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import open_sink
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.layout import generation_path
from lakesplice.table.upkeep.compact import Compacted
from lakesplice.telemetry import catalogue as metric
from lakesplice.testing.shop import Event
from tests.support.compacting import HELD_AT, SECONDS_MAX, Compacting
from tests.support.simulated_service import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Compacting:
    return Compacting(tmp_path)


def topic(scene: Scene, at: int) -> str:
    return scene.sources[at].topic.name


@pytest.mark.slow
def test_only_tables_that_are_due_are_compacted(scene: Compacting) -> None:
    scene.compactor.finish()
    scene.change(0, times=1)
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]
    assert scene.rewrites.done == []
    scene.change(0, times=1)
    scene.change(1, times=3)
    scene.compactor.finish()
    assert sorted(scene.rewrites.done) == [topic(scene, 0), topic(scene, 1)]
    assert scene.waiting() == [False, False, False]
    scene.require_compacted(0)
    scene.require_compacted(1)
    scene.require_true(0, 1, 2)


@pytest.mark.slow
def test_a_change_that_never_came_is_reported_by_the_compaction_of_the_next(
    scene: Compacting,
) -> None:
    source = scene.sources[0]

    def changed() -> list[Event]:
        return next(event for _ in range(20) if (event := source.put(3)))

    changed()  # the connector loses it
    source.topic.append(0, changed())
    scene.batch()
    scene.change(0)
    scene.compactor.finish()
    (found,) = scene.driver.activity.missing_changes.values()
    assert (found.changes, found.seen_ms) == (1, scene.clock.now_ms())
    assert scene.metrics.value(metric.UNLINKED_CHANGES, table="one.goods") == 1


@pytest.mark.slow
def test_a_table_that_fails_is_left_alone_for_a_while_and_the_others_continue(
    scene: Compacting,
) -> None:
    scene.change(0, 1)
    scene.rewrites.errors = {topic(scene, 0): StorageError("away", path="x")}
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]
    assert scene.table(0).parked is None
    scene.rewrites.errors = {}
    scene.clock.advance(29)
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]
    scene.clock.advance(2)
    scene.compactor.finish()
    scene.require_compacted(0)


@pytest.mark.slow
def test_a_damaged_file_parks_its_table_and_stops_its_compaction(scene: Compacting) -> None:
    scene.change(0, 1)
    scene.rewrites.errors = {topic(scene, 0): CorruptFileError("damaged", path="x")}
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]
    parked = scene.table(0).parked
    assert parked is not None
    assert parked.code is ParkCode.CORRUPT
    scene.rewrites.errors = {}
    scene.clock.advance(3600)
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]


@pytest.mark.slow
def test_changes_that_arrive_meanwhile_wait_for_the_next_compaction(scene: Compacting) -> None:
    scene.change(0)

    def arrive() -> None:
        scene.rewrites.meanwhile = lambda: None
        scene.change(0, times=1)

    scene.rewrites.meanwhile = arrive
    scene.compactor.finish()
    assert scene.waiting() == [True, False, False]
    scene.require_true(0, 1, 2)
    scene.change(0, times=1)
    scene.compactor.finish()
    scene.require_compacted(0)


@pytest.mark.slow
def test_a_compaction_counts_once_it_is_committed_and_not_if_another_came_first(
    scene: Compacting,
) -> None:
    def counted() -> list[float | None]:
        table = str(scene.table(0).name)
        return [
            *(scene.metrics.value(metric.COMPACTIONS, table=table, result=result)
              for result in ("committed", "conflict")),
            scene.metrics.value(metric.COMPACTION_BYTES, direction="written"),
        ]  # fmt: skip

    scene.change(0)
    rival = Compactor(scene.driver, scene.tables, scene.compactor._session, scene.rewrites)
    by_the_rival: list[float | None] = []

    def compact_first() -> None:
        scene.rewrites.meanwhile = lambda: None
        rival.finish()
        by_the_rival.extend(counted())

    scene.rewrites.meanwhile = compact_first
    scene.compactor.finish()
    committed, conflicts, written = by_the_rival
    assert (committed, conflicts) == (1, None)
    assert written
    assert counted() == [1, 1, written]
    scene.require_compacted(0)


@pytest.mark.slow
def test_a_table_is_compacted_by_one_thread_at_a_time(scene: Compacting) -> None:
    scene.change(0, 1)
    scene.rewrites.may_end.clear()
    threads = [threading.Thread(target=scene.compactor._turn) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert scene.rewrites.began.wait(SECONDS_MAX)
    for thread in threads:
        thread.join(0.1)
    scene.rewrites.may_end.set()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert sorted(scene.rewrites.done) == [topic(scene, 0), topic(scene, 1)]


@pytest.mark.slow
def test_ingest_waits_until_a_table_far_behind_is_compacted(scene: Compacting) -> None:
    scene.change(0, times=HELD_AT - 1)
    tables = [scene.table(at) for at in range(3)]
    assert not scene.compactor.hold_back(tables)
    scene.change(0, times=1)
    assert not scene.compactor.hold_back(tables[1:])
    answers: list[bool] = []
    ingest = threading.Thread(target=lambda: answers.append(scene.compactor.hold_back(tables)))
    ingest.start()
    ingest.join(0.3)
    assert answers == []
    scene.compactor.finish()
    ingest.join(SECONDS_MAX)
    assert answers == [True]


@pytest.mark.slow
@pytest.mark.parametrize("why", ["stopped", "paused"])
def test_ingest_does_not_wait_for_a_compaction_that_does_not_come(
    scene: Compacting, why: str
) -> None:
    scene.change(0, times=HELD_AT)
    if why == "stopped":
        scene.compactor.stop()
    else:
        scene.rewrites.errors = {topic(scene, 0): StorageError("away", path="x")}
        scene.compactor.finish()
    assert scene.compactor.hold_back([scene.table(0)])
    assert scene.waiting() == [True, False, False]


@pytest.mark.slow
def test_a_compactor_whose_driver_was_replaced_ends(scene: Compacting) -> None:
    scene.change(0)
    scene.rewrites.errors = {topic(scene, 0): FencedError("replaced", generation=1)}
    with pytest.raises(FencedError):
        scene.compactor.finish()
    assert scene.lake.put_new(generation_path(2), b"")
    scene.compactor.start()
    for thread in scene.compactor._threads:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()
    assert scene.waiting() == [True, False, False]


@pytest.mark.slow
def test_threads_compact_until_they_are_stopped(scene: Compacting) -> None:
    scene.change(0, 1, 2)
    scene.rewrites.may_end.clear()
    scene.compactor.start()
    assert scene.rewrites.began.wait(SECONDS_MAX)
    calls: list[int] = []

    def meanwhile() -> None:
        calls.append(1)
        scene.rewrites.may_end.set()

    scene.compactor.stop(meanwhile)
    assert calls
    assert scene.rewrites.done
    for at, waits in enumerate(scene.waiting()):
        if not waits:
            scene.require_compacted(at)


@pytest.mark.slow
def test_a_turn_sums_up_only_tables_that_changed_and_a_start_makes_no_upkeep_due(
    scene: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hundreds of tables each turn looks at all of them, and a start finds all of them old."""
    summed: list[Manifest] = []

    def counted(manifest: Manifest, rows_per_page: int) -> TableBacklog:
        summed.append(manifest)
        return backlog(manifest, rows_per_page)

    monkeypatch.setattr(compactor, "backlog", counted)
    scene.change(0, 1, 2, times=12)
    started = Compactor(scene.driver, scene.tables, scene.compactor._session, scene.rewrites)
    started.finish()
    assert len(summed) == 6  # of each table before its compaction and after it
    assert len(scene.rewrites.done) == 3
    started.finish()
    assert len(summed) == 6
    seen: list[str] = []
    monkeypatch.setattr(Upkeep, "see_to", lambda _, table: seen.append(str(table.name)))
    Compactor(scene.driver, scene.tables, scene.compactor._session, scene.rewrites).finish()
    assert not seen


@pytest.mark.slow
def test_threads_go_on_after_errors_that_nobody_expected(scene: Compacting) -> None:
    left = [RuntimeError("nobody expects it")] * scene.driver.settings.compaction.threads

    def fail() -> None:
        if left:
            raise left.pop()
        compacted.set()

    scene.change(0)
    compacted, scene.rewrites.meanwhile = threading.Event(), fail
    scene.compactor.start()
    assert compacted.wait(SECONDS_MAX)
    scene.compactor.stop()
    scene.require_compacted(0)


class TasksHere:
    """Spark's context, whose tasks run in this process."""

    def __init__(self) -> None:
        self._results: list[Any] = []

    def setLocalProperty(self, *_: str) -> None:  # noqa: N802  # Spark's name
        pass

    def parallelize(self, tasks: list[bytes], _: int) -> TasksHere:
        self._results = list(tasks)
        return self

    def map(self, function: Any) -> TasksHere:
        self._results = [function(task) for task in self._results]
        return self

    def collect(self) -> list[Any]:
        return pickle.loads(pickle.dumps(self._results))  # type: ignore[no-any-return]  # any


@pytest.mark.slow
def test_an_error_of_a_task_reaches_the_driver_as_what_it_is(
    scene: Compacting, tmp_path: Path
) -> None:
    scene.change(0)
    manifest, session = scene.table(0).manifest, SimpleNamespace(sparkContext=TasksHere())
    (path,) = manifest.files
    empty = LocalStore(tmp_path / "empty")
    task = RewriteTask(empty, manifest, (path,), best_rewriter(open_sink), SystemEntropy())
    with pytest.raises(MissingFileError):
        rewrite_files(session, [task])  # type: ignore[arg-type]  # as much of it as is needed


@pytest.mark.slow
def test_little_is_rewritten_without_spark_and_much_by_its_tasks(
    scene: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.change(0)
    manifest, store = scene.table(0).manifest, scene.table(0).store
    rewriter = best_rewriter(open_sink)
    task = RewriteTask(store, manifest, tuple(manifest.files), rewriter, SystemEntropy())
    without_spark: Any = None
    (here,) = rewrite_by_size(without_spark, [task])
    monkeypatch.setattr(small_rewrites, "DRIVER_BYTES_MAX", 1)
    session: Any = SimpleNamespace(sparkContext=TasksHere())
    (there,) = rewrite_by_size(session, [task])
    assert here.counts == there.counts
    assert here.consumed == there.consumed != {}


def test_an_error_that_nobody_expected_leaves_a_small_table_alone_for_a_while(
    scene: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: RewriteTask) -> Compacted:
        raise ZeroDivisionError("of a library")

    monkeypatch.setattr(small_rewrites, "rewritten", fail)
    scene.compactor._run_rewrites = rewrite_by_size
    scene.change(0)
    scene.compactor.finish()
    assert "of a library" in scene.driver.activity.failures["one.goods"].reason
    assert scene.waiting() == [True, False, False]
