"""A table made by hand whose rows are in the row index, a run per insert.

The runs are written according to the document of the format, not by the code that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import xxhash

from lakesplice.model.manifest import FileRef, RunRef
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.protocol.intents import IndexMerge, Redirect
from lakesplice.table.protocol.layout import run_path
from tests.support.independent import hash_of_key, index_run
from tests.support.made import GENERATION, MadeTable, Row


class IndexedTable(MadeTable):
    """`MadeTable` with an index; its runs can be replaced by others, also by wrong ones."""

    def insert(self, *files: Sequence[Row]) -> None:
        super().insert(*files)
        keys = [row[self.key] for rows in files for row in rows]
        self.set_runs(*self.manifest.runs, self.run({k: self.addresses[k] for k in keys}))

    def run(self, places: dict[Any, tuple[int, int]]) -> RunRef:
        """Write a run that leads from keys to addresses."""
        data = index_run({hash_of_key(key): place for key, place in places.items()})
        path = run_path(self.entropy)
        assert self.store.put_new(path, data)
        return RunRef(FileRef(path, len(data), xxhash.xxh3_128_hexdigest(data)), len(places))

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
