"""The code that reads a topic also searches it for a place in the source's binlog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.apps.table_commands.dispatch import command_table
from lakesplice.apps.table_commands.reset_target import ResetTarget
from lakesplice.apps.table_commands.resetting import Reset, reset
from lakesplice.apps.table_commands.work import RESET
from lakesplice.errors import UsageError
from lakesplice.formats.events import DecodeContext, declare
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.model.progress.epochs import Epoch
from lakesplice.planning.sources.position_search import placed_records
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import claim_generation
from lakesplice.table.driver.requests import CommandRequest
from lakesplice.table.ingest.reset import TopicStart
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedTopic
from tests.support import canal_messages, maxwell_events
from tests.support.debezium import TABLE, Record, decode_all
from tests.support.service_settings import settings_of
from tests.support.simulated import Source, driver_of

SETTINGS = settings_of("lake")


class Topic:
    """Reads a simulated topic as a service's reader does."""

    def __init__(self, topic: SimulatedTopic) -> None:
        self._topic = topic

    def offsets(self, _topic: str) -> OffsetRanges:
        return {at: OffsetRange(Offset(0), end) for at, end in self._topic.ends.items()}

    def read(self, _topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        for at, (start, end) in ranges.items():
            for batch in self._topic.read({at: Offset(start)}, {at: Offset(end)}):
                yield at, batch.select(["offset", "timestamp", "key", "value", "headers"])


class Scene:
    """A table that has read all of a topic of two partitions, and the places of its changes."""

    def __init__(self, folder: Path) -> None:
        self.source = Source()
        self.places: list[tuple[str, str, int, int]] = []
        for key in range(40):
            event, *_ = self.source.put(key)
            told = json.loads(event.value or b"")["payload"]["source"]
            place = f"{told['file']}:{told['pos']}"
            self.places.append((place, told["gtid"], key % 2, key // 2))
            self.source.topic.append(key % 2, [event])
        lake = LocalStore(folder)
        self.driver = driver_of(self.source, lake)
        self.driver.batch()
        generation = claim_generation(lake, FixedClock(), lambda _: True)
        assert generation is not None
        path = self.driver.name.path
        expires_ms = EpochMs(FixedClock().now_ms() + 60_000)
        asked = CommandRequest("00ff", RESET, path, "ann@host", expires_ms, {})
        place_ = command_table(lake, asked, generation, FixedClock(), SeededEntropy(1))
        ends = self.source.topic.ends
        start = TopicStart(
            "topic-1",
            {0: Offset(0), 1: Offset(0)},
            earliest={0: Offset(0), 1: Offset(0)},
            ends=ends,
        )
        self.table = replace(
            place_,
            starts=lambda topics, _moment: dict.fromkeys(topics, start),
            records=Topic(self.source.topic),
            settings=SETTINGS,
        )

    def found(self, to: str, *, epochs: tuple[Epoch, ...] = ()) -> dict[int, Offset]:
        """Where each partition would be read from."""
        if epochs:
            self.driver.table.continue_at(lambda source: replace(source, epochs=epochs), "a test")
            self.table.snapshot = self.driver.table.snapshot or self.table.snapshot
        wanted = Reset(ResetTarget.of(to), "", anew=False, skip=False, dry_run=True, why="a probe")
        moves = reset(self.table, wanted).facts["partitions"]
        return {move["partition"]: move["to"] for move in moves}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 17, 18, 39])
def test_the_first_change_at_a_place_or_after_it_is_found_in_each_partition(
    scene: Scene, number: int
) -> None:
    place, _, _, _ = scene.places[number]
    wanted = {at: sum(one[2] == at for one in scene.places[:number]) for at in (0, 1)}
    assert scene.found(f"binlog {place}") == wanted
    file, _, offset = place.rpartition(":")
    assert scene.found(f"binlog {file}:{int(offset) - 1}") == wanted


@pytest.mark.slow
def test_behind_a_set_of_transactions_the_first_other_one_is_found(scene: Scene) -> None:
    _, gtid, _, _ = scene.places[17]
    assert scene.found(f"gtid {gtid}") == {0: 9, 1: 9}
    assert scene.found(f"gtid {gtid},7-1-99") == {0: 9, 1: 9}
    with pytest.raises(UsageError, match="no transactions of some streams"):
        scene.found("gtid 7-1-99")


@pytest.mark.slow
def test_files_of_a_former_server_are_not_searched(scene: Scene) -> None:
    place, _, _, _ = scene.places[4]
    entered = Epoch(1, entered={0: Offset(10), 1: Offset(12)})
    assert scene.found(f"binlog {place}", epochs=(entered,)) == {0: 10, 1: 12}


def placed(*records: Record, types: dict[str, str], place: str) -> list[tuple[int, bool]]:
    """The records that have a position, and whether it is before a place."""
    decoded = decode_all(records, DecodeContext(TABLE, declare(types)))
    meant = ResetTarget.of(place).place
    assert meant is not None
    found = placed_records(np.arange(7, 7 + len(records)), decoded, meant)
    return list(zip(found.offsets.tolist(), found.before.tolist(), strict=True))


def test_maxwell_s_positions_are_known_and_its_gtids_if_it_sends_them() -> None:
    events = [
        maxwell_events.event("insert", maxwell_events.row(1), position="binlog.000003:400"),
        (None, b"{"),
        maxwell_events.event("insert", maxwell_events.row(2), position="binlog.000010:4"),
    ]
    types = maxwell_events.TYPES
    assert placed(*events, types=types, place="binlog x.000003:401") == [(7, True), (9, False)]
    assert placed(*events, types=types, place="binlog x.000010:5") == [(7, True), (9, True)]
    assert placed(*events, types=types, place="gtid 0-1-5") == []


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (canal_messages.message("INSERT", [canal_messages.row(1)]), "no position in a binlog"),
        (canal_messages.ticdc("INSERT", [canal_messages.row(1)]), "commit timestamps of TiDB"),
    ],
)
def test_formats_without_positions_in_a_binlog_are_refused(record: Record, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        placed(record, types={}, place="binlog x.000003:4")
