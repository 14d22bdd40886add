"""Clustering of a table, commit after commit, beside writers that change it meanwhile.

To lay out rows takes long. Meanwhile batches and upserts are committed, and add changes for rows
that are about to move. These changes are carried: just before the commit they are written again at
the rows' new addresses, which takes little time. If another batch is committed first, that is
repeated. Only the rows of a file that was replaced meanwhile are laid out again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from lakesplice.errors import UsageError
from lakesplice.model.address import BaseFile, Cube
from lakesplice.model.manifest import Manifest
from lakesplice.model.schema import TableSchema
from lakesplice.planning.upkeep.clustering import (
    CLUSTER_POLICY,
    ClusterPolicy,
    ClusterReason,
    plan_clustering,
    usual_columns,
)
from lakesplice.planning.upkeep.curve import COLUMNS_MAX
from lakesplice.planning.upkeep.file_sizes import bytes_of
from lakesplice.table.protocol.intents import Cluster
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.clustering.moved_rows import MovedRows
from lakesplice.table.upkeep.clustering.rearranging import Rearrangement, rearrange
from lakesplice.table.upkeep.clustering.row_pieces import OpenScratch


class Clustering:
    """Lays a table out by some columns. Used by one thread at a time.

    With `whole` it lays out every file once; otherwise those that are laid out by no columns yet.
    `work` does the work of a task; in the service it runs on an executor.
    """

    def __init__(
        self,
        store: Store,
        by: Sequence[str],
        entropy: Entropy,
        *,
        whole: bool = False,
        reason: ClusterReason = ClusterReason.ASKED,
        policy: ClusterPolicy = CLUSTER_POLICY,
        open_scratch: OpenScratch | None = None,
        work: Callable[[Rearrangement], MovedRows] | None = None,
        progress: Progress = UNWATCHED,
    ) -> None:
        self._store = store
        self._by = tuple(by)
        self._entropy = entropy
        self._policy = policy
        self._open_scratch = open_scratch
        self._work = work or (lambda task: rearrange(task, progress))
        self._moved: MovedRows | None = None
        self._reason = reason
        self._made: set[Cube] | None = set() if whole else None

    def files(self, snapshot: Snapshot) -> tuple[BaseFile, ...]:
        """Return the files to lay out next; none if there is nothing to do.

        `UsageError` if the table has no such columns.
        """
        manifest = snapshot.manifest
        by = column_ids(manifest.schema, self._by)
        starts = _starts(snapshot, self._by[0])
        files = manifest.files.values()
        return plan_clustering(files, by, self._policy, starts, self._made) or ()

    def plan(self, snapshot: Snapshot, generation: int) -> Cluster | None:
        """Return the next commit; None if there is nothing to do. Blocks, mostly for long.

        After a commit that was refused, call it again: if possible it uses what it wrote. Errors as
        in `files` and `rearrange`.
        """
        if self._moved is None or not _holds(snapshot, self._moved):
            files = self.files(snapshot)
            if not files:
                return None
            self._moved = self._work(self._task(snapshot, files))
            if self._made is not None:
                cubes = (new.base.cube for new in self._moved.outputs)
                self._made.update(cube for cube in cubes if cube is not None)
        return self._intent(snapshot, self._moved, generation)

    def _task(self, snapshot: Snapshot, files: Sequence[BaseFile]) -> Rearrangement:
        manifest = snapshot.manifest
        return Rearrangement(
            store=self._store,
            manifest=manifest,
            paths=tuple(file.path for file in files),
            by=column_ids(manifest.schema, self._by),
            file_bytes=self._policy.file_bytes_of(bytes_of(manifest.files.values())),
            planned_on=snapshot.version,
            entropy=self._entropy,
            open_scratch=self._open_scratch,
        )

    def _intent(self, snapshot: Snapshot, moved: MovedRows, generation: int) -> Cluster:
        manifest, store, entropy = snapshot.manifest, self._store, self._entropy
        taken = manifest.waiting_for(moved.groups)
        deltas = (delta for delta in manifest.deltas if delta.file.path in taken)
        outputs = [new.base for new in moved.outputs]
        return Cluster(
            generation=generation,
            inputs=moved.inputs,
            outputs=moved.outputs,
            run=moved.run,
            taken=taken,
            carried={d.file.path: moved.carry(store, manifest, d, entropy) for d in deltas},
            planned_on=moved.planned_on,
            counts={
                "files": len(moved.inputs),
                "files_written": len(outputs),
                "rows": len(moved.places),
                "carried": sum(count for groups in taken.values() for count in groups.values()),
                "bytes_read": moved.bytes_read,
                "bytes_written": sum(file.bytes for file in outputs),
            },
            schema_version=moved.schema_version,
            by=self._by,
            reason=self._reason,
        )


def columns_of(manifest: Manifest, by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to lay a table out by: `by`, or else those that were chosen for the table,
    or else those by which most of it is laid out. `UsageError` if there are none.
    """
    if by:
        return tuple(by)
    if manifest.upserts is not None and manifest.upserts.cluster_by:
        return manifest.upserts.cluster_by
    by_id = manifest.schema.by_id
    found = [by_id[id_].name for id_ in usual_columns(manifest.files.values()) if id_ in by_id]
    if not found:
        raise UsageError("name the columns to lay the table out by: none were chosen for it yet")
    return tuple(found)


def column_ids(schema: TableSchema, names: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the columns to lay out by; `UsageError` if a table can't be laid out by
    them.
    """
    shown = {column.name: column.id for column in schema.columns if column.name in schema.shown}
    unknown = [name for name in names if name not in shown]
    if unknown:
        raise UsageError(
            "the table has no such columns; name some that are known",
            columns=unknown,
            known=sorted(shown),
        )
    constant = [name for name in names if name in schema.partitioned_by]
    if constant:
        raise UsageError(
            "the values of partition columns don't differ within a file; name others",
            columns=constant,
        )
    if not 0 < len(names) <= COLUMNS_MAX or len({*names}) < len(names):
        raise UsageError(
            f"name 1 to {COLUMNS_MAX} different columns to lay the table out by",
            columns=list(names),
        )
    return tuple(shown[name] for name in names)


def _holds(snapshot: Snapshot, moved: MovedRows) -> bool:
    """Whether the files that were written can still be committed."""
    manifest = snapshot.manifest
    return (
        manifest.files.keys() >= {*moved.inputs}
        and manifest.retention.writers_from <= moved.planned_on
        and all(one.version <= moved.schema_version for one in manifest.schema.former)
    )


def _starts(snapshot: Snapshot, column: str) -> dict[str, int | float | str]:
    """The lowest value of a column in each file whose statistics have it."""
    found = {}
    for path, add in snapshot.log.adds.items():
        lowest = json.loads(add.stats or "{}").get("minValues", {}).get(column)
        if lowest is not None:
            found[path] = lowest
    return found
