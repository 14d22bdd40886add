"""Executors that share nothing with the driver: what they run, and what they run it from. All know
each other by a secret, and encrypt what they send and spill.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakesplice.model.change import Op
from lakesplice.spark.jobs.rewrites import RewriteTask, rewrite_files, rewritten
from lakesplice.spark.python_workers import pack, ship_package
from lakesplice.spark.session import (
    build_session,
    cores,
    executor_versions,
    is_authenticated,
    version_here,
)
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.testing.spark_cluster import Cluster, await_said, foreign_python
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable
from tests.support.parquet_readers import prepare_own_session

SECRET = "known to the members of the cluster"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    prepare_own_session()
    with Cluster(tmp_path_factory.mktemp("cluster"), secret=SECRET) as running:
        yield running


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    section = cluster.section()
    session = build_session(section["master"], "512m", [], section["options"])
    yield session
    session.stop()


def test_executors_are_authenticated_and_their_secret_is_on_no_command_line(
    session: SparkSession, cluster: Cluster
) -> None:
    count = session.sparkContext.parallelize(range(100), 4).map(lambda at: (at % 5, at))
    assert count.groupByKey(2).count() == 5, "a shuffle between executors"
    assert is_authenticated(session)
    for member in cluster.workers:
        assert member.said("authentication enabled")
        for pid in cluster.executors(member):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            assert SECRET not in command
    assert SECRET not in "".join(one.log.read_text() for one in cluster.workers)


# It is Spark that refuses; above, all members say that they authenticate each other.
@pytest.mark.nightly
def test_an_executor_without_the_secret_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    stranger = Cluster(tmp_path, secret="another")
    with ExitStack() as stack:
        joined = stranger.join(stack, cluster.url)
        await_said(joined, "Failed to connect to master|authentication failed")
        assert joined.said("Successfully registered") is None


def test_the_python_of_executors_has_no_package_of_ours(tmp_path: Path) -> None:
    answer = subprocess.run(
        [foreign_python(tmp_path), "-c", "import pyarrow, pyspark, lakesplice"],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'lakesplice'" in answer.stderr


def test_executors_import_the_package_that_the_driver_sent(session: SparkSession) -> None:
    def whence(_: int) -> tuple[str, str]:
        import sys

        from lakesplice.spark.jobs import batch

        return batch.__file__, sys.executable

    work = session.sparkContext.parallelize(range(4), 4)
    answers = work.map(whence).collect()
    name = ship_package(session)
    assert all(f"/{name}/lakesplice/" in file for file, _ in answers)
    # Also the Python they run came as an archive, into the folder of each executor.
    assert len({python for _, python in answers}) == 2
    assert cores(session) == 2


def test_executors_rewrite_files_as_the_driver_does(session: SparkSession, tmp_path: Path) -> None:
    table = MadeTable(tmp_path, EVERY_TYPE)
    table.insert([row(at, LOW) for at in range(6)])
    table.change([(Op.UPDATE, row(2, HIGH))])
    paths = tuple(table.manifest.files)
    task = RewriteTask(table.store, table.manifest, paths, best_rewriter(), SystemEntropy())
    (there,), here = rewrite_files(session, [task]), rewritten(task)
    assert there.counts == here.counts
    assert there.replaced.keys() == here.replaced.keys() == {*paths}


def test_executors_tell_their_python_and_that_they_lack_no_package(
    session: SparkSession,
) -> None:
    assert set(executor_versions(session)) == {version_here()}


def test_an_equal_package_makes_an_equal_zip(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    one, other = pack(first), pack(second)
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()
