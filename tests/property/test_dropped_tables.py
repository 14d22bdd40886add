"""A table is dropped and re-created at any moment, and its driver learns of it at any other
moment. A history table ends the versions at the moment of the DROP, whenever it learns of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from tests.support.drawing import examples
from tests.support.dropped import Teller
from tests.support.simulated import SMALL, Source, driver_of, folder
from tests.support.steps import Step, steps, take_step
from tests.support.versions import HistoryWorld, require_history


class Life:
    """A source, its topic of schema changes, and driver after driver."""

    def __init__(self, at: Path, drop_table: Behaviour) -> None:
        self.source = Source()
        self.lake, self.policy = LocalStore(at), SchemaPolicy(drop_table=drop_table)
        self.generation = 0
        self.start()
        self.teller = Teller(self.driver.name)
        self.source.topic.append(0, self.source.put(0))
        self.driver.batch()

    def start(self) -> None:
        self.generation += 1
        self.driver = driver_of(
            self.source,
            self.lake,
            generation=self.generation,
            seed=self.generation,
            policy=self.policy,
        )

    def take(self, step: Step) -> None:
        what = step[0]
        if what == "drop":
            self.drop()
        elif what == "hear":
            self.driver.drops(self.teller.told())
        elif what == "restart":
            self.start()
            self.teller.begin_anew()
            self.driver.drops(self.teller.told())
        else:
            take_step(step, self.source, self.driver)

    def drop(self) -> None:
        """The rows vanish without an event: those that tell of deletes aren't sent."""
        if not self.source.keys:
            return
        database = self.source.database
        database.delete(SMALL.name, [(key,) for key in self.source.keys])
        event = database.drain()[0]
        self.teller.drop(event)
        self.teller.create(event)

    def finish(self) -> None:
        """All is told and read: both views are the source's rows."""
        for _ in range(2):
            self.driver.drops(self.teller.told())
            assert self.driver.batch() is CommitOutcome.DONE
        self.require(View.REAL_TIME)
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        for view in View:
            self.require(view)
        store = self.driver.table.store
        assert check(store, Table(store).snapshot).sound

    def require(self, view: View) -> None:
        assert self.driver.table.parked is None
        names = [column.name for column in SMALL.columns]
        truth: list[dict[str, Any]] = [
            dict(zip(names, image.values, strict=True))
            for _, image in self.source.database.rows(SMALL.name).items()
        ]
        found = Table(self.driver.table.store).read(view).sort_by("id").to_pylist()
        assert found == sorted(truth, key=lambda row: row["id"])


@pytest.mark.parametrize("drop_table", [Behaviour.EVOLVE, Behaviour.LENIENT])
@settings(max_examples=examples(30), deadline=None)
@given(st.lists(steps("drop", "drop", "hear", "restart", puts=4), max_size=20))
def test_a_table_ends_as_its_source_whenever_that_is_dropped(
    drop_table: Behaviour, taken: list[Step]
) -> None:
    with folder() as at:
        life = Life(at, drop_table)
        for step in taken:
            life.take(step)
        life.finish()


statements = st.lists(
    st.tuples(
        st.sampled_from(
            [*["put", "return"] * 2, "touch", "delete", "move", "drop", "drop", "truncate"]
        ),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=2,
)
turns = st.lists(
    st.tuples(
        st.lists(statements, min_size=1, max_size=4),
        st.integers(1, 6),
        st.sampled_from(
            [
                None,
                ("hear",),
                ("hear",),
                ("repeat", 3),
                ("die in a batch",),
                ("merge",),
                ("rotate",),
            ]
        ),
        st.integers(0, 100),
    ),
    min_size=2,
    max_size=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("drop_table", [Behaviour.EVOLVE, Behaviour.LENIENT])
@settings(max_examples=examples(30), deadline=None)
@given(turns)
def test_each_drop_ends_versions_at_its_moment_whenever_it_is_reported(
    drop_table: Behaviour, history: list[Any]
) -> None:
    with folder() as at:
        world = HistoryWorld(at, policy=SchemaPolicy(drop_table=drop_table))
        world.servers.commit([("put", 0)])
        world.send(1)
        world.batch()
        world.live(history)
        world.servers.commit([("put", key) for key in range(3)])
        world.send(len(world.servers.transactions))
        for _ in range(2):
            world.read_drops()
            world.batch()
        event(f"drops: {sum(one.is_drop for one in world.servers.transactions)}")
        require_history(world, world.sent)
