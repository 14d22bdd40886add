"""Columns that rows bring: the schema of a table fed by hand grows before they are written.

    compare the columns with the table's -> rewrite files in which one gets a wider type -> commit

It is a commit of its own. A crash after it leaves a table with columns that no row has values for.
Upserts that were written before it are written again, with their rows in the new types.
"""

from __future__ import annotations

import pyarrow as pa

from lakesplice.planning.by_hand.merged_schema import merged_schema
from lakesplice.planning.rows.row_images import require_feedable
from lakesplice.table.by_hand.new_table import Tools
from lakesplice.table.by_hand.upserts.upsert_request import require_fed_by_hand
from lakesplice.table.ingest.reshape import reshape
from lakesplice.table.protocol.intents import Evolve
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot


def schema_merge(store: Store, snapshot: Snapshot, given: pa.Schema, tools: Tools) -> Evolve | None:
    """Return the change of a version's schema after which it has the columns of some rows; None if
    it has them.

    Blocks: base files with a column that gets another type are rewritten; their other pages are
    copied. Nothing is committed. `UsageError` if a source feeds the table, or there is no such
    schema.
    """
    manifest = snapshot.manifest
    require_fed_by_hand(manifest)
    schema = merged_schema(manifest.schema, given)
    if schema == manifest.schema:
        return None
    if manifest.feed is not None:
        require_feedable(schema)
    replaced = reshape(store, manifest, schema, tools.entropy, tools.open_sink)
    planned_on = snapshot.version if replaced else None
    return Evolve.of(manifest.generation, manifest, schema, replaced, planned_on)
