"""Debezium's row images in which a placeholder stands for values, and truncates among them."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support import altered
from tests.support.partial_images import APPLY, Life, Row
from tests.support.simulated import truncate_at

GONE = "__debezium_unavailable_value"
CONNECT = {"id": "int32", "n": "int32", "name": "string"}


class DebeziumLife(Life):
    """A topic of Debezium's events, whose placeholder says what wasn't in the row image."""

    def __init__(self, lake: LocalStore, policy: SchemaPolicy = APPLY) -> None:
        self.topic = SimulatedTopic(altered.TOPIC, 3)
        self.lake, self.store = lake, lake.within("s/t")
        self.driver = SimulatedDriver(
            lake, self.topic, FixedClock(), SeededEntropy(1), ranges=2, read_tasks=2, policy=policy
        )


def tell(position: int, after: Row | None, before: Row | None = None) -> Event:
    return altered.event(CONNECT, position, after, before)


def truncate(position: int) -> Event:
    event = tell(position, None, {"id": 0, "n": 0, "name": ""})
    return truncate_at(event)


def told(id_: int, n: int | None, name: str | None = GONE) -> Row:
    return {"id": id_, "n": n, "name": name}


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


@pytest.mark.slow
def test_a_value_that_debezium_marks_as_unknown_is_unchanged_or_parks(tmp_path: Path) -> None:
    life = DebeziumLife(LocalStore(str(tmp_path / "applies")))
    life.take(tell(1, told(1, 1, "one")), tell(2, told(1, 2), told(1, 1)))
    life.require(told(1, 2, "one"))
    life.take(tell(3, told(1, 2, None), told(1, 2)), tell(4, told(1, 4), told(1, 2)))
    life.require(told(1, 4, None))
    life.take(tell(5, None, told(1, 4)))
    life.require()
    parks = DebeziumLife(LocalStore(str(tmp_path / "parks")), SchemaPolicy())
    parks.take(tell(1, told(1, 1, "one")), tell(2, told(1, 2), told(1, 1)))
    assert parks.driver.table.parked is not None
    assert parks.driver.table.parked.code is ParkCode.PARTIAL_IMAGE
    born = DebeziumLife(LocalStore(str(tmp_path / "born")), SchemaPolicy())
    born.take(tell(2, told(1, 2), told(1, 1)))
    assert born.driver.table.parked is not None
    assert born.driver.table.parked.code is ParkCode.PARTIAL_IMAGE


# Positions of one partition rise, those of the others come as they like.
# Every gate tries each order, half of them with compactions.
ORDERS = [
    pytest.param(order, compacts, marks=[] if at % 2 == compacts else [pytest.mark.nightly])
    for at, order in enumerate(permutations(range(4)))
    if order.index(0) < order.index(3)
    for compacts in (False, True)
]


@pytest.mark.slow
@pytest.mark.parametrize(("order", "compacts"), ORDERS)
def test_no_value_from_before_a_truncate_is_combined_with_later_ones(
    lake: LocalStore, order: tuple[int, ...], compacts: bool
) -> None:
    life = DebeziumLife(lake)
    life.take(tell(1, told(2, 2, "other")), partition=2)
    steps = [
        (tell(5, told(1, 5, "before")), 0),
        (truncate(10), 1),
        (tell(20, told(1, 20), told(1, 15)), 2),
        (tell(15, told(1, 15, "after")), 0),
    ]
    for done, at in enumerate(order, 1):
        event, partition = steps[at]
        life.take(event, partition=partition)
        if compacts:
            life.driver.compact()
        if {0, 1, 2} <= set(order[:done]) and 3 not in order[:done]:
            life.require()
    life.require(told(1, 20, "after"))


def test_changes_of_one_batch_that_a_truncate_stands_between(lake: LocalStore) -> None:
    life = DebeziumLife(lake)
    life.take(truncate(10), partition=1)
    life.take(tell(5, told(1, 5, "before")), tell(20, told(1, 20), told(1, 15)))
    life.require()
    life.take(tell(15, told(1, 15, "after")), partition=2)
    life.require(told(1, 20, "after"))
