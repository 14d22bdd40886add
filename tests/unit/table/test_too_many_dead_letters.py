"""If most of a table's records can't be decoded, the table is parked before it passes over them."""

from __future__ import annotations

from typing import Any

import pytest

from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import NO_LIMIT, DeadLetterLimit, ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import commit_contribution
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.altered import TOPIC, event
from tests.support.simulated import rows_of

COLUMNS = {"id": "int32", "n": "int32"}
LIMIT = DeadLetterLimit(0.5, 6)


def good(number: int) -> Event:
    return event(COLUMNS, number, {"id": number, "n": number})


def bad(number: int) -> Event:
    """What its schema calls a number is a text, as with another `decimal.handling.mode`."""
    return event(COLUMNS, number, {"id": number, "n": "1.50"})


class Life:
    """A topic and its driver, whose batches are settled under a limit."""

    def __init__(self, lake: LocalStore, limit: DeadLetterLimit = LIMIT) -> None:
        self.limit = limit
        self.topic = SimulatedTopic(TOPIC)
        self.driver = SimulatedDriver(lake, self.topic, FixedClock(), SeededEntropy(1), limit=limit)
        self.store = lake.within("s/t")

    def take(self, *events: Event) -> None:
        self.topic.append(0, events)
        self.driver.batch()

    @property
    def next_offset(self) -> int:
        return self.driver.table.next_offsets([0])[0]


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


def test_a_table_of_which_nothing_can_be_decoded_is_parked_at_its_first_record(
    lake: LocalStore,
) -> None:
    life = Life(lake)
    life.take(bad(1), bad(2))
    parked = life.driver.table.parked
    assert parked is not None
    assert (parked.code, parked.partition, parked.offset) == (ParkCode.DEAD_LETTERS, 0, 0)
    assert "2 of 2 records" in parked.detail
    assert "wrong-type (payload.after.n)" in parked.detail
    assert "1.50" not in parked.detail, "values are shown only when asked for"
    assert "dead_letters.share_max" in parked.detail
    assert life.next_offset == 0
    assert not life.driver.table.manifest.dead_letters


def test_a_few_bad_records_among_good_ones_are_dead_letters(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(*(good(n) for n in range(9)), *(bad(n) for n in range(9, 15)))
    assert life.driver.table.parked is None
    assert life.next_offset == 15
    assert sum(ref.rows for ref in life.driver.table.manifest.dead_letters) == 6


def test_more_bad_records_than_the_share_park_a_table_that_has_rows(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(good(1), good(2))
    life.take(good(3), *(bad(n) for n in range(4, 10)))
    parked = life.driver.table.parked
    assert parked is not None
    assert (parked.code, parked.offset) == (ParkCode.DEAD_LETTERS, 3)
    assert [row["id"] for row in rows_of(life.store)] == [1, 2]
    assert life.next_offset == 2


@pytest.mark.slow
def test_small_batches_of_bad_records_come_to_the_same_in_the_end(lake: LocalStore) -> None:
    life = Life(lake)
    life.take(good(1))
    for number in range(2, 7):
        life.take(bad(number))
        assert life.driver.table.parked is None
    life.take(bad(7))
    assert life.driver.table.parked is not None
    assert life.next_offset == 6


def test_a_share_of_one_allows_everything(lake: LocalStore) -> None:
    life = Life(lake, DeadLetterLimit(1.0, 1))
    life.take(*(bad(n) for n in range(9)))
    assert life.driver.table.parked is None
    assert life.next_offset == 9


def test_dead_letters_are_reported_once_and_not_at_all_by_a_table_that_parks(
    lake: LocalStore,
) -> None:
    told: list[DeadLetterRef] = []
    for limit, count in ((LIMIT, 0), (NO_LIMIT, 1)):
        topic = SimulatedTopic(f"t.s.{'ab'[count]}")
        driver = SimulatedDriver(lake, topic, FixedClock(), SeededEntropy(1))
        topic.append(0, [bad(1)])
        result = driver.answer({0: Offset(0)}, {0: Offset(1)})
        contribution = result.contribution(0, {0: Offset(0)}, {0: Offset(1)})
        commit_contribution(driver.table, contribution, limit=limit, send=told.extend)
        assert len(told) == count
