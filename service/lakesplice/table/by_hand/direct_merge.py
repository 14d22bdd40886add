"""An upsert's changes merged into base files at once, instead of waiting in deltas.

    located changes + what waits for the same files -> next versions of these files

What waits is older and has to go in first: a row that stood at the upsert's position would take it
for stale.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakesplice.model.change import delta_schema
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.upkeep.compaction import PlannedRewrite, tasks
from lakesplice.table.by_hand.delta_pieces import address_order
from lakesplice.table.protocol.intents import Splice
from lakesplice.table.protocol.ports import Entropy, Rewriter, Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.compact import Compacted, compact_files, splice_of

# A thread per file while there are threads.
_TASK_BYTES = 1


def merge_changes(
    store: Store,
    snapshot: Snapshot,
    changes: pa.Table,
    rewriter: Rewriter,
    entropy: Entropy,
    threads: int,
) -> Splice:
    """Write the next version of each base file that changes have an effect on.

    `changes` are located, and `in_full`.

    Returns them as a compaction's intent, with the parts of deltas that went in, too; nothing is
    committed. Blocks; raises as `compact_files`.
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
        # In the order of addresses each column is laid over as it is.
        mine = changes.take(pa.array(order[np.isin(group[order], groups)]))
        return compact_files(store, manifest, paths, rewriter, entropy, more=mine)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        parts = list(pool.map(merged, tasks(planned, _TASK_BYTES, max(1, threads))))
    return splice_of(manifest.generation, snapshot.version, parts)


def in_full(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """Return changes with all columns of deltas: what they lack is null, and not in their sets."""
    there = frozenset(changes.column_names)
    columns = [
        changes.column(field.name)
        if field.name in there
        else pa.nulls(changes.num_rows, field.type)
        for field in delta_schema(schema)
    ]
    return pa.Table.from_arrays(columns, schema=delta_schema(schema))
