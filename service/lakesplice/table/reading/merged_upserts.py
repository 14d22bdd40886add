"""What an upsert changed that was merged into base files at once, and so is in no delta.

No other commit has its position, so its rows are those at this position in the files that it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import IS_DELETED, POSITION_OFFSET
from lakesplice.model.schema import TableSchema
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.tombstones import deleted_rows
from lakesplice.table.protocol.ports import Store


def files_of_merge(now: Manifest, before: Manifest) -> list[BaseFile]:
    """Return the files that an upsert rewrote with its changes, by path. There are none if the
    version `now`, which follows `before`, is no upsert or left its changes in deltas.
    """
    upserts, earlier = now.upserts, before.upserts
    if upserts is None or earlier is None or upserts.position <= earlier.position:
        return []
    old = before.groups
    written = (now.files[path] for path in sorted(now.files.keys() - before.files.keys()))
    return [file for file in written if any(s.group in old for s in file.segments)]


def merged_rows(
    store: Store,
    now: Manifest,
    before: Manifest,
    file: BaseFile,
    schema: TableSchema,
    columns: Sequence[str],
) -> Iterator[tuple[pa.Table, Mask]]:
    """Yield the rows of a file of `files_of_merge` that the upsert changed, with `columns` and
    `_is_deleted`, and which of them were deleted before the upsert.

    Blocks; raises as a scan does.
    """
    assert now.upserts is not None
    names = dict.fromkeys((*columns, POSITION_OFFSET, IS_DELETED))
    with open_base(store, file, schema) as reader:
        for at, (first, _) in enumerate(reader.row_groups):
            rows = reader.read(at, [*names])
            mine = pc.equal(rows.column(POSITION_OFFSET), now.upserts.position)
            places = np.flatnonzero(mine.to_numpy()) + first
            if len(places):
                gone = _were_deleted(store, before, file, places)
                yield rows.filter(mine).select([*dict.fromkeys((*columns, IS_DELETED))]), gone


def _were_deleted(store: Store, before: Manifest, file: BaseFile, places: Integers) -> Mask:
    if before.upserts is None or not before.upserts.has_deleted:
        return np.zeros(len(places), np.bool_)
    groups = np.array([segment.group for segment in file.segments], np.int64)
    rows = np.array([segment.rows for segment in file.segments], np.int64)
    ends = np.cumsum(rows)
    at = np.searchsorted(ends, places, side="right")
    return deleted_rows(store, before, groups[at], places - (ends - rows)[at])
