"""Store calls of a table's life fail, or the process dies there, with the lake in a real S3 server.

The scenario is the one for a lake on a disk, where every call is tried: batches, races, merges of
files and of the index, compaction, vacuum, sweep, restore, checkpoints and clean-up. Here each
tried call takes half a second, so only some are tried, evenly spread, and others with each seed;
`--bucket-calls 0` tries all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from lakesplice.errors import StorageError
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.s3_server import S3Server, options
from tests.support.scenario import Scenario
from tests.support.simulated import require_finished, require_tidy

WRITES = ("put_new", "writer", "delete")
READS = ("read", "open", "size", "list", "modified_ms")


def new_bucket(server: S3Server) -> AnyStore:
    return open_store(f"s3://{server.make_bucket()}", options(server.endpoint))


@pytest.fixture
def bucket(s3_server: S3Server) -> AnyStore:
    return new_bucket(s3_server)


def play(scenario: Scenario, bare: AnyStore, lake: Store) -> bool:
    """Play the scenario as the service would; False if the process died."""
    try:
        with suppress(StorageError):
            for step in scenario.steps(bare, lake):
                with suppress(StorageError):
                    step()
    except Crash:
        return False
    return True


@pytest.fixture(scope="module")
def calls(s3_server: S3Server) -> tuple[Call, ...]:
    scenario, bare = Scenario(), new_bucket(s3_server)
    store = FaultyStore(bare)
    assert play(scenario, bare, store)
    require_finished(scenario.source, scenario.finish(bare))
    return store.calls


def some(calls: Sequence[Call], seed: int, most: int) -> Sequence[Call]:
    """At most so many of the calls, evenly spread, which ones by the seed; all if `most` is 0."""
    step = -(-len(calls) // most) if most else 1
    return calls[seed % step :: step]


def broken_off(bare: AnyStore, fault: Fault) -> None:
    """A life with a fault, and what the next driver makes of it: the truth, and nothing else."""
    scenario = Scenario()
    died = not play(scenario, bare, FaultyStore(bare, [fault]))
    driver = scenario.finish(bare)
    require_finished(scenario.source, driver)
    assert died or driver.table.snapshot is not None
    scenario.tidy(driver)
    require_tidy(driver.table.store)
    require_finished(scenario.source, driver)


@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST])
def test_a_write_that_fails_or_is_the_last_loses_nothing(
    bucket: AnyStore, calls: tuple[Call, ...], how: How, seed: int, bucket_calls: int
) -> None:
    writes = [call for call in calls if call.method in WRITES]
    # The four ways meet different writes.
    for call in some(writes, seed + list(How).index(how), bucket_calls):
        broken_off(bucket.within(str(call.number)), Fault.at(call.number, how))


def test_a_read_that_fails_loses_nothing(
    bucket: AnyStore, calls: tuple[Call, ...], seed: int, bucket_calls: int
) -> None:
    reads = [call for call in calls if call.method in READS]
    for call in some(reads, seed, bucket_calls):
        broken_off(bucket.within(str(call.number)), Fault.at(call.number, How.LOST))
