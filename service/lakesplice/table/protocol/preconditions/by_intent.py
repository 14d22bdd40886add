"""The table of docs/format.md, "Commits": the preconditions of each kind of commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakesplice.table.protocol.intents import (
    Backfill,
    ChangePins,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    Replay,
    Restore,
    SetChangeFeed,
    Splice,
    Swap,
    Sweep,
    Upsert,
)
from lakesplice.table.protocol.outcomes import Conflict
from lakesplice.table.protocol.preconditions.files import (
    consumed_parts_still_wait,
    deltas_are_as_read,
    files_are_as_read,
    floor_is_below_all_to_come,
    images_were_made,
    inputs_are_adjacent,
    layout_is_as_written,
    nothing_waits_for_sources,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.rows import (
    chunks_are_open,
    fence_is_as_read,
    groups_are_live,
    index_has_no_newer_keys,
    moved_rows_are_as_read,
    offsets_continue,
    rows_are_as_read,
    schema_is_as_written,
    table_is_running,
)
from lakesplice.table.protocol.preconditions.tables import (
    feed_is_the_other_way,
    generation_is_current,
    nothing_was_committed,
    retention_is_as_read,
    schema_is_the_one_before,
)
from lakesplice.table.protocol.snapshot import Snapshot

Precondition = Callable[[Snapshot, Any], Conflict | None]
PRECONDITIONS: Mapping[type[Intent], tuple[Precondition, ...]] = {
    Ingest: (
        generation_is_current,
        table_is_running,
        offsets_continue,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        moved_rows_are_as_read,
        sources_are_unchanged,
        images_were_made,
        writer_began_after_sweep,
    ),
    Upsert: (
        table_is_running,
        rows_are_as_read,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        sources_are_unchanged,
        consumed_parts_still_wait,
        images_were_made,
        writer_began_after_sweep,
    ),
    Splice: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        consumed_parts_still_wait,
        images_were_made,
        writer_began_after_sweep,
    ),
    FileMerge: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        writer_began_after_sweep,
    ),
    Purge: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        nothing_waits_for_sources,
        floor_is_below_all_to_come,
        writer_began_after_sweep,
    ),
    IndexMerge: (generation_is_current, inputs_are_adjacent, writer_began_after_sweep),
    Evolve: (
        generation_is_current,
        files_are_as_read,
        deltas_are_as_read,
        schema_is_the_one_before,
        writer_began_after_sweep,
    ),
    Redirect: (generation_is_current, nothing_was_committed),
    Replay: (generation_is_current, nothing_was_committed),
    SetChangeFeed: (generation_is_current, feed_is_the_other_way),
    Expire: (generation_is_current, retention_is_as_read),
    ChangePins: (generation_is_current, retention_is_as_read),
    Note: (generation_is_current,),
    Sweep: (generation_is_current,),
    Restore: (generation_is_current, nothing_was_committed),
    Backfill: (
        generation_is_current,
        table_is_running,
        chunks_are_open,
        fence_is_as_read,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        moved_rows_are_as_read,
        sources_are_unchanged,
        writer_began_after_sweep,
    ),
    Swap: (generation_is_current, nothing_was_committed),
}
