"""History tables: the versions of each row are the states that the source's transactions left,
however their changes arrive.

The oracle keeps the state that each transaction left, and knows no positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import lakesplice
from lakesplice.errors import UsageError
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.table import Table
from tests.support.drawing import examples
from tests.support.simulated import Source, driver_of, folder
from tests.support.versioned_source import moment
from tests.support.versions import HistoryWorld, require_history

KEYS = 4
KINDS = [*["put", "return"] * 3, *["touch", "delete", "move"] * 2, "truncate"]


statements = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, KEYS - 1),
    ),
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
            st.tuples(st.just("die in a batch")),
            st.tuples(st.just("merge")),
            st.tuples(st.just("rotate")),
            st.tuples(st.just("garble"), st.integers(1, 4)),
            st.tuples(st.just("replay")),
            st.tuples(st.just("reset")),
            st.tuples(st.just("snapshot"), st.sampled_from([None, None, None, 0, 1])),
            st.tuples(st.just("snapshot"), st.none()),
        ),
        st.integers(0, 100),
    ),
    min_size=2,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(turns, st.sampled_from([(), (), ("name",), ("n", "name")]))
def test_versions_are_the_states_that_transactions_left(
    history: list[Any], partition_by: tuple[str, ...]
) -> None:
    """Versions of one row may be in several partitions of the table."""
    with folder() as path:
        world = HistoryWorld(path, policy=SchemaPolicy(partition_by=partition_by))
        # A table without columns has no place for a TRUNCATE (docs/limits.md).
        world.servers.commit([("put", 0)])
        world.send(1)
        world.batch()
        world.live(history)
        world.servers.commit([("put", key) for key in range(KEYS)])  # in both partitions
        world.send(len(world.servers.transactions))
        world.batch()
        if world.driver.table.snapshot is not None:
            world.replay_letters()
        event(f"{len(world.driver.table.source.epochs)} epochs")
        event(f"letters refused: {world.has_refused}")
        event(f"{len(world.whole)} whole of {len(world.snapshots)} snapshots")
        require_whole(world)
        if not world.has_refused:
            require_history(world, world.sent)


def require_whole(world: HistoryWorld) -> None:
    """No snapshot that lost a row counts as whole, and the last one does if no record was lost."""
    transactions, whole = world.servers.transactions, world.whole
    assert not [number for number in whole if transactions[number].lost]
    if world.snapshots and not world.driver.table.manifest.dead_letters and not world.met_letters:
        assert max(world.snapshots) in whole


@pytest.mark.slow
def test_a_change_that_changes_nothing_still_says_how_late_it_is(tmp_path: Path) -> None:
    """The clock of server 3 is ahead, and that of server 2 is behind."""
    world = HistoryWorld(tmp_path)
    for server, kind in ((1, "put"), (3, "touch"), (2, "put")):
        world.server = world.servers.writer = server
        world.servers.commit([(kind, 1)])
        world.send(1)
        world.batch()
    _, touched, last = world.servers.transactions
    assert last.second < touched.second
    require_history(world, range(3))
    assert [str(row[3]) for row in world.servers.history(range(3)) if row[5]] == [
        str(moment(touched.second))
    ]


@pytest.mark.slow
def test_rows_after_a_truncate_stay_though_their_partition_shows_no_failover(
    tmp_path: Path,
) -> None:
    """The partition of the last row has nothing else, and all is read at once."""
    world = HistoryWorld(tmp_path)
    world.servers.commit([("put", 0)])
    world.send(1)
    world.happen(("fail over", 2, 0))
    world.servers.commit([("truncate", 0)])
    world.servers.commit([("put", 1)])
    world.send(2)
    world.batch()
    require_history(world, range(3))
    assert [row[0] for row in world.servers.history(range(3)) if row[5]] == [1]


def test_without_gtids_each_change_of_a_transaction_is_a_version(tmp_path: Path) -> None:
    world = HistoryWorld(tmp_path, gtids=False)
    world.servers.commit([("put", 1), ("put", 1)])
    world.send(1)
    world.batch()
    first, second = world.table.read_history(["n"]).to_pylist()
    assert first["valid_from"] == first["valid_to"] == second["valid_from"]
    assert (first["is_current"], second["is_current"]) == (False, True)


def test_with_exception_a_truncate_parks_a_history_table_before_it(tmp_path: Path) -> None:
    world = HistoryWorld(tmp_path, policy=SchemaPolicy(truncate_table=Behaviour.EXCEPTION))
    world.servers.commit([("put", 1)])
    world.servers.commit([("truncate", 1)])
    world.send(2)
    world.driver.batch()
    assert world.driver.table.parked is not None
    assert world.driver.table.parked.code is ParkCode.TRUNCATED
    assert world.table.read_history(current=True).num_rows == 1


def test_a_table_without_versions_says_so(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(1))
    driver.batch()
    with pytest.raises(UsageError, match="mode: history"):
        Table(driver.table.store).read_history()


def test_a_version_is_named_by_key_and_position(tmp_path: Path) -> None:
    world = HistoryWorld(tmp_path)
    world.servers.commit([("put", 1)])
    world.send(1)
    world.batch()
    table = lakesplice.Table.open(tmp_path / world.driver.name.path)
    with pytest.raises(UsageError, match="a row for each version"):
        table.explain(1)
    (position,) = table.read()["_history_position"].to_pylist()
    row = table.explain([1, position]).row
    assert row is not None
    assert str(row.position) == position
    world.server = world.servers.writer = 2
    world.servers.commit([("put", 1)])
    world.send(1)
    world.batch()
    rows = table.refresh().read(include_system=True).to_pylist()
    names = [row["_history_position"] for row in rows]
    assert names == [str(Position(row["_position_file"], row["_position_offset"])) for row in rows]
    assert sorted(name.partition(":")[0] for name in names) == ["0", "1"], "the epochs"
