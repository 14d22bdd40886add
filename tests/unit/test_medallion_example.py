"""`examples/medallion` runs while a shop changes."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakesplice
from examples.medallion import medallion
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import ORDERS, Shop
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic


class Selling:
    """A shop, its orders as bronze, and what silver and gold have to hold."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        self.shop = Shop(7, (ORDERS,), rows=60)
        self.topic = SimulatedTopic(self.shop.topics[0])
        self.driver = SimulatedDriver(LocalStore(lake), self.topic, FixedClock(), SeededEntropy(7))
        self.driver.table.begins_with_feed = True
        self.topic.append(0, self.shop.snapshot())

    def sell(self, events: int) -> None:
        self.topic.append(0, self.shop.step(events))
        assert self.driver.batch() is CommitOutcome.DONE
        self.driver.compact()

    def silver(self) -> dict[int, dict[str, Any]]:
        return {
            row["id"]: {
                "id": row["id"],
                "customer_id": row["customer_id"],
                "status": row["status"],
                "total": row["total"],
                "day": row["placed_at"].date(),
            }
            for row in self.shop.truth("orders").to_pylist()
            if row["status"] != "cancelled" and row["total"] > 0
        }

    def gold(self) -> dict[int, tuple[int, Decimal]]:
        orders: Counter[int] = Counter()
        revenue: dict[int, Decimal] = {}
        for row in self.silver().values():
            orders[row["customer_id"]] += 1
            revenue[row["customer_id"]] = revenue.get(row["customer_id"], Decimal()) + row["total"]
        return {customer: (count, revenue[customer]) for customer, count in orders.items()}

    def require_true(self) -> None:
        silver = lakesplice.Table.open(self.lake / "silver/orders").read().to_pylist()
        assert {row["id"]: row for row in silver} == self.silver()
        gold = lakesplice.Table.open(self.lake / "gold/customers").read().to_pylist()
        found = {row["customer_id"]: (row["orders"], row["revenue"]) for row in gold}
        assert found == self.gold()


@pytest.fixture
def selling(tmp_path: Path) -> Selling:
    return Selling(tmp_path)


def test_silver_and_gold_follow_bronze_by_its_feed(selling: Selling) -> None:
    for events in (200, 12, 12):
        selling.sell(events)
        written = medallion.refresh(selling.lake)
        assert written["silver"] > 0
        selling.require_true()
    assert written["silver"] < len(selling.silver()), "only what changed is written"
    assert medallion.refresh(selling.lake) == {"silver": 0, "gold": 0}


@pytest.mark.slow
def test_an_interrupted_step_is_completed_later(
    selling: Selling, monkeypatch: pytest.MonkeyPatch
) -> None:
    selling.sell(40)
    medallion.refresh(selling.lake)
    selling.sell(40)
    with monkeypatch.context() as broken:
        broken.delattr(medallion, "to_gold")
        with pytest.raises(NameError):
            medallion.refresh(selling.lake)
    selling.sell(40)
    medallion.refresh(selling.lake)
    selling.require_true()
