"""A truncated table: older rows are deleted in both views, also if their changes come late."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import DEFAULT_POLICY, Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.feeds import require_feed
from tests.support.ledgers import Ledger


class Scene:
    """A ledger, its topic of two partitions, and a driver."""

    def __init__(self, folder: Path, policy: SchemaPolicy = DEFAULT_POLICY) -> None:
        self.ledger = Ledger("fenced", "in")
        self.topic = SimulatedTopic(self.ledger.topic, 2)
        self.driver = SimulatedDriver(
            LocalStore(folder),
            self.topic,
            FixedClock(),
            SeededEntropy(1),
            ranges=2,
            read_tasks=2,
            policy=policy,
        )
        self.store = LocalStore(folder / self.driver.name.path)

    def holds_the_truth(self, *views: View) -> None:
        """The views are what the source holds."""
        table, truth = Table(self.store), self.ledger.truth.sort_by("id")
        assert table.snapshot.manifest.parked is None
        for view in views:
            assert table.read(view).sort_by("id").to_pylist() == truth.to_pylist()

    def settle(self) -> None:
        """Compact, and hold both views and the index to be right."""
        self.holds_the_truth(View.REAL_TIME)
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        self.holds_the_truth(*View)
        assert check(self.store, Table(self.store).snapshot).sound


@pytest.fixture(
    params=[(), pytest.param(("text",), marks=pytest.mark.slow)], ids=["", "partitioned"]
)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    return Scene(tmp_path, SchemaPolicy(partition_by=request.param))


@pytest.mark.slow
def test_a_truncate_empties_the_table_in_the_commit_that_passes_it(scene: Scene) -> None:
    scene.topic.append(0, scene.ledger.insert(0, 20))
    scene.driver.batch()
    scene.topic.append(0, scene.ledger.update(range(5), "before"))
    scene.driver.batch()
    scene.driver.compact()
    scene.topic.append(0, scene.ledger.update(range(5, 9), "in the same batch"))
    scene.topic.append(0, [scene.ledger.truncate(range(20))])
    scene.topic.append(0, scene.ledger.insert(3, 6))
    version = scene.driver.table.version
    scene.driver.batch()
    assert scene.driver.table.version == version + 1
    scene.settle()
    scene.topic.append(0, scene.ledger.insert(6, 30) + scene.ledger.update([4], "after"))
    scene.driver.batch()
    scene.settle()


@pytest.mark.slow
def test_rows_that_a_version_adds_and_a_truncate_of_it_deletes_are_changes_once(
    scene: Scene,
) -> None:
    scene.topic.append(1, scene.ledger.insert(0, 3))
    scene.driver.batch()
    scene.topic.append(0, [*scene.ledger.insert(3, 8), scene.ledger.truncate(range(8))])
    scene.driver.batch()
    require_feed(scene.store)


@pytest.mark.slow
def test_late_changes_below_a_fence_have_no_effect_and_those_above_it_do(scene: Scene) -> None:
    scene.topic.append(1, scene.ledger.insert(0, 10))
    late = scene.ledger.update(range(10), "late") + scene.ledger.insert(10, 15)
    fence = scene.ledger.truncate(range(15))
    ahead = scene.ledger.insert(12, 20)
    scene.driver.batch()
    scene.topic.append(1, ahead)
    scene.driver.batch()
    scene.topic.append(0, [fence])
    scene.driver.batch()
    scene.settle()
    scene.topic.append(0, late)
    scene.driver.batch()
    scene.settle()


@pytest.mark.slow
def test_a_truncate_read_again_changes_nothing(scene: Scene) -> None:
    scene.topic.append(0, [*scene.ledger.insert(0, 5), scene.ledger.truncate(range(5))])
    scene.driver.batch()
    again = scene.topic.events(0)
    scene.topic.append(0, scene.ledger.insert(2, 8))
    scene.driver.batch()
    scene.topic.append(0, again)
    scene.driver.batch()
    scene.settle()


ORDERS = [
    # Every gate tries a third, half of them in a table with partitions: each change comes first in
    # two of them and last in one at least.
    pytest.param(order, by, marks=[] if at % 6 == gate else [pytest.mark.nightly])
    for at, order in enumerate(permutations(range(4)))
    for by, gate in (((), 0), (("text",), 3))
]


@pytest.mark.slow
@pytest.mark.parametrize(("order", "partition_by"), ORDERS)
def test_the_order_in_which_partitions_are_read_makes_no_difference(
    tmp_path: Path, order: tuple[int, ...], partition_by: tuple[str, ...]
) -> None:
    scene = Scene(tmp_path, SchemaPolicy(partition_by=partition_by))
    scene.topic.append(0, scene.ledger.insert(0, 6))
    scene.driver.batch()
    for _ in order[2:]:
        scene.topic.add_partition()
    steps = [
        scene.ledger.update(range(6), "before"),
        [scene.ledger.truncate(range(6))],
        scene.ledger.insert(2, 9),
        scene.ledger.update([3, 4], "after"),
    ]
    for partition, step in enumerate(steps):
        scene.topic.append(partition, step)
    starts = scene.driver.table.next_offsets(scene.topic.ends)
    for partition in order:
        starts = {**starts, partition: scene.topic.ends[partition]}
        scene.driver.batch(starts)
    scene.settle()


def test_rows_stay_where_the_policy_ignores_a_truncate(tmp_path: Path) -> None:
    scene = Scene(tmp_path, SchemaPolicy(truncate_table=Behaviour.IGNORE))
    events = scene.ledger.insert(0, 5)
    kept = scene.ledger.truth.sort_by("id").to_pylist()
    scene.topic.append(0, [*events, scene.ledger.truncate(range(5)), *scene.ledger.insert(7, 9)])
    scene.driver.batch()
    came = scene.ledger.truth.sort_by("id").to_pylist()
    assert Table(scene.store).read().sort_by("id").to_pylist() == [*kept, *came]


def test_a_truncate_parks_the_table_where_the_policy_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path, SchemaPolicy(truncate_table=Behaviour.EXCEPTION))
    scene.topic.append(0, scene.ledger.insert(0, 5))
    expected = scene.ledger.truth.sort_by("id").to_pylist()
    scene.topic.append(0, [scene.ledger.truncate(range(5)), *scene.ledger.insert(7, 9)])
    scene.driver.batch()
    parked = scene.driver.table.parked
    assert parked is not None
    assert (parked.code, parked.offset) == (ParkCode.TRUNCATED, 5)
    assert "schema_changes.truncate_table" in parked.detail
    assert Table(scene.store).read().sort_by("id").to_pylist() == expected


@pytest.mark.slow
def test_rows_that_a_truncate_took_can_be_purged(scene: Scene) -> None:
    scene.topic.append(0, [*scene.ledger.insert(0, 20), scene.ledger.truncate(range(20))])
    scene.topic.append(1, scene.ledger.insert(5, 8))
    scene.driver.batch()
    scene.settle()
    scene.topic.append(0, scene.ledger.insert(20, 22))
    scene.driver.batch()
    now = FixedClock().now_ms() * 1000
    assert scene.driver.purge(now) is None
    while isinstance(scene.driver.purge(now + 1), Committed):
        pass
    assert sum(file.rows for file in scene.driver.table.manifest.files.values()) == 5
    scene.settle()
    scene.topic.append(0, scene.ledger.insert(10, 12))
    scene.driver.batch()
    scene.settle()
