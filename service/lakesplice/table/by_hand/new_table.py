"""A new table fed by hand, and what such a table needs besides its store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.manifest import UpsertState
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema
from lakesplice.planning.rows.row_images import require_feedable
from lakesplice.planning.shape.stats_columns import chosen_by_hand
from lakesplice.splicing.output.copying import OpenSink, Scratch, StreamSink
from lakesplice.table.by_hand.input_rows import Rows, reader_of, stored_batches
from lakesplice.table.by_hand.upserts.new_rows import write_new_rows
from lakesplice.table.by_hand.upserts.upsert_request import now_scalar
from lakesplice.table.files.inner_tables import require_no_inner_tables
from lakesplice.table.protocol.commit import Committed, create
from lakesplice.table.protocol.intents import Create
from lakesplice.table.protocol.ports import Clock, Entropy, LogKeeper, Rewriter, Store
from lakesplice.table.upkeep.clustering.clustering import column_ids


@dataclass(frozen=True)
class Tools:
    """What a table that is written needs besides its store."""

    clock: Clock
    entropy: Entropy
    rewriter: Rewriter
    keeper: LogKeeper
    open_sink: OpenSink = StreamSink
    open_scratch: Callable[[], Scratch] | None = None


def create_table(
    store: Store,
    given: pa.Schema | Rows,
    key: Sequence[str],
    tools: Tools,
    *,
    insert_only: bool = False,
    change_feed: bool = False,
    stats_columns: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    bloom_filters: bool = False,
) -> None:
    """Make version 0 of a table fed by hand, with or without rows; `store` is the table's own
    folder.

    Blocks. Rows of a stream are written as they come: memory holds the rows of one base file, and
    28 bytes per key. `UsageError`, and nothing is visible, if the folder has a table, a type has no
    exact counterpart, a name of `stats_columns` is no text or moment, one of `cluster_by` is no
    column, or a key is null or occurs twice.
    """
    require_no_inner_tables(store)
    reader = None if isinstance(given, pa.Schema) else reader_of(given)
    schema = hand_fed_schema(given if reader is None else reader.schema, key)
    schema = replace(chosen_by_hand(schema, stats_columns), bloom_filters=bloom_filters)
    if cluster_by:
        column_ids(schema, cluster_by)
    if change_feed:
        require_feedable(schema)
    now = now_scalar(tools.clock)
    tables = stored_batches(reader, schema) if reader is not None else ()
    new = write_new_rows(store, tables, 0, now, schema, tools.entropy)
    counts = {"inserted": sum(run.entries for run in new.runs)}
    intent = Create(
        0,
        schema,
        upserts=UpsertState(0, insert_only=insert_only, cluster_by=tuple(cluster_by)),
        files=new.files,
        runs=new.runs,
        counts=counts if counts["inserted"] else {},
        change_feed=change_feed,
    )
    outcome = create(store, intent, clock=tools.clock, entropy=tools.entropy)
    if not isinstance(outcome, Committed):
        raise UsageError(outcome.detail, path=str(store))
