"""The state machine of a table, its drivers and its upkeep, with the lake in a bucket."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.s3_server import S3Server, options
from tests.support.clocked import StampedStore
from tests.support.table_machine import TableMachine

LIVES, LIVES_NIGHTLY, STEPS = 3, 50, 30


def test_a_table_in_a_bucket_stays_right_after_any_steps(
    s3_server: S3Server, request: pytest.FixtureRequest
) -> None:
    bucket = s3_server.make_bucket()
    wanted = LIVES_NIGHTLY if request.config.getoption("--nightly") else LIVES
    lives = 0

    class InABucket(TableMachine):
        stamped: Store | None = None

        def open_lake(self) -> AnyStore:
            nonlocal lives
            lives += 1
            address = f"s3://{bucket}/life-{lives}"
            return open_store(address, options(s3_server.endpoint))

        def close_lake(self) -> None:
            """The server's data goes with the test."""

        def clocked(self) -> Store:
            self.stamped = self.stamped or StampedStore(self.lake, self.clock)
            return self.stamped

    # Without shrinking: a life takes seconds, and its steps are printed.
    bounded = settings(
        max_examples=wanted,
        stateful_step_count=STEPS,
        print_blob=True,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    run_state_machine_as_test(InABucket, settings=bounded)
    assert lives >= wanted
