"""A table whose source fails over, fails back and repeats itself, driven without Spark or Kafka."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.command_line import CommandLine
from tests.support.ledgers import Ledger

PARTITIONS = 2
# Each server's binlog is as long as its uptime: the second one is the youngest.
FIRST_FILES = {1: 400, 2: 1, 3: 7}


class Scene:
    """A ledger's events as one of several servers has them in its binlog, and a driver."""

    def __init__(self, folder: Path, *, gtids: bool = True, seed: int = 0) -> None:
        self.ledger = Ledger("failing", "over")
        self.topic = SimulatedTopic(self.ledger.topic, PARTITIONS)
        self.folder, self._gtids, self._seed = folder, gtids, seed
        self._starts = 0
        self.numbered_from = self.later_us = 0
        self.driver = self.start()

    def start(self) -> SimulatedDriver:
        """Start a driver, as if the one before had died."""
        lake, generation = LocalStore(self.folder), self._starts
        if self._starts:
            generation = Table(LocalStore(self.address)).snapshot.manifest.generation
        self._starts += 1
        entropy = SeededEntropy(self._seed * 100 + self._starts)
        self.driver = SimulatedDriver(
            lake, self.topic, FixedClock(), entropy, generation=generation, ranges=2, read_tasks=2
        )
        return self.driver

    @property
    def address(self) -> Path:
        return self.folder / self.driver.name.path

    def send(self, server: int, events: Iterable[Event]) -> None:
        """Let a connector that reads from `server` send events."""
        for event in events:
            value = None if event.value is None else self._from(server, event.value)
            self.topic.append(
                zlib.crc32(event.key or b"") % PARTITIONS, [event._replace(value=value)]
            )

    def _from(self, server: int, value: bytes) -> bytes:
        record = json.loads(value)
        source = record["payload"]["source"]
        number = int(source["file"].rpartition(".")[2]) + FIRST_FILES[server]
        source["file"] = f"binlog.{number:06d}"
        written = source["gtid"] and source["gtid"].rpartition("-")[2]
        numbered = int(written or 0) - self.numbered_from
        source["gtid"] = f"0-{server}-{numbered}" if self._gtids and written else None
        source["ts_us"] += self.later_us
        return json.dumps(record).encode()

    def holds_the_truth(self) -> None:
        """Both views are what the source holds."""
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        table, truth = Table(LocalStore(self.address)), self.ledger.truth.sort_by("id")
        assert table.snapshot.manifest.parked is None
        for view in View:
            assert table.read(view).sort_by("id").to_pylist() == truth.to_pylist()

    @property
    def epochs(self) -> Iterator[tuple[int, set[int]]]:
        source = self.driver.table.source
        return ((epoch.number, {*epoch.entered}) for epoch in source.epochs)


def number_of(event: Event) -> int:
    """The number of an event's GTID."""
    assert event.value is not None
    return int(json.loads(event.value)["payload"]["source"]["gtid"].rpartition("-")[2])


@pytest.mark.slow
def test_a_failover_and_the_way_back_lose_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 40))
    scene.driver.batch()
    scene.send(1, before := scene.ledger.update(range(20), "on the first"))
    scene.send(2, [*before[-8:], *scene.ledger.update(range(5, 30), "on the second")])
    scene.driver.batch()
    scene.holds_the_truth()
    scene.send(2, scene.ledger.delete([1, 2, 7]))
    scene.driver.batch()
    scene.send(3, scene.ledger.insert(1, 3) + scene.ledger.update(range(8, 20), "on the third"))
    scene.driver.batch()
    scene.send(1, scene.ledger.update(range(10, 40), "on the first again"))
    scene.driver.batch()
    scene.holds_the_truth()
    # From the second to the third positions rise as in one binlog, and to the first they do too.
    assert list(scene.epochs) == [(1, {0, 1})]
    scene.send(2, scene.ledger.update(range(10, 40), "on the second again"))
    scene.driver.batch()
    assert list(scene.epochs) == [(1, {0, 1}), (2, {0, 1})]
    scene.holds_the_truth()


@pytest.mark.slow
def test_a_partition_enters_an_epoch_with_its_first_change_under_the_new_gtids(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 40))
    scene.driver.batch()
    end = scene.topic.ends
    scene.send(2, scene.ledger.update(range(40), "on the second"))
    scene.driver.batch({0: scene.topic.ends[0]})
    (epoch,) = scene.driver.table.source.epochs
    assert epoch.entered == {0: end[0]}
    scene.start().batch()
    (epoch,) = scene.driver.table.source.epochs
    assert epoch.entered == end
    scene.holds_the_truth()


@pytest.mark.slow
@pytest.mark.parametrize("life", range(3))
def test_batches_of_any_size_and_drivers_that_die_come_to_the_same_rows(
    tmp_path: Path, seed: int, life: int
) -> None:
    seed += life
    random, scene = Random(seed), Scene(tmp_path, seed=seed)
    sent: list[Event] = []
    scene.send(1, scene.ledger.insert(0, 30))
    for turn in range(12):
        server = random.choice([1, 2, 3])
        scene.send(server, sent[len(sent) - random.randrange(10) :] if sent else [])
        sent = scene.ledger.update(random.sample(range(30), 8), f"turn {turn}")
        scene.send(server, sent)
        here = scene.driver.table.next_offsets(scene.topic.ends)
        reached = scene.topic.ends.items()
        ends = {at: Offset(random.randint(here[at], end)) for at, end in reached}
        if scene.driver.table.snapshot is not None and random.random() < 0.3:
            scene.start()
        scene.driver.batch(ends)
    scene.driver.batch()
    scene.holds_the_truth()
    assert list(scene.epochs)


@pytest.mark.slow
def test_a_connector_that_goes_back_and_on_again_before_it_has_repeated_all_loses_nothing(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 20))
    scene.send(1, older := scene.ledger.update(range(20), "on the first"))
    scene.driver.batch()
    scene.send(2, newer := scene.ledger.update(range(20), "on the second"))
    scene.driver.batch()
    scene.send(1, older)
    scene.driver.batch()
    scene.send(2, newer)
    scene.start().batch()
    scene.holds_the_truth()
    scene.send(2, scene.ledger.update(range(20), "new to all"))
    scene.start().batch()
    scene.holds_the_truth()
    assert list(scene.epochs) == [(1, {0, 1}), (2, {0, 1})]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True])
def test_repeats_of_changes_that_the_broker_removed_unread_are_applied(
    tmp_path: Path, cut: bool
) -> None:
    """With a `cut` a batch ends with missing records, and the next one begins behind them."""
    scene = Scene(tmp_path)
    scene.send(3, scene.ledger.insert(0, 20))
    scene.driver.batch()
    read = scene.topic.ends
    scene.send(3, changes := scene.ledger.update(range(20), "on the third"))
    scene.send(2, changes[:10])
    scene.topic.compact()
    if cut:
        records = scene.topic.records()
        kept = {at: [one.offset for one in records if one.partition == at] for at in read}
        ends = {at: Offset(min(o for o in kept[at] if o >= end)) for at, end in read.items()}
        scene.driver.batch(ends)
    scene.driver.batch()
    scene.start().batch()
    scene.send(2, changes[10:])
    scene.driver.batch()
    scene.holds_the_truth()
    assert list(scene.epochs) == [(1, {0, 1})]


@pytest.mark.slow
def test_records_from_before_a_failover_may_be_read_again(
    tmp_path: Path, lakesplice: CommandLine
) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 20))
    scene.send(2, scene.ledger.update(range(10), "on the second"))
    scene.driver.batch()
    scene.send(2, scene.ledger.update(range(5), "a third time"))
    scene.send(2, [event._replace(key=None) for event in scene.ledger.insert(90, 91)])
    scene.ledger.delete([90])
    scene.driver.batch()
    assert scene.driver.table.parked is not None
    going = lakesplice("unpark", scene.address, "--from-offset", "0:0", "--from-offset", "1:0")
    assert going.code == 0, going.err
    scene.start().batch({0: Offset(scene.topic.ends[0] - 1), 1: scene.topic.ends[1]})
    scene.holds_the_truth()
    assert len(list(scene.epochs)) == 1


def test_without_gtids_a_failover_parks_until_an_operator_says_what_it_is(
    tmp_path: Path, lakesplice: CommandLine
) -> None:
    scene = Scene(tmp_path, gtids=False)
    scene.send(1, scene.ledger.insert(0, 20))
    scene.driver.batch()
    scene.send(2, scene.ledger.update(range(20), "on the second"))
    scene.driver.batch()
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.POSITIONS_FELL_BACK
    assert "--new-epoch" in parked.detail
    ended = lakesplice("unpark", scene.address, "--new-epoch", "--repeated")
    assert (ended.code, "not both" in ended.err) == (2, True)
    assert lakesplice("unpark", scene.address, "--new-epoch").code == 0
    scene.start().batch()
    scene.holds_the_truth()


@pytest.mark.slow
def test_without_gtids_a_repetition_continues_once_an_operator_has_said_so(
    tmp_path: Path, lakesplice: CommandLine
) -> None:
    scene = Scene(tmp_path, gtids=False)
    scene.send(1, scene.ledger.insert(0, 20))
    scene.send(1, before := scene.ledger.update(range(20), "first"))
    scene.send(1, before[4:])
    scene.send(1, scene.ledger.update(range(10, 20), "second"))
    scene.driver.batch()
    for _ in range(PARTITIONS):  # once for each partition
        assert scene.driver.table.parked is not None
        assert lakesplice("unpark", scene.address, "--repeated").code == 0
        scene.start().batch()
    scene.holds_the_truth()
    assert not list(scene.epochs)
    assert not any(state.repeating for state in scene.driver.table.source.partitions.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failovers", "seconds"), [(0, 6), (1, 61)], ids=["nothing is missing", "after a failover"]
)
def test_numbers_that_begin_again_park_until_an_operator_says_so(
    tmp_path: Path, lakesplice: CommandLine, failovers: int, seconds: int
) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 20))
    for text in ("first", "second", "third"):
        scene.send(1 + 2 * failovers, scene.ledger.update(range(20), text))
        scene.driver.batch()
    # RESET MASTER: binlog files and GTIDs begin again.
    after = scene.ledger.update(range(20), "after it")
    scene.numbered_from, scene.later_us = number_of(after[0]) - 1, seconds * 1_000_000
    scene.send(2, after)
    scene.send(2, after[-5:])
    scene.driver.batch()
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.POSITIONS_FELL_BACK
    assert "its GTID was met before" in parked.detail
    later, newest = map(
        datetime.fromisoformat, re.findall(r"(?:of|to) (\d.*?\+00:00)", parked.detail)
    )
    assert datetime(2026, 1, 1, tzinfo=UTC) < newest < later
    assert lakesplice("unpark", scene.address, "--new-epoch").code == 0
    scene.start().batch()
    scene.holds_the_truth()


@pytest.mark.slow
def test_changes_that_are_missing_show_in_those_that_follow(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.send(1, scene.ledger.insert(0, 10))
    scene.driver.batch()
    scene.send(1, scene.ledger.update(range(3), "sent"))
    scene.ledger.update(range(2, 5), "purged before it was read")
    scene.send(1, scene.ledger.update(range(6), "sent again"))
    scene.driver.batch()
    scene.driver.compact()
    newest, *_ = Table(LocalStore(scene.address)).history()
    # The fold has noticed 2 and forgets against what: the first of its changes is linked.
    assert newest.info.metrics["unlinked"] == 2
    scene.holds_the_truth()
