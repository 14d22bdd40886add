"""History tables: the versions of each row are the states that the source's transactions left,
however their changes arrive.

The oracle keeps the state that each transaction left, and knows no positions.
"""

from __future__ import annotations

from typing import Any

import duckdb
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakesplice.planning.engine_views.history_sql import history_query
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from tests.support.drawing import examples
from tests.support.simulated import folder
from tests.support.versions import HistoryWorld, Interval, intervals

KEYS = 4


def in_duckdb(table: Table) -> list[Interval]:
    """The same by the SQL of the view, which a table without columns doesn't have."""
    if not table.schema.names:
        return []
    rows = table.read(include_system=True)
    names = ("id", "name", "n")
    query = history_query([f"base.{name}" for name in names], names, ("id",), "stored", "duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("stored", rows)
        return intervals(connection.sql(query).to_arrow_table())


statements = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "move"]), st.integers(0, KEYS - 1)),
    min_size=1,
    max_size=3,
)
turns = st.lists(
    st.tuples(
        st.lists(statements, min_size=1, max_size=4),
        st.integers(1, 6),
        st.one_of(
            st.none(),
            st.tuples(st.just("repeat"), st.integers(1, 5)),
            st.tuples(st.just("fail over"), st.sampled_from([1, 2, 3]), st.integers(0, 5)),
            st.tuples(st.just("restart")),
            st.tuples(st.just("merge")),
            st.tuples(st.just("garble"), st.integers(1, 4)),
            st.tuples(st.just("replay")),
        ),
        st.integers(0, 100),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=examples(40), deadline=None)
@given(turns)
def test_versions_are_the_states_that_transactions_left(history: list[Any]) -> None:
    with folder() as path:
        world = HistoryWorld(path)
        for transactions, sent, jump, share in history:
            for transaction in transactions:
                world.servers.commit(transaction)
            world.send(sent)
            match jump:
                case ("repeat", int(back)):
                    world.next = max(0, world.next - back)
                case ("fail over", int(server), int(back)):
                    world.server = world.servers.writer = server
                    world.next = max(0, world.next - back)
                case ("restart",) if world.driver.table.snapshot is not None:
                    world.start()
                case ("merge",) if world.driver.table.snapshot is not None:
                    world.driver.merge_runs(2)
                    world.driver.merge_files(2)
                case ("garble", int(count)):
                    world.send(count, readable=False)
                case ("replay",) if world.driver.table.snapshot is not None:
                    world.replay_letters()
            world.batch(share)
        world.send(len(world.servers.transactions))
        world.batch()
        if world.driver.table.snapshot is not None:
            world.replay_letters()
        event(f"{len(world.driver.table.source.epochs)} epochs")
        require_history(world, range(len(world.servers.transactions)))


def require_history(world: HistoryWorld, sent: Any) -> None:
    """Both readers show the oracle's intervals, and moments and present rows follow from them."""
    if world.driver.table.snapshot is None:
        return
    table, expected = world.table, world.servers.history(sent)
    assert intervals(table.read_history()) == expected
    assert in_duckdb(table) == expected
    assert intervals(table.read_history(current=True)) == [row for row in expected if row[5]]
    for at in {row[3] for row in expected}:
        valid = [row for row in expected if row[3] <= at and (row[4] is None or at < row[4])]
        assert intervals(table.read_history(at=at)) == valid
    assert not table.snapshot.manifest.deltas
    assert check(table._store, table.snapshot).sound
