"""Small base files, written as one file with the changes that wait for them.

    read all rows -> overlay, as if they were of one file -> write -> check what was written

The new file has the segments of its sources one after the other, so no address changes.

A file of some KB may have rows of many MB, since equal texts are stored once. So rows are counted
as they are read: if they are too many for the memory, the files are spliced, which reads only the
edited pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.position import Ordering
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import Edits, apply_edits
from lakesplice.planning.rows.overlay import overlay, state_columns
from lakesplice.planning.rows.waiting_changes import WaitingChanges
from lakesplice.table.files.base_files import (
    checked_base,
    compared_columns,
    create_base,
    read_rows,
    verify_rows,
)
from lakesplice.table.files.change_images import ImageWriter
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store

# What the rows of a gathering may take in memory. All of them are held three times: as they were,
# in one piece, and edited.
ROWS_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class Gathered:
    """What was written for some files; `new` is None if no change had an effect."""

    edits: Edits
    new: NewFile | None = None


def may_gather(manifest: Manifest) -> bool:
    """Whether a compaction may write several files of a table as one.

    It may not in a table fed by hand: there a file is not written if its changes have no effect.
    Nor in an adopted table, whose files stay as their writer laid them out.
    """
    return manifest.ordering is not Ordering.COMMIT and not manifest.schema.adopted


def gather(
    store: Store,
    manifest: Manifest,
    files: Sequence[BaseFile],
    waiting: WaitingChanges,
    entropy: Entropy,
    images: ImageWriter | None = None,
) -> Gathered | None:
    """Write one file for several, which are of one partition; `images` gets the rows that change.

    None if the rows take more than ROWS_BYTES_MAX, or if a change doesn't fit its row. Then the
    caller splices the files one by one, which finds the file that is damaged. Blocks.
    `CorruptFileError` for a file that can't be read, and if the new file doesn't have the intended
    content; `StorageError`.
    """
    schema, segments = manifest.schema, [s for file in files for s in file.segments]
    found = _rows(store, files, schema)
    if found is None:
        return None
    rows = pa.concat_tables(found).combine_chunks()
    try:
        placed = waiting.for_file(segments, files[0].path)
        state = rows.select(state_columns(schema, manifest.ordering))
        state = state.take(pa.array(placed.addressed))
        edits = overlay(placed, state, schema, files[0].path, manifest.ordering)
    except CorruptFileError:
        return None
    if not len(edits.rows):
        return Gathered(edits)
    after = apply_edits(rows, edits)
    splices, partition = max(file.splices for file in files) + 1, files[0].partition
    folder = partition_folder(schema.partitioned_by, partition)
    new = create_base(
        store,
        base_path(segments[0].group, splices, entropy, folder),
        segments,
        lambda sink: write_base([after], schema, sink, store.row_group_bytes),
        splices=splices,
        tail_hint=2 * max(file.tail_bytes for file in files),
        partition=partition,
        check=partial(_check, schema, after, edits),
    )
    if images is not None:
        images.edited(partition, rows.take(pa.array(edits.rows)), edits)
    return Gathered(edits, new)


def _rows(store: Store, files: Sequence[BaseFile], schema: TableSchema) -> list[pa.Table] | None:
    """Return all rows of the files; None as soon as they take more than ROWS_BYTES_MAX."""
    rows, left = [schema.arrow.empty_table()], ROWS_BYTES_MAX
    for part in read_rows(store, files, schema):
        rows.append(part)
        left -= part.nbytes
        if left < 0:
            return None
    return rows


def _check(
    schema: TableSchema, after: pa.Table, edits: Edits, found: pa.NativeFile, base: BaseFile
) -> None:
    """Read back of all rows the edited columns, and what identifies and orders them."""
    names = dict.fromkeys((*compared_columns(schema), *edits.columns))
    verify_rows(checked_base(found, base, schema), after.select([*names]), base.path)
