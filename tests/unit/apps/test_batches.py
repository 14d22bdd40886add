"""The service's own batches, with their tasks in this process: what is committed, what is passed
over, and why the query must restart.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.testing import capture_logs

from lakesplice.errors import FencedError, SourceUnavailable, StorageError
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.table.protocol.layout import generation_path
from lakesplice.telemetry.tracing import tracing_to
from tests.support.schema_topics import ReportedTable
from tests.support.simulated import driver_of, require_true
from tests.support.simulated_service import DATABASES, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.put(1, 2, 3)
    return made


@pytest.mark.slow
def test_a_batch_brings_every_table_to_its_ends_and_is_passed_over_when_repeated(
    scene: Scene,
) -> None:
    starts = scene.stand()
    scene.batch()
    scene.require_true(0, 1, 2)
    assert scene.job.runs == [tuple(sorted(scene.ends))]
    assert scene.held_back == [list(scene.ends)]
    versions = [table.version for table in scene.tables]
    assert scene.runner.restart is None
    scene.batch()
    assert len(scene.job.runs) == 1
    scene.batch(starts)
    assert [table.version for table in scene.tables] == versions
    assert scene.runner.restart == "refused-commit"


@pytest.mark.slow
def test_a_trace_has_the_batch_its_job_and_the_commit_of_each_table(tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    tracing = tracing_to(spans, 1.0, {})
    scene = Scene(tmp_path, tracing)
    scene.put(1, 2, 3)
    scene.batch()
    tracing.close()
    (batch,) = (one for one in spans.get_finished_spans() if one.parent is None)
    parts = [one for one in spans.get_finished_spans() if one.parent == batch.context]
    assert (batch.name, dict(batch.attributes or {})["result"]) == ("lakesplice.batch", "ok")
    assert {one.name for one in parts} == {"lakesplice.commit", "lakesplice.job"}
    commits = [dict(one.attributes or {}) for one in parts if one.name == "lakesplice.commit"]
    ingests = [one for one in commits if one["operation"] == "ingest"]
    assert {(one["table"], one["version"]) for one in ingests} == {
        (str(table.name), table.version) for table in scene.tables
    }


@pytest.mark.slow
def test_only_what_moved_is_in_the_job(scene: Scene) -> None:
    scene.batch()
    moved = scene.sources[1]
    moved.topic.append(0, moved.put(2))
    scene.batch()
    assert scene.job.runs[1:] == [(moved.topic.name,)]
    scene.require_true(0, 1, 2)


@pytest.mark.slow
def test_between_two_batches_a_runner_drains_and_continues_when_it_may(scene: Scene) -> None:
    for seconds in (0, 0.1, -1):
        assert scene.runner.drain(seconds)
    scene.batch()
    assert scene.job.runs == []
    scene.runner.begin()
    scene.batch()
    scene.require_true(0, 1, 2)


@pytest.mark.slow
def test_a_running_batch_is_awaited_and_none_starts_after_it(scene: Scene) -> None:
    scene.job.may_end = threading.Event()
    batch = threading.Thread(target=scene.batch)
    batch.start()
    assert scene.job.began.wait(60)
    assert not scene.runner.drain(0)
    scene.job.may_end.set()
    assert scene.runner.drain(60)
    batch.join(60)
    scene.require_true(0, 1, 2)
    scene.put(4)
    scene.batch()
    assert len(scene.job.runs) == 1


@pytest.mark.slow
def test_a_table_that_stands_elsewhere_is_refused_and_the_others_continue(scene: Scene) -> None:
    scene.batch()
    scene.put(4, 5)
    starts = scene.stand()
    starts[scene.sources[1].topic.name][0] = Offset(starts[scene.sources[1].topic.name][0] - 1)
    scene.batch(starts)
    scene.require_true(0, 2)
    assert scene.sources[1].topic.name not in scene.job.runs[-1]
    assert scene.table(1).refused
    assert scene.runner.restart == "refused-commit"
    scene.batch()
    scene.require_true(0, 2)
    scene.table(1).refused = False
    scene.batch()
    scene.require_true(0, 1, 2)


@pytest.mark.slow
def test_a_topic_that_was_created_again_parks_its_table(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    scene.sources[2].topic.topic_id = "another"
    scene.batch()
    scene.require_true(0, 1)
    parked = scene.table(2).parked
    assert parked is not None
    assert parked.code is ParkCode.TOPIC_RECREATED
    assert scene.runner.restart == "redirect"


@pytest.mark.slow
def test_a_table_that_had_gone_beyond_a_swap_of_names_is_parked_and_the_query_restarts(
    tmp_path: Path,
) -> None:
    source = ReportedTable("shop")
    scene = Scene(tmp_path, schema_topics=source.topics)
    place = {"database": DATABASES[1], "file": "binlog.000001"}
    source.tell("CREATE TABLE goods (id bigint, name text, n int)", 1, **place)
    source.look()
    scene.put(1)
    scene.batch()
    source.tell("ALTER TABLE goods RENAME COLUMN id TO n, RENAME COLUMN n TO id", 2, **place)
    source.look()
    scene.put(2)
    assert scene.runner.restart is None
    scene.batch()
    scene.require_true(0, 2)
    parked = scene.table(1).parked
    assert parked is not None
    assert parked.code is ParkCode.SCHEMA_CHANGE
    assert scene.runner.restart == "redirect"


@pytest.mark.slow
def test_the_table_that_kills_the_job_is_found_and_parked_alone(scene: Scene) -> None:
    scene.job.deadly = {scene.sources[1].topic.name}
    scene.batch()
    scene.require_true(0, 2)
    parked = scene.table(1).parked
    assert parked is not None
    assert parked.code is ParkCode.JOB_DIED
    assert parked.detail.endswith("ValueError: it died")
    assert scene.runner.restart == "redirect"


@pytest.mark.parametrize(
    "words", ["Not authorized to access topics: [{}]", "Timeout of 60000ms expired for {}-0"]
)
def test_a_topic_whose_records_kafka_refuses_lets_its_table_rest_and_parks_none(
    scene: Scene, words: str
) -> None:
    """Each job of the batch reads all topics, so a search by halves would park every table."""
    refused = scene.sources[1].topic.name
    scene.job.kafka_says = words.format(refused)
    scene.batch()
    assert [table.is_left_out for table in scene.tables] == [False, True, False]
    assert not any(table.parked for table in scene.tables)
    assert scene.runner.restart == "redirect"
    scene.job.kafka_says = ""
    scene.batch()
    scene.require_true(0, 2)


def test_a_refusal_that_names_no_topic_of_the_batch_fails_the_batch_and_blames_no_table(
    scene: Scene,
) -> None:
    scene.job.kafka_says = f"no answer for {scene.sources[1].topic.name}.more-0"
    with pytest.raises(SourceUnavailable):
        scene.batch()
    assert not any(table.parked or table.is_left_out for table in scene.tables)


def test_no_table_is_parked_if_the_job_dies_with_each_of_them(scene: Scene) -> None:
    """As with a machine that has no room: what is wrong with all of them is no table's fault. They
    rest, so that other tables can be read meanwhile.
    """
    scene.job.deadly = set(scene.ends)
    scene.batch()
    assert not any(table.parked for table in scene.tables)
    assert all(table.is_left_out for table in scene.tables)
    assert scene.runner.restart == "redirect"
    scene.job.deadly = set()
    for table in scene.tables:
        table.refused = False
    scene.batch()
    scene.require_true(0, 1, 2)


def test_a_job_that_dies_while_the_query_ends_counts_against_no_table(scene: Scene) -> None:
    scene.job.deadly = set(scene.ends)
    scene.job.may_end = threading.Event()
    failed: list[BaseException] = []

    def batch() -> None:
        try:
            scene.batch()
        except RuntimeError as error:
            failed.append(error)

    thread = threading.Thread(target=batch)
    thread.start()
    assert scene.job.began.wait(60)
    assert not scene.runner.drain(0)
    scene.job.may_end.set()
    thread.join(60)
    assert len(failed) == 1
    assert len(scene.job.runs) == 1
    assert all(table.parked is None for table in scene.tables)


@pytest.mark.slow
def test_tables_whose_schema_grows_run_again_within_the_batch(scene: Scene) -> None:
    scene.batch()
    grown = scene.sources[0]
    grown.add_column("added", 5)
    grown.topic.append(0, grown.put(9))
    scene.put(4)
    scene.batch()
    scene.require_true(0, 1, 2)
    assert scene.job.runs[2:] == [(grown.topic.name,)]
    assert "added" in scene.table(0).schema.names


@pytest.mark.slow
@pytest.mark.parametrize("error", [StorageError("full", path="x"), ValueError("what?")])
def test_a_table_whose_task_fails_rests_and_the_others_continue(
    scene: Scene, error: Exception
) -> None:
    scene.job.errors = {scene.sources[0].topic.name: error}
    scene.batch()
    scene.require_true(1, 2)
    assert scene.table(0).rests
    assert scene.table(0).refused
    assert scene.table(0).parked is None
    scene.job.errors = {}
    scene.table(0).refused = False
    scene.batch()
    scene.require_true(0, 1, 2)
    assert not scene.table(0).is_failing


@pytest.mark.slow
def test_a_failed_commit_affects_only_its_own_table(scene: Scene) -> None:
    name = scene.table(1).name.path
    scene.fails = lambda call: call.method == "put_new" and call.path.startswith(name)
    scene.batch()
    scene.require_true(0, 2)
    assert scene.table(1).rests


@pytest.mark.slow
def test_a_driver_that_was_replaced_stops(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    assert scene.lake.put_new(generation_path(2), b"")
    with pytest.raises(FencedError):
        scene.batch()
    assert isinstance(scene.runner.fatal, FencedError)
    assert len(scene.job.runs) == 1


@pytest.mark.slow
def test_a_driver_that_is_replaced_during_a_batch_stops(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    first = scene.sources[0]
    successor = driver_of(first, scene.lake, generation=2, seed=7)
    scene.job.meanwhile = successor.batch
    with pytest.raises(FencedError):
        scene.batch()
    assert isinstance(scene.runner.fatal, FencedError)
    require_true(first, successor.table.store)


@pytest.mark.slow
def test_a_table_that_another_writer_moved_is_read_again_at_once_but_only_once(
    scene: Scene,
) -> None:
    first = scene.sources[0]
    scene.batch()
    for meets in range(2):
        scene.put(4)
        scene.job.meanwhile = driver_of(first, scene.lake, seed=7 + meets).batch
        scene.runner.begin()
        scene.table(0).refused = False
        scene.batch()
        scene.require_true(0, 1, 2)
        assert scene.table(0).refused
        assert scene.table(0).rests == (meets == 1)
        assert scene.runner.restart == (None if meets else "refused-commit")


@pytest.mark.slow
def test_a_table_that_parks_for_what_its_batch_brought_is_left_out_by_the_next_query(
    scene: Scene,
) -> None:
    scene.batch()
    spoilt = scene.sources[1]
    unreadable = [event._replace(value=b"{") for key in range(40) for event in spoilt.put(key)]
    spoilt.topic.append(0, unreadable)
    with capture_logs() as logged:
        scene.batch()
    told = [one["table"] for one in logged if one["event"] == "table-parked"]
    assert told == [str(scene.table(1).name)], "once, although it was parked within its commit"
    parked = scene.table(1).parked
    assert parked is not None
    assert parked.code is ParkCode.DEAD_LETTERS
    assert scene.runner.restart == "redirect"
    scene.require_true(0, 2)


@pytest.mark.slow
def test_a_batch_that_was_held_back_until_the_query_ended_is_dropped_whole(scene: Scene) -> None:
    def until_the_end() -> bool:
        scene.runner.end()
        return True

    scene.hold = until_the_end
    scene.batch()
    assert scene.job.runs == []
    scene.require_true()
    scene.runner.begin()
    scene.hold = lambda: True
    scene.batch()
    scene.require_true(0, 1, 2)
