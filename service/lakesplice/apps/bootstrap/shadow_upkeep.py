"""Merges a shadow's index runs and waiting changes while a whole topic is read into it.

The service's compactor doesn't see shadows, so the command does this between batches.
"""

from __future__ import annotations

from lakesplice.planning.rows.index_merge import RUNS_MAX, plan_merge
from lakesplice.planning.upkeep.compaction import tasks, work
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.intents import IndexMerge
from lakesplice.table.protocol.ports import Entropy
from lakesplice.table.upkeep.compact import compact_files, splice_of

_DELTAS_MAX = 16
_TASK_BYTES = 128 * 2**20


class ShadowUpkeep:
    """The upkeep of one shadow. Not thread-safe."""

    def __init__(self, table: DriverTable, entropy: Entropy, runs: RunCache | None = None) -> None:
        self._table, self._entropy = table, entropy
        self._runs = runs or RunCache()

    def after_batch(self) -> None:
        """Merge runs or changes if there are too many. Blocks; after a lost race the next call
        retries.
        """
        self.merge_runs()
        if len(self._table.manifest.deltas) > _DELTAS_MAX:
            self._compact()

    def merge_runs(self) -> None:
        """Keep the number of runs small, since a key is looked up in all of them."""
        table, runs = self._table, self._table.manifest.runs
        places = plan_merge([run.entries for run in runs], RUNS_MAX)
        if places is None:
            return
        planned_on, inputs = table.version, runs[places.start : places.stop]
        output = write_merged(table.store, inputs, self._runs, self._entropy)
        paths = tuple(run.file.path for run in inputs)
        table.commit(IndexMerge(table.generation, paths, output, planned_on))

    def _compact(self) -> None:
        table, manifest = self._table, self._table.manifest
        planned_on, rewriter = table.version, best_rewriter()
        done = [
            compact_files(table.store, manifest, paths, rewriter, self._entropy)
            for paths in tasks(work(manifest), _TASK_BYTES, 1)
        ]
        if done:
            table.commit(splice_of(table.generation, planned_on, done))
