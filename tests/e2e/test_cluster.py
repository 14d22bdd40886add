"""The service on a Spark cluster of two workers, which lose executors and one of themselves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakesplice.testing.compare import compare
from lakesplice.testing.spark_cluster import Cluster, Member
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, RunningService, ends_of, take_in
from tests.support.topics import Sender, make_topics

ROWS = 12_000
EAGER: dict[str, Any] = {"compaction": {"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1}}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster") as cluster:
        yield cluster


def deltas(lake: Lake, table: Ledger) -> int:
    """How many files of changes there are, committed or not."""
    return len([*lake.path(table.topic).glob("_lakesplice/deltas/*")])


def kill_in_a_batch(
    service: RunningService, cluster: Cluster, worker: Member, lake: Lake, table: Ledger
) -> list[int]:
    """Kill a worker's executors once a batch has begun to write; returns whom."""
    before = deltas(lake, table)
    service.until(lambda: deltas(lake, table) > before, "a batch writes")
    killed = cluster.executors(worker)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    return killed


# In the gate the crash tests show what becomes of a task that dies, and integration/test_cluster.py
# that executors elsewhere run ours.
@pytest.mark.nightly
def test_a_cluster_that_loses_executors_and_a_worker_loses_and_doubles_nothing(
    kafka_broker: str, topic_name: str, cluster: Cluster, tmp_path: Path
) -> None:
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender = Sender(kafka_broker)
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", spark=cluster.section(), **EAGER)
    with lake.running() as service:
        take_in(service, lake, ends_of(send(sender, goods.insert(0, ROWS))))
        one, other = cluster.workers
        records = send(sender, goods.update(range(0, ROWS, 5), "once"))
        killed = kill_in_a_batch(service, cluster, one, lake, goods)
        assert killed
        take_in(service, lake, ends_of(records))
        service.until(
            lambda: bool({*cluster.executors(one)} - {*killed}), "the worker has a new executor"
        )
        records = send(sender, goods.update(range(0, ROWS, 7), "again") + goods.delete(range(50)))
        kill_in_a_batch(service, cluster, other, lake, goods)
        os.killpg(other.process.pid, signal.SIGKILL)
        take_in(service, lake, ends_of(records))
        records = send(sender, goods.insert(ROWS, ROWS + 100))
        take_in(service, lake, ends_of(records))
        service.until(
            lambda: not lake.table(goods.topic).snapshot.manifest.deltas, "all is spliced"
        )
        service.terminate()
        service.ends_well()
    for view in ("real_time", "read_optimised"):
        assert compare(goods.truth, lake.table(goods.topic).read(view), ["id"]) is None
