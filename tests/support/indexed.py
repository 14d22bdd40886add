"""A table made by hand whose rows are in the row index, a run per insert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakesplice.formats.rowindex import Entries
from lakesplice.model.manifest import RunRef
from lakesplice.planning.index_merge import sorted_entries
from lakesplice.planning.keyhash import key_hash
from lakesplice.table.intents import IndexMerge, Redirect
from lakesplice.table.layout import run_path
from lakesplice.table.runs import RunCache, write_merged, write_run
from tests.support.made import GENERATION, MadeTable, Row


class IndexedTable(MadeTable):
    """`MadeTable` with an index; its runs can be replaced by others, also by wrong ones."""

    def insert(self, *files: Sequence[Row]) -> None:
        super().insert(*files)
        keys = [row[self.key] for rows in files for row in rows]
        self.set_runs(*self.manifest.runs, self.run({k: self.addresses[k] for k in keys}))

    def run(self, places: dict[Any, tuple[int, int]]) -> RunRef:
        """Write a run that leads from keys to addresses."""
        field = self.schema.user_fields[0]
        table = pa.table([pa.array(list(places), field.type)], schema=pa.schema([field]))
        high, low = key_hash(table, self.schema)
        group, row = (np.array([p[at] for p in places.values()], np.int64) for at in (0, 1))
        entries, _ = sorted_entries(Entries(high, low, group, row))
        return write_run(self.store, run_path(self.entropy), [entries], len(places))

    def set_runs(self, *runs: RunRef) -> None:
        self._commit(
            Redirect(
                GENERATION,
                self.snapshot.version,
                runs=tuple(replace(run, keys_version=0) for run in runs),
            )
        )

    def merge(self, start: int, stop: int) -> None:
        refs = self.manifest.runs[start:stop]
        output = write_merged(self.store, refs, RunCache(), self.entropy)
        self._commit(IndexMerge(GENERATION, tuple(r.file.path for r in refs), output))
