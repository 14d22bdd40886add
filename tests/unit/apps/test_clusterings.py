"""The setting `cluster_by`: when the service lays a table out, and what it says about it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import structlog.testing

from lakesplice.apps.service.upkeep.clusterings import Clusterings
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.spark.jobs.rewrites import _lay_out
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.clustering import clustering
from lakesplice.table.upkeep.clustering.moved_rows import MovedRows
from lakesplice.table.upkeep.clustering.rearranging import Rearrangement, rearrange
from lakesplice.telemetry import catalogue as metric
from tests.support.by_hand import created
from tests.support.simulated import require_true
from tests.unit.apps.test_vacuums import NAME, Service, show


class Clustering(Service):
    """A service's table whose rows came in two batches; batches may come while rows move."""

    def __init__(self, folder: Path, *columns: str, batches: int = 0, enough: float = 0.5) -> None:
        super().__init__(
            folder,
            tables=[{"match": "*", "cluster_by": columns}],
        )
        # The smallest file that a setting allows is larger than this table.
        policy = ClusterPolicy(file_bytes=4_096, new_share_min=enough)
        self.clusterings = Clusterings(self.vacuums._driver, self.here, policy)
        self.batches = batches
        self.put(*range(50))

    def here(self, task: Rearrangement) -> MovedRows:
        """What an executor does, beside batches that change these rows."""
        moved = rearrange(task)
        while self.batches:
            self.batches -= 1
            self.put(1, 2, 100 + self.batches)
        return moved

    def put(self, *keys: int) -> None:
        for key in keys:
            self.source.topic.append(key % 2, self.source.put(key))
        self.tasks.batch()
        show(self.table, self.tasks.table)

    def turn(self) -> bool:
        due = self.clusterings.is_due(self.table)
        if due:
            self.clusterings.see_to(self.table)
            show(self.tasks.table, self.table)
        return due

    @property
    def new(self) -> float:
        """What the metric says of bytes that aren't laid out."""
        return self.metrics.value(metric.UNCLUSTERED_BYTES, table=NAME) or 0


@pytest.mark.slow
def test_a_table_is_laid_out_once_enough_of_it_is_new_and_says_why(tmp_path: Path) -> None:
    assert not Clustering(tmp_path / "none").turn()
    service = Clustering(tmp_path / "lake", "n", "id", batches=2)
    assert service.turn()
    (newest, *_) = Table(service.table.store).history()
    assert newest.info.operation == "CLUSTER"
    assert newest.info.parameters["by"] == "n,id"
    assert newest.info.parameters["reason"] == "due"
    rows = service.metrics.value(metric.CLUSTERED_ROWS) or 0
    assert rows >= 50
    assert not service.turn()  # what came meanwhile is not enough
    assert service.new > 0
    require_true(service.source, service.table.store)
    service.put(*range(200, 280))
    assert service.turn()
    assert not service.turn()
    assert service.new == 0
    require_true(service.source, service.table.store)


@pytest.mark.slow
def test_only_one_table_is_laid_out_at_a_time(tmp_path: Path) -> None:
    service = Clustering(tmp_path / "lake", "n")
    with service.clusterings._working:
        version = service.table.version
        assert not service.clusterings.is_due(service.table)
        service.clusterings.see_to(service.table)
        assert service.table.version == version
    assert service.turn()


@pytest.mark.slow
def test_a_table_without_these_columns_is_left_out_until_it_has_them(tmp_path: Path) -> None:
    service = Clustering(tmp_path / "lake", "nothing")
    with structlog.testing.capture_logs() as logs:
        assert service.turn()
        assert not service.turn()
    assert [entry["event"] for entry in logs] == ["clustering-refused"]
    assert "nothing" in str(logs)
    assert service.new > 0
    service.source.add_column("nothing", 0)
    service.put(1, 2)
    assert service.turn()
    assert not service.turn()
    assert service.new == 0


def test_an_executors_task_gives_what_a_clustering_commits(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [{"id": key, "n": key % 7} for key in range(40)])
    laid_out = clustering.Clustering(
        store,
        ["n"],
        SystemEntropy(),
        open_scratch=ScratchFile,
        work=lambda task: pickle.loads(_lay_out(pickle.dumps(task))),
    )
    intent = laid_out.plan(table.snapshot, 1)
    assert intent is not None
    assert (intent.counts["files"], intent.counts["rows"]) == (1, 40)
    assert all(store.size(new.base.path) == new.base.bytes for new in intent.outputs)
