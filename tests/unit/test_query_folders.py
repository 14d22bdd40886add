"""Folders of queries: the next process removes those of a killed one, never those of a live one."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn, cast

import pytest
from pyspark.sql import SparkSession

from lakesplice.errors import RetryableError
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.query import Query, QueryPlan
from lakesplice.spark.kafka.query_folders import QueryFolder, remove_leftovers
from tests.support.running import environment

OTHER = """
import sys
from lakesplice.spark.kafka.query_folders import QueryFolder
folder = QueryFolder()
(folder.path / "offsets").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


class SessionOnFullDisk:
    """Fails as Spark does if its first write into a checkpoint finds a full disk."""

    @property
    def readStream(self) -> NoReturn:  # noqa: N802  Spark's name
        raise RuntimeError(
            "An error occurred while calling o248.start.\n"
            ": org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device\n"
            "\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write\n"
            "Caused by: java.io.IOException: No space left on device\n"
        )


def test_a_full_disk_delays_a_query_and_ends_no_service(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = cast(SparkSession, SessionOnFullDisk())
    plan = QueryPlan(BrokerAccess("127.0.0.1:1", {}, 1.0), {}, 1, None)
    with pytest.raises(RetryableError, match="set TMPDIR") as full:
        Query(session, plan, lambda *_: None)
    assert "No space left on device" in str(full.value)
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "none"))
    with pytest.raises(RetryableError, match="set TMPDIR"):
        Query(session, plan, lambda *_: None)


def test_a_folder_in_use_stays_and_a_removed_one_leaves_nothing(temporary: Path) -> None:
    folder = QueryFolder()
    assert folder.path.parent == temporary
    assert remove_leftovers() == 0
    assert folder.path.is_dir()
    folder.remove()
    folder.remove()
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_folders_of_a_killed_process_are_removed_once_it_is_dead(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
    ) as other:
        assert other.stdout is not None
        path = Path(other.stdout.readline().strip())
        assert remove_leftovers() == 0
        assert (path / "offsets").is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert remove_leftovers() == 1
    assert list(temporary.iterdir()) == []


def test_folders_of_others_stay(temporary: Path) -> None:
    (temporary / "lakesplice-query-made-by-hand").mkdir()
    assert remove_leftovers() == 0
    assert len(list(temporary.iterdir())) == 1


def test_a_deleted_topic_delays_a_batch_by_three_answers_and_is_not_created_again() -> None:
    options = BrokerAccess("127.0.0.1:1", {}, 7.0).source_options()
    assert options["kafkaConsumer.pollTimeoutMs"] == "14000"
    assert options["kafka.default.api.timeout.ms"] == "7000"
    assert options["kafka.allow.auto.create.topics"] == "false"
    own = {"request.timeout.ms": "9000", "default.api.timeout.ms": "9000"}
    options = BrokerAccess("127.0.0.1:1", own, 7.0).source_options()
    assert options["kafkaConsumer.pollTimeoutMs"] == "18000"
