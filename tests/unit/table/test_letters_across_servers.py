"""Dead letters from around a failover: replayed changes have the epoch of their record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.model.position import BEFORE_ALL
from lakesplice.planning.intake.line import RecordReading
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import (
    DeadLetterSelection,
    dead_letters_of,
    groups_in,
    table_of,
    write_dead_letters,
)
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.intents import Replay
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.ledgers import Ledger

# Each server's binlog is as long as its uptime: the second one is the younger.
FIRST_FILES = {1: 400, 2: 1}
UUIDS = {server: f"{server}" * 8 + "-0000-0000-0000-000000000000" for server in FIRST_FILES}


class Scene:
    """A ledger's events as one of two servers has them; some can't be read at first."""

    def __init__(self, folder: Path, *, mariadb: bool) -> None:
        self.ledger = Ledger("late", "letters")
        self.topic = SimulatedTopic(self.ledger.topic)
        self._mariadb = mariadb
        self.driver = SimulatedDriver(
            LocalStore(folder), self.topic, FixedClock(), SeededEntropy(1)
        )
        self._lost: dict[int, bytes] = {}

    def send(self, server: int, events: Iterable[Event], *, readable: bool = True) -> None:
        for event in events:
            value = None if event.value is None else self._from(server, event.value)
            if not readable and value is not None:
                self._lost[self.topic.ends[0]] = value
                value = b"{"
            self.topic.append(0, [event._replace(value=value)])
        self.driver.batch()

    def _from(self, server: int, value: bytes) -> bytes:
        record = json.loads(value)
        source = record["payload"]["source"]
        number = int(source["file"].rpartition(".")[2]) + FIRST_FILES[server]
        source["file"] = f"binlog.{number:06d}"
        written = source["gtid"].rpartition("-")[2].rpartition(":")[2]
        source["gtid"] = f"0-{server}-{written}" if self._mariadb else f"{UUIDS[server]}:{written}"
        return json.dumps(record).encode()

    def replay(self) -> DeadLetterCounts:
        """Repair what couldn't be read, and take it again."""
        table, entropy = self.driver.table, SeededEntropy(7)
        refs = table.manifest.dead_letters
        letters = [
            replace(letter, value=self._lost[letter.offset])
            for letter in dead_letters_of(table.store, refs)
        ]
        ref = write_dead_letters(table.store, table_of(letters), entropy)
        paths = frozenset(ref.file.path for ref in refs)
        table.commit(Replay(1, table.version, paths, (ref,)))
        assert table.snapshot is not None
        box = OpenDeadLetters(table.store, table.snapshot, table.commit, 1, FixedClock(), entropy)
        return box.replay(DeadLetterSelection(), RecordReading(table=self.driver.name))

    @property
    def texts(self) -> Sequence[str]:
        rows = Table(self.driver.table.store).read().sort_by("id").to_pylist()
        return [row["text"] for row in rows]


@pytest.fixture(params=[True, False], ids=["mariadb", "mysql"])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    return Scene(tmp_path, mariadb=request.param)


@pytest.mark.slow
def test_the_first_change_of_another_server_heals_its_row(scene: Scene) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(2, scene.ledger.update([0], "on the second"), readable=False)
    scene.send(2, scene.ledger.update([1], "opens the epoch"))
    assert [epoch.number for epoch in scene.driver.table.source.epochs] == [1]
    assert scene.replay() == DeadLetterCounts(1)
    assert scene.texts == ["on the second", "opens the epoch", "row 2"]


@pytest.mark.slow
def test_the_last_change_of_the_server_before_regresses_nothing(scene: Scene) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(1, scene.ledger.update([0, 2], "on the first"), readable=False)
    scene.send(2, scene.ledger.update([0], "on the second"))
    assert [epoch.number for epoch in scene.driver.table.source.epochs] == [1]
    assert scene.replay() == DeadLetterCounts(2)
    assert scene.texts == ["on the second", "row 1", "on the first"]


@pytest.mark.slow
def test_letters_below_a_truncate_do_nothing_and_those_above_it_heal(scene: Scene) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(1, scene.ledger.update([0], "below"), readable=False)
    scene.send(1, scene.ledger.insert(3, 5), readable=False)
    scene.send(1, [scene.ledger.truncate(range(5))])
    scene.send(1, scene.ledger.insert(0, 2), readable=False)
    scene.send(1, scene.ledger.insert(5, 6))
    assert scene.texts == ["row 5"]
    fence = scene.driver.table.source.fence
    assert scene.replay() == DeadLetterCounts(5)
    assert scene.texts == ["row 0", "row 1", "row 5"]
    assert scene.driver.table.source.fence == fence > BEFORE_ALL


@pytest.mark.slow
def test_a_replayed_truncate_deletes_only_older_rows(scene: Scene) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(1, scene.ledger.insert(3, 5), readable=False)
    scene.send(1, [scene.ledger.truncate(range(5))], readable=False)
    scene.send(2, scene.ledger.insert(1, 4))
    assert scene.replay() == DeadLetterCounts(3)
    assert scene.texts == ["row 1", "row 2", "row 3"]
    while scene.driver.table.manifest.deltas:
        scene.driver.compact()
    assert scene.texts == ["row 1", "row 2", "row 3"]


@pytest.mark.slow
def test_a_change_of_a_server_that_nothing_else_shows_is_refused(scene: Scene) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(2, scene.ledger.update([0], "on the second"), readable=False)
    scene.send(1, scene.ledger.update([1], "on the first"))
    assert not scene.driver.table.source.epochs
    assert scene.replay() == DeadLetterCounts(kept=1)
    (letter,) = dead_letters_of(scene.driver.table.store, scene.driver.table.manifest.dead_letters)
    assert letter.reason == "order-unproven"
    assert "verify --repair" in letter.detail
    assert scene.texts == ["row 0", "on the first", "row 2"]


def test_letters_of_two_batches_are_in_one_group_until_a_higher_position_is_read(
    scene: Scene,
) -> None:
    scene.send(1, scene.ledger.insert(0, 3))
    scene.send(1, scene.ledger.update([0], "lost"), readable=False)
    scene.send(1, scene.ledger.update([1], "lost"), readable=False)
    scene.send(1, scene.ledger.update([2], "read"))
    scene.send(1, scene.ledger.update([0], "lost again"), readable=False)
    table = scene.driver.table
    first, second, third = (groups_in(table.store, ref) for ref in table.manifest.dead_letters)
    assert len(first) == 1
    assert first == second
    assert third == {(0, None)}


@pytest.mark.slow
def test_a_letter_behind_which_nothing_was_read_is_a_bound_for_what_is_read_next(
    scene: Scene,
) -> None:
    scene.send(2, scene.ledger.insert(0, 3))
    scene.send(1, scene.ledger.update([0], "on the first"), readable=False)
    assert scene.replay() == DeadLetterCounts(removed=1)
    scene.send(2, scene.ledger.update([0], "on the second again"))
    assert scene.texts == ["on the second again", "row 1", "row 2"]
