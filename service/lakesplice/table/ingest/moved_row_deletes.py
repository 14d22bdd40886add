"""Rows that move to another partition are marked as deleted at their former address, in one commit.

Other engines read base files only. A row that moves is in a new base file at once, so the base file
that it leaves is rewritten at once, too. The delta also has the delete, for our own readers. When
it is compacted it changes nothing, since the file has the row deleted at the same position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow.compute as pc

from lakesplice.model.change import Op
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import OP
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store
from lakesplice.table.upkeep.compact import rewrite_with


def with_moved_rows_deleted(
    store: Store,
    manifest: Manifest,
    deltas: Sequence[DeltaRef],
    vacated: Collection[int],
    entropy: Entropy,
) -> Mapping[str, NewFile]:
    """Rewrite the base files of the file groups `vacated` with the deletes that new deltas have for
    them, and return each one's next version by its path.

    Groups that are no longer live are skipped. Blocks; raises as `compact_files`.
    """
    files = [
        file
        for file in manifest.files.values()
        if any(segment.group in vacated for segment in file.segments)
    ]
    if not files:
        return {}
    changes = read_waiting(store, deltas, manifest.schema, set(vacated))
    deletes = changes.filter(pc.equal(changes.column(OP), int(Op.DELETE)))
    replaced, _ = rewrite_with(store, manifest, files, deletes, best_rewriter(), entropy)
    return replaced
