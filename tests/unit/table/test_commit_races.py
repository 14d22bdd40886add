"""Commits that race: one of those that exclude each other wins, and a lost answer is recognised."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakesplice.errors import RetryableError, StorageError
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode, commit, create
from lakesplice.table.protocol.intents import Create
from lakesplice.testing.faulty_store import Call, Fault, FaultyStore, How
from tests.support.tables import SCHEMA, SOURCE, TableUnderTest, local_table


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    return local_table(tmp_path)


def test_one_of_many_commits_of_the_same_offsets_wins(tmp_path: Path) -> None:
    local_table(tmp_path).create()
    start = threading.Barrier(8)
    outcomes: list[Committed | Conflict] = []

    def ingest(seed: int) -> None:
        mine = TableUnderTest(LocalStore(tmp_path).within("shop/orders"), seed)
        snapshot = mine.now()
        intent = mine.ingest(files=(mine.file(seed),))
        start.wait()
        outcomes.append(mine.commit(intent, on=snapshot))

    _in_threads(ingest, range(8))
    won = [outcome for outcome in outcomes if isinstance(outcome, Committed)]
    lost = {outcome.reason for outcome in outcomes if isinstance(outcome, Conflict)}
    assert len(won) == 1
    assert lost == {ConflictCode.OFFSETS}
    assert local_table(tmp_path).now() == won[0].snapshot


def test_commits_that_do_not_affect_each_other_all_succeed(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.create()
    files = [table.file(group) for group in range(6)]
    before = table.committed(table.ingest(files=tuple(files)))
    start = threading.Barrier(len(files))
    outcomes: list[Committed | Conflict] = []

    def splice(number: int) -> None:
        mine = TableUnderTest(LocalStore(tmp_path).within("shop/orders"), number)
        intent = mine.splice(files[number].base.path, on=before)
        start.wait()
        outcomes.append(mine.commit(intent, on=before))

    _in_threads(splice, range(len(files)))
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    after = table.now()
    assert after.version == before.version + len(files)
    assert not after.manifest.files.keys() & before.manifest.files.keys()
    assert after.manifest.groups == before.manifest.groups


def _always_overtaken(table: TableUnderTest, rival: TableUnderTest) -> FaultyStore:
    """The table's store, in which the rival commits just before every commit."""
    rival.entropy = type(rival.entropy)(99)

    def commit_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path:
            rival.committed(rival.ingest())

    return FaultyStore(table.store, before_call=commit_first)


def test_a_race_that_is_never_won_is_a_conflict(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.create()
    table.committed(table.ingest(files=(table.file(1), table.file(2))))
    store = _always_overtaken(table, local_table(tmp_path))
    outcome = commit(
        store, table.now(), table.splice(), clock=table.clock, entropy=table.entropy, attempts=3
    )
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.CONTENTION
    assert table.now().version == 1 + 3, "the rival committed once per attempt"


def test_a_parking_that_never_wins_its_race_is_an_error(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.create()
    store = _always_overtaken(table, local_table(tmp_path))
    held = DriverTable(store, SOURCE, 1, table.clock, table.entropy)
    with pytest.raises(RetryableError, match="committed first every time"):
        held.park(ParkReason(ParkCode.CORRUPT, "a file is damaged"))
    assert table.now().manifest.parked is None


@pytest.mark.parametrize("how", [How.LOST, How.ANSWER_LOST])
def test_a_commit_whose_answer_was_lost_is_recognised_and_made_once(
    table: TableUnderTest, how: How
) -> None:
    before = table.create()
    intent = table.ingest(files=(table.file(1),))
    store = FaultyStore(table.store, [Fault.on("put_new", "_delta_log", how)])
    outcome = commit(store, before, intent, clock=table.clock, entropy=table.entropy)
    assert isinstance(outcome, Committed)
    assert table.now() == outcome.snapshot
    assert outcome.snapshot.version == 1


def test_a_create_whose_answer_was_lost_is_recognised(table: TableUnderTest) -> None:
    store = FaultyStore(table.store, [Fault.on("put_new", "_delta_log", How.ANSWER_LOST)])
    outcome = create(store, Create(1, SCHEMA, SOURCE), clock=table.clock, entropy=table.entropy)
    assert isinstance(outcome, Committed)


def test_a_lost_answer_to_a_lost_race_is_not_taken_for_a_win(table: TableUnderTest) -> None:
    before = table.create()
    intent = table.ingest(files=(table.file(1),))
    rival = table.ingest(files=(table.file(2),))
    won: list[Committed | Conflict] = []

    def commit_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not won:
            won.append(table.commit(rival))

    faults = [Fault.on("put_new", "_delta_log", How.LOST)]
    store = FaultyStore(table.store, faults, commit_first)
    outcome = commit(store, before, intent, clock=table.clock, entropy=table.entropy)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.OFFSETS
    assert table.now().version == 1


def test_an_intent_whose_commit_ended_in_doubt_can_be_committed_again(
    table: TableUnderTest,
) -> None:
    before = table.create()
    intent = table.ingest(files=(table.file(1),))
    faults = [Fault.on("put_new", "_delta_log", How.ANSWER_LOST, times=10)]
    store = FaultyStore(table.store, faults)
    with pytest.raises(StorageError):
        commit(store, before, intent, clock=table.clock, entropy=table.entropy)
    outcome = table.commit(intent)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.OFFSETS
    assert table.now().manifest.groups == {1}


def _in_threads(act: Callable[[int], object], numbers: range) -> None:
    threads = [threading.Thread(target=act, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
