"""Clusterings of the service: tables with `cluster_by` are laid out by these columns as soon as
enough of their bytes are in files that aren't yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.upkeep.table_memory import ComputedOnce
from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.planning.upkeep.clustering import (
    ClusterPolicy,
    ClusterReason,
    waits_for_clustering,
)
from lakesplice.planning.upkeep.file_sizes import bytes_of
from lakesplice.storage.copying import ScratchFile
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.upkeep.clustering.clustering import Clustering
from lakesplice.table.upkeep.clustering.moved_rows import MovedRows
from lakesplice.table.upkeep.clustering.rearranging import Rearrangement
from lakesplice.telemetry import catalogue as metric

# Each attempt costs what waits for the rows, not the rows; a batch takes longer than one.
_ATTEMPTS_MAX = 20


class Clusterings:
    """Lays one cube of one table out at a time, so that other threads of the compactor are left to
    compact; two threads never call it for one table.

    `run` does the work of a task; in the service it runs on an executor. `policy` is by default
    that of the settings.
    """

    def __init__(
        self,
        driver: Driver,
        run: Callable[[Rearrangement], MovedRows],
        policy: ClusterPolicy | None = None,
    ) -> None:
        settings = driver.settings
        self._driver = driver
        self._run = run
        self._policy = policy or ClusterPolicy(
            file_bytes=settings.merge.target_bytes,
            new_share_min=settings.cluster.new_share_min,
        )
        self._working = threading.Lock()
        self._waits = ComputedOnce(self._has_enough_new)
        # The version of the table's columns with which it was refused.
        self._refused: dict[str, int] = {}

    def is_due(self, table: ServiceTable) -> bool:
        """Whether enough of a table that has `cluster_by` is in new files, and no other table is
        being laid out.
        """
        if not table.cluster_by or table.snapshot is None:
            return False
        if self._refused.get(str(table.name)) == table.manifest.schema.version:
            return False
        return self._waits.of(table) and not self._working.locked()

    def see_to(self, table: ServiceTable) -> None:
        """Lay out the next cube; the caller handles errors, except that a table without these
        columns is left out until its columns change, and logged. What was refused too often is laid
        out in a later turn.
        """
        if not self._working.acquire(blocking=False):
            return
        try:
            self._lay_out(table, table.cluster_by)
        except UsageError as error:
            self._refused[str(table.name)] = table.manifest.schema.version
            self._driver.log.warning("clustering-refused", table=str(table.name), error=str(error))
        finally:
            self._working.release()

    def _has_enough_new(self, name: str, manifest: Manifest) -> bool:
        files = manifest.files.values()
        new = bytes_of(file for file in files if file.cube is None)
        self._driver.metrics.set(metric.UNCLUSTERED_BYTES, new, table=name)
        return waits_for_clustering(files, self._policy)

    def _lay_out(self, table: ServiceTable, by: Sequence[str]) -> None:
        driver, name = self._driver, str(table.name)
        clustering = Clustering(
            table.store,
            by,
            driver.entropy,
            reason=ClusterReason.DUE,
            policy=self._policy,
            open_scratch=ScratchFile,
            work=self._run,
        )
        retries = Retries(driver.clock, driver.entropy, _ATTEMPTS_MAX)
        while True:
            assert table.snapshot is not None
            intent = clustering.plan(table.snapshot, driver.generation.number)
            if intent is None:
                return
            if isinstance(table.commit(intent), Committed):
                driver.metrics.add(metric.CLUSTERED_ROWS, intent.counts["rows"])
                driver.log.info(
                    "clustered",
                    table=name,
                    version=table.version,
                    files=len(intent.inputs),
                    rows=intent.counts["rows"],
                )
                return
            if not retries.allow_another():
                driver.log.warning(
                    "clustering-refused", table=name, error="other commits came first"
                )
                return
