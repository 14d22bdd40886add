"""Records that are returned to: skipped ones, and dead letters whose offsets are read again, from
around a failover.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.table.files.dead_letters import DeadLetter, dead_letters_of
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.shop import Event
from tests.unit.table.test_letters_across_servers import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, mariadb=False)
    made.send(2, made.ledger.insert(0, 3))
    return made


def skip(scene: Scene, server: int, events: Iterable[Event]) -> None:
    """Send events that the table never reads, until it returns to them."""
    for event in events:
        value = None if event.value is None else scene._from(server, event.value)
        scene.topic.append(0, [event._replace(value=value)])
    move(scene, scene.topic.ends[0])


def move(scene: Scene, offset: int) -> None:
    table = scene.driver.table
    source = moved(table.source, {0: Offset(offset)})
    table.commit(Redirect(1, table.version, source))


def letters_of(scene: Scene) -> list[DeadLetter]:
    table = scene.driver.table
    return dead_letters_of(table.store, table.manifest.dead_letters)


def test_skipped_records_of_the_same_server_are_applied_when_they_are_returned_to(
    scene: Scene,
) -> None:
    skip(scene, 2, scene.ledger.update([0, 1], "skipped"))
    scene.send(2, scene.ledger.update([1], "read"))
    (gap,) = scene.driver.table.source.gaps
    move(scene, gap.start)
    scene.driver.batch()
    assert scene.texts == ["skipped", "read", "row 2"]
    assert not scene.driver.table.source.gaps
    assert not letters_of(scene)


@pytest.mark.slow
def test_a_skipped_record_of_a_server_that_nothing_else_shows_becomes_a_dead_letter(
    scene: Scene,
) -> None:
    skip(scene, 1, scene.ledger.update([0], "on the other server"))
    scene.send(2, scene.ledger.update([1], "read"))
    scene.send(2, scene.ledger.update([0], "later"))
    (gap,) = scene.driver.table.source.gaps
    move(scene, gap.start)
    scene.driver.batch()
    assert scene.texts == ["later", "read", "row 2"]
    assert not scene.driver.table.source.gaps
    (letter,) = letters_of(scene)
    assert (letter.offset, letter.reason) == (gap.start, "order-unproven")
    newest = open_snapshot(scene.driver.table.store)
    assert sum(ref.rows for ref in newest.manifest.dead_letters) == 1


@pytest.mark.slow
def test_what_is_applied_of_a_gap_bounds_the_dead_letters_beside_it(scene: Scene) -> None:
    scene.send(2, scene.ledger.update([0], "unread"), readable=False)
    skip(scene, 2, scene.ledger.update([0], "skipped"))
    scene.send(2, scene.ledger.update([1], "unread"), readable=False)
    scene.send(2, scene.ledger.update([2], "read"))
    first, last = (letter.around for letter in letters_of(scene))
    assert first is not None
    assert last is not None
    assert first.behind == last.behind
    (gap,) = scene.driver.table.source.gaps
    move(scene, gap.start)
    scene.driver.batch()
    narrowed, raised = (letter.around for letter in letters_of(scene))
    assert narrowed is not None
    assert raised is not None
    assert isinstance(first.behind, Position)
    assert narrowed.behind == raised.before.position < first.behind
    assert scene.replay() == DeadLetterCounts(2)
    assert scene.texts == ["skipped", "unread", "read"]


@pytest.mark.slow
def test_a_dead_letter_whose_offset_is_read_again_is_judged_as_when_it_is_replayed(
    scene: Scene,
) -> None:
    scene.send(1, scene.ledger.update([0], "on the other server"), readable=False)
    scene.send(2, scene.ledger.update([0], "later"), readable=False)
    scene.send(2, scene.ledger.update([1], "read"))
    for offset, value in scene._lost.items():
        event = scene.topic.events(0, offset)[0]
        scene.topic._logs[0][offset] = event._replace(value=value)
    move(scene, min(scene._lost))
    scene.driver.batch()
    assert scene.texts == ["later", "read", "row 2"]
    refused, applied = letters_of(scene)
    assert (refused.reason, applied.reason) == ("order-unproven", "not-json")
    assert scene.replay() == DeadLetterCounts(removed=1, kept=1)
    assert scene.texts == ["later", "read", "row 2"]
