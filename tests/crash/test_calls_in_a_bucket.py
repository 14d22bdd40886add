"""Store calls of a table's life fail or are its last, the lake being in a bucket of a real server.

The scenario is that of a lake on a disk, where every call is tried; here some of them are, evenly
spread, since each takes a life of a few seconds.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from lakesplice.errors import StorageError
from lakesplice.storage.places import AnyStore, open_store
from lakesplice.table.ports import Store
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.s3_server import S3Server, options
from tests.support.scenario import Scenario
from tests.support.simulated import require_finished

WRITES = ("put_new", "writer", "delete")
CASES = 10


@pytest.fixture
def bucket(s3_server: S3Server) -> AnyStore:
    return open_store(f"s3://{s3_server.make_bucket()}", options(s3_server.endpoint))


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


@pytest.fixture
def writes(bucket: AnyStore) -> list[Call]:
    scenario, bare = Scenario(), bucket.within("whole")
    store = FaultyStore(bare)
    assert play(scenario, bare, store)
    require_finished(scenario.source, scenario.finish(bare))
    return [call for call in store.calls if call.method in WRITES]


@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST])
def test_a_write_that_fails_or_is_the_last_loses_nothing(
    bucket: AnyStore, writes: list[Call], how: How
) -> None:
    step = max(len(writes) // CASES, 1)
    first = list(How).index(how) % step  # so that the four ways meet different writes
    for call in writes[first::step]:
        scenario, bare = Scenario(), bucket.within(str(call.number))
        died = not play(scenario, bare, FaultyStore(bare, [Fault.at(call.number, how)]))
        driver = scenario.finish(bare)
        require_finished(scenario.source, driver)
        assert died or driver.table.snapshot is not None
