"""A new snapshot deletes rows that it lacks once all of it is read; in a history table they end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.ledgers import ledger
from tests.support.simulated import keys_of

PARTITIONS = 2


class Scene:
    """A source of which the connector misses some statements, its topic, and a driver."""

    def __init__(self, folder: Path, *, keeps_versions: bool = False) -> None:
        self.keeps_versions = keeps_versions
        self.database = Database([ledger()], server="snapshots", database="again")
        self.topic = SimulatedTopic(self.database.topic("ledger"), PARTITIONS)
        self.folder = folder
        self.start()
        self.store = LocalStore(folder / self.driver.name.path)

    def start(self) -> None:
        """Start a driver, as if the one before had died."""
        entropy = SeededEntropy(sum(self.topic.ends.values()))
        self.driver = SimulatedDriver(
            LocalStore(self.folder),
            self.topic,
            FixedClock(),
            entropy,
            ranges=2,
            read_tasks=2,
            keeps_versions=self.keeps_versions,
        )

    def insert(self, keys: Iterable[int]) -> list[Event]:
        rows = [(key, f"row {key}", key, key * 10, key * 1_000) for key in keys]
        self.database.insert("ledger", rows)
        return self.database.drain()

    def delete(self, keys: Iterable[int]) -> list[Event]:
        self.database.delete("ledger", [(key,) for key in keys])
        return self.database.drain()

    def update(self, keys: Iterable[int], text: str) -> list[Event]:
        for key in keys:
            self.database.update("ledger", [(key,)], lambda row: (row[0], text, *row[2:]))
        return self.database.drain()

    def send(self, events: Iterable[Event]) -> None:
        for event in events:
            self.topic.append(zlib.crc32(event.key or b"") % PARTITIONS, [event])

    @property
    def keys(self) -> list[int]:
        """The keys of the real-time view, or of the current versions."""
        table = Table(self.store)
        rows = table.read_history(["id"], current=True) if self.keeps_versions else table.read()
        return sorted(rows["id"].to_pylist())

    def holds_the_truth(self) -> None:
        """Both views are what the source holds, or the current versions are."""
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        table, truth = Table(self.store), self.database.truth("ledger").sort_by("id")
        assert table.snapshot.manifest.parked is None
        if self.keeps_versions:
            found = table.read_history(truth.column_names, current=True).sort_by("id")
            assert found.select(truth.column_names).to_pylist() == truth.to_pylist()
            return
        for view in View:
            assert table.read(view).sort_by("id").to_pylist() == truth.to_pylist()


@pytest.fixture(params=[False, True], ids=["upsert", "history"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return Scene(tmp_path, keeps_versions=request.param)


@pytest.mark.slow
def test_rows_that_vanished_unseen_are_deleted_at_the_end_of_a_new_snapshot(scene: Scene) -> None:
    scene.send(scene.insert(range(30)))
    scene.driver.batch()
    scene.delete(range(10))
    scene.insert(range(30, 34))
    scene.send(scene.database.snapshot())
    scene.driver.batch()
    source = scene.driver.table.source
    assert source.snapshot is not None
    assert len(source.snapshot.passed) == 1
    assert set(scene.keys) >= set(range(10))
    scene.start()
    scene.send(scene.update(range(10, 30), "after the snapshot"))
    scene.driver.batch()
    assert scene.driver.table.source.snapshot is None
    scene.holds_the_truth()
    scene.send(scene.insert(range(5)))
    scene.driver.batch()
    scene.holds_the_truth()


@pytest.mark.parametrize("again", [False, True], ids=["goes on", "begins again"])
def test_a_snapshot_that_broke_off_deletes_nothing(scene: Scene, again: bool) -> None:
    """A connector that is killed while it takes a blocking snapshot goes on without the rest; or it
    goes back, and the snapshot's rows then have the GTID of the change before.
    """
    scene.send(scene.insert(range(20)))
    below, streamed = scene.database.snapshot(), scene.update(range(4), "streamed")
    scene.send(streamed)
    rows = scene.database.snapshot()
    scene.send(rows[-6:] if again else rows[:6])
    scene.driver.batch()
    if again:
        gtid = json.loads(streamed[0].value or b"")["payload"]["source"]["gtid"]
        for event in below:
            record = json.loads(event.value or b"")
            record["payload"]["source"]["gtid"] = gtid
            scene.send([event._replace(value=json.dumps(record).encode())])
        scene.driver.batch()
        scene.send(streamed)
    scene.send(scene.update(range(10, 20), "later"))
    scene.driver.batch()
    scene.holds_the_truth()


def test_a_first_snapshot_deletes_nothing_and_leaves_no_fence(scene: Scene) -> None:
    scene.insert(range(20))
    scene.send(scene.database.snapshot())
    scene.send(scene.update(range(20), "later"))
    scene.driver.batch()
    scene.holds_the_truth()
    assert scene.driver.table.source.fence.file == -1


@pytest.mark.slow
def test_a_snapshot_that_was_begun_again_counts_as_the_whole(scene: Scene) -> None:
    scene.send(scene.insert(range(20)))
    scene.driver.batch()
    scene.delete([3])
    scene.send(scene.database.snapshot()[:6])
    scene.driver.batch()
    scene.delete([5, 7])
    scene.send(scene.database.snapshot())
    scene.driver.batch()
    scene.send(scene.update(range(8, 20), "later"))
    scene.driver.batch()
    scene.holds_the_truth()


@pytest.mark.slow
def test_a_snapshot_with_a_dead_letter_deletes_nothing(scene: Scene) -> None:
    scene.send(scene.insert(range(20)))
    scene.driver.batch()
    scene.delete(range(5))
    first, *others = scene.database.snapshot()
    scene.send([first._replace(value=b"{"), *others])
    scene.driver.batch()
    scene.send(scene.update(range(5, 20), "later"))
    scene.driver.batch()
    assert scene.driver.table.source.snapshot is None
    assert set(scene.keys) == set(range(20))


@pytest.mark.slow
def test_a_dead_letter_just_before_a_snapshot_may_be_its_first_row(scene: Scene) -> None:
    scene.send(scene.insert(range(20)))
    scene.driver.batch()
    scene.delete(range(5))
    first, *others = scene.database.snapshot()
    scene.send([first._replace(value=b"{")])
    scene.driver.batch()
    scene.send(others)
    scene.send(scene.update(range(5, 20), "later"))
    scene.driver.batch()
    assert set(scene.keys) == set(range(20))


@pytest.mark.slow
def test_a_table_whose_snapshots_are_filtered_keeps_its_rows(scene: Scene) -> None:
    scene.send(scene.insert(range(20)))
    scene.driver.batch()
    scene.driver.table.whole_snapshots = False
    scene.delete(range(5))
    scene.send(scene.database.snapshot())
    scene.send(scene.update(range(5, 20), "later"))
    scene.driver.batch()
    assert set(scene.keys) == set(range(20))


def pass_over(scene: Scene, partitions: Iterable[int] = range(PARTITIONS)) -> None:
    """Go on behind all that a partition has."""
    ends = {at: scene.topic.ends[at] for at in partitions}
    scene.driver.table.continue_at(lambda source: moved(source, ends), "a test")


@pytest.mark.slow
def test_a_whole_snapshot_closes_the_gaps_before_it(scene: Scene) -> None:
    scene.send(scene.insert(range(30)))
    scene.driver.batch()
    scene.send(scene.delete(range(10)))
    pass_over(scene)
    scene.send(scene.update(range(10, 30), "before the snapshot"))
    scene.driver.batch()
    assert len(scene.driver.table.source.gaps) == PARTITIONS
    scene.send(scene.database.snapshot())
    scene.send(scene.update(range(10, 30), "after the snapshot"))
    scene.driver.batch()
    # In a history table versions are missing.
    assert len(scene.driver.table.source.gaps) == PARTITIONS * scene.keeps_versions
    scene.holds_the_truth()


@pytest.mark.slow
def test_a_gap_behind_a_snapshot_is_not_closed_by_it(scene: Scene) -> None:
    scene.send(scene.insert(range(30)))
    scene.driver.batch()
    scene.insert(range(30, 40))
    scene.send(scene.database.snapshot())
    scene.driver.batch({0: scene.topic.ends[0], 1: scene.driver.table.next_offsets([1])[1]})
    scene.send(scene.delete(range(10)))
    pass_over(scene, [0])
    scene.send(scene.update(range(10, 30), "after the snapshot"))
    scene.driver.batch()
    source = scene.driver.table.source
    assert scene.driver.table.parked is None
    assert (source.snapshot, [gap.partition for gap in source.gaps]) == (None, [0])
    assert set(range(10)) & set(scene.keys), "whose deletes were passed over"


@pytest.mark.slow
def test_a_snapshot_of_which_a_partition_was_passed_over_deletes_nothing(scene: Scene) -> None:
    scene.send(scene.insert(range(30)))
    scene.driver.batch()
    scene.insert(range(30, 40))
    scene.send(scene.database.snapshot())
    pass_over(scene, [0])
    scene.send(scene.update(range(10, 30), "after the snapshot"))
    scene.driver.batch({0: scene.topic.ends[0], 1: scene.driver.table.next_offsets([1])[1]})
    scene.driver.batch()
    source = scene.driver.table.source
    assert (source.snapshot, source.fence.file) == (None, -1)
    assert set(scene.keys) >= set(range(30))
    assert source.gaps


@pytest.mark.slow
@pytest.mark.parametrize("life", range(3))
def test_however_the_snapshot_is_read_the_rows_are_the_source_s(
    scene: Scene, seed: int, life: int
) -> None:
    random = Random(seed + life)
    scene.send(scene.insert(range(40)))
    scene.driver.batch()
    for turn in range(3):
        keys = keys_of(scene.database, "ledger")
        scene.delete(random.sample(keys, 6))
        left = [key for key in keys if (key,) in scene.database.rows("ledger")]
        scene.update(random.sample(left, 5), "unseen")
        scene.send(scene.database.snapshot())
        scene.send(scene.update(left, f"turn {turn}"))
        scene.send(scene.insert(range(100 * turn + 100, 100 * turn + 110)))
        for _ in range(4):
            here = scene.driver.table.next_offsets(scene.topic.ends)
            reached = scene.topic.ends.items()
            ends = {at: Offset(random.randint(here[at], end)) for at, end in reached}
            scene.driver.batch(ends)
    scene.driver.batch()
    scene.holds_the_truth()


@pytest.mark.slow
def test_while_a_letter_is_open_no_snapshot_deletes_what_may_be_its_row(scene: Scene) -> None:
    def of(number: int, events: Iterable[Event]) -> list[Event]:
        return [one for one in events if zlib.crc32(one.key or b"") % PARTITIONS == number]

    scene.send(scene.insert(range(8)))
    scene.driver.batch()
    scene.insert([50])  # the connector misses it
    snapshot = scene.database.snapshot()
    scene.topic.append(0, [event._replace(value=b"{") for event in of(0, snapshot)])
    scene.driver.batch()
    # A change that is of no snapshot says nothing of the snapshot's rows that couldn't be read.
    changed = scene.update(range(8), "later")
    scene.topic.append(0, of(0, changed)[:1])
    scene.topic.append(1, of(1, snapshot))
    scene.driver.batch()
    scene.topic.append(1, of(1, changed))
    scene.driver.batch()
    assert set(scene.keys) >= set(range(8))
    assert scene.driver.table.manifest.dead_letters
