"""Merges an upsert's changes into base files at once, instead of leaving them in deltas.

    located changes + what waits for the same files -> next versions of these files

Changes that wait for these files are older and have to be applied, too: later, below the position
of the upsert, they would count as stale.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakesplice.model.change import delta_schema
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.upkeep.compaction import PlannedRewrite, tasks
from lakesplice.table.by_hand.upserts.delta_pieces import address_order
from lakesplice.table.protocol.intents import Splice
from lakesplice.table.protocol.ports import Entropy, Rewriter, Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.compact import Compacted, compact_files, splice_of

# Each file gets a thread as long as there are threads.
_TASK_BYTES = 1


def merge_changes(
    store: Store,
    snapshot: Snapshot,
    changes: pa.Table,
    rewriter: Rewriter,
    entropy: Entropy,
    threads: int,
) -> Splice:
    """Write the next version of each base file on which the changes have an effect.

    `changes` are located, and have the columns that `in_full` adds. Returns a compaction's intent,
    which has the applied parts of deltas, too; nothing is committed. Blocks; raises as
    `compact_files`.
    """
    manifest = snapshot.manifest
    group, row = (changes.column(name).to_numpy() for name in (GROUP, ROW))
    order = address_order(group, row)
    addressed = dict(zip(*(n.tolist() for n in np.unique(group, return_counts=True)), strict=True))
    planned = [
        PlannedRewrite(path, count, file.bytes)
        for path, file in manifest.files.items()
        if (count := sum(addressed.get(segment.group, 0) for segment in file.segments))
    ]

    def merged(paths: tuple[str, ...]) -> Compacted:
        groups = [s.group for path in paths for s in manifest.files[path].segments]
        # Changes in the order of addresses are applied without sorting their columns.
        mine = changes.take(pa.array(order[np.isin(group[order], groups)]))
        return compact_files(store, manifest, paths, rewriter, entropy, more=mine)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        parts = list(pool.map(merged, tasks(planned, _TASK_BYTES, max(1, threads))))
    return splice_of(manifest.generation, snapshot.version, parts)


def in_full(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """Return changes with all columns of deltas. Added columns are null, and not in the sets of
    changed columns.
    """
    there = frozenset(changes.column_names)
    columns = [
        changes.column(field.name)
        if field.name in there
        else pa.nulls(changes.num_rows, field.type)
        for field in delta_schema(schema)
    ]
    return pa.Table.from_arrays(columns, schema=delta_schema(schema))
