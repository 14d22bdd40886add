"""Days of a table's life in seconds: files, log and memory don't grow, on a disk and in a
bucket.
"""

from __future__ import annotations

import tempfile

import pytest

from benchmarks.month import Month, Reading, growth, live
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import open_store
from lakesplice.testing.s3_server import S3Server, options
from tests.support.simulated import memory_folder

# A window of old versions is kept, so counts swing with where checkpoints and merges happen to be.
SWING = 1.3


def require_flat(readings: list[Reading]) -> None:
    grown = growth(readings)
    for name in ("files", "bytes", "log_files", "manifests", "base_files", "index_runs"):
        assert grown[name] <= SWING, (name, readings)
    assert grown["manifest_bytes"] <= SWING, readings
    assert grown["resident_bytes"] <= SWING, readings
    # A checkpoint and the commits behind it; ten at most.
    assert (
        max(reading.open_calls for reading in readings)
        <= min(reading.open_calls for reading in readings) + 10
    ), readings


@pytest.mark.parametrize("batches_per_day", [24, pytest.param(60, marks=pytest.mark.nightly)])
def test_no_files_accumulate_over_days_of_small_batches(batches_per_day: int) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        month = Month(LocalStore(folder))
        readings, opened = live(month, days=8, batches_per_day=batches_per_day)
        assert month.difference() is None
        assert month.compactions >= 20
        assert opened.keys() == {100}
        require_flat(readings)


# In the gate integration/test_store_contract_s3.py shows that a bucket lists and deletes as a disk.
@pytest.mark.nightly
def test_no_files_accumulate_in_a_bucket(s3_server: S3Server) -> None:
    store = open_store(f"s3://{s3_server.make_bucket()}/lake", options(s3_server.endpoint))
    month = Month(store)
    readings, _ = live(month, days=5, batches_per_day=24)
    assert month.difference() is None
    assert month.compactions > 0
    require_flat(readings)
