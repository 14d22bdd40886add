"""Reads a table: base files alone, or base files with their deltas applied.

One row group is in memory at a time; in the real-time view also the waiting changes. Statistics
prune files and row groups only if no change waits for them: a change could make a row match, so the
filter is applied after the overlay. Partition columns prune files in both cases, with their deltas
(`planning/filtering/partition_pruning.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.parquet import BaseReader
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import IS_DELETED
from lakesplice.planning.filtering.filters import Filter
from lakesplice.planning.filtering.partition_pruning import partitions_to_read
from lakesplice.planning.filtering.shown_columns import ReaderNeeds, reader_needs
from lakesplice.planning.rows.edits import apply_edits
from lakesplice.planning.rows.overlay import overlay
from lakesplice.planning.rows.waiting_changes import OrderedChanges, WaitingChanges
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store


class View(StrEnum):
    """Which state of the rows a reader sees."""

    REAL_TIME = "real_time"
    READ_OPTIMISED = "read_optimised"


@dataclass(frozen=True)
class ScanRequest:
    """What to read: the stored names of the columns in the wanted order, the condition, the
    view.
    """

    columns: Sequence[str]
    condition: Filter | None = None
    view: View = View.REAL_TIME
    include_deleted: bool = False


def scan(
    store: Store,
    manifest: Manifest,
    request: ScanRequest,
    paths: Collection[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the requested rows, one table per row group that has any; of some base files only if
    `paths` names them.

    Files come in the order of their names, which begin with a file group, so a splice doesn't
    change the order.

    Blocks while reading. Raises `MissingFileError` if a file that the manifest names doesn't exist,
    and `CorruptFileError` for a damaged file, or a change whose key is not its row's; never returns
    fewer rows.
    """
    left = matching_files(manifest, request, manifest.files if paths is None else paths)
    files = [manifest.files[path] for path in sorted(left)]
    groups = frozenset(segment.group for file in files for segment in file.segments)
    deltas = manifest.deltas if request.view is View.REAL_TIME else ()
    waiting = None
    if any(not groups.isdisjoint(delta.waiting) for delta in deltas):
        waiting = WaitingChanges.of(
            read_waiting(
                store,
                deltas,
                manifest.schema,
                groups,
                _columns_to_read(request),
                left_out=_needs(manifest, request).left_out,
            )
        )
    for raw in _read(store, manifest, files, waiting, request):
        rows = _asked_for(_overlaid(raw, manifest, request), request)
        if rows.num_rows:
            yield rows


def matching_files(
    manifest: Manifest, request: ScanRequest, paths: Collection[str]
) -> Collection[str]:
    """Return the base files that may have matching rows, by their partitions."""
    schema, condition = manifest.schema, request.condition
    if condition is None or request.include_deleted or not schema.partitioned_by:
        return paths
    partitions = {path: manifest.files[path].partition for path in paths}
    left = partitions_to_read(condition, schema, partitions.values())
    return [path for path, partition in partitions.items() if partition in left]


@dataclass(frozen=True)
class _Raw:
    """A row group as its file has it, and the changes that wait for its rows, if any; `state` are
    the columns that decide what these do.
    """

    path: str
    rows: pa.Table
    part: OrderedChanges | None = None
    state: Sequence[str] = ()


def _read(
    store: Store,
    manifest: Manifest,
    files: Sequence[BaseFile],
    waiting: WaitingChanges | None,
    request: ScanRequest,
) -> Iterator[_Raw]:
    columns, needs = _columns_to_read(request), _needs(manifest, request)
    for file in files:
        path = file.path
        placed = None if waiting is None else waiting.for_file(file.segments, path)
        with open_base(store, file, manifest.schema) as reader:
            unchanged = _matching_groups(reader, request)
            for row_group, (first, last) in enumerate(reader.row_groups):
                part = None if placed is None else placed.within(first, last)
                if part is not None and len(part.rows):
                    state = needs.state_for(part, reader.highest_position(row_group))
                    with_state = tuple(dict.fromkeys((*columns, *state)))
                    yield _Raw(path, reader.read(row_group, with_state), part, state)
                elif row_group in unchanged:
                    yield _Raw(path, reader.read(row_group, columns))


def _overlaid(raw: _Raw, manifest: Manifest, request: ScanRequest) -> pa.Table:
    if raw.part is None:
        return raw.rows
    schema = manifest.schema
    state = raw.rows.select(list(raw.state)).take(pa.array(raw.part.addressed))
    edits = overlay(raw.part, state, schema, raw.path, manifest.ordering)
    return apply_edits(raw.rows.select(list(_columns_to_read(request))), edits)


def _matching_groups(reader: BaseReader, request: ScanRequest) -> frozenset[int]:
    condition = request.condition.for_statistics if request.condition is not None else None
    if condition is None:
        return frozenset(range(len(reader.row_groups)))
    return frozenset(reader.matching(condition))


def _asked_for(rows: pa.Table, request: ScanRequest) -> pa.Table:
    if not request.include_deleted:
        deleted = rows.column(IS_DELETED)
        if pc.any(deleted).as_py():
            rows = rows.filter(pc.invert(deleted))
    if request.condition is not None:
        rows = request.condition.matching(rows)
    return rows.select(list(request.columns))


def _needs(manifest: Manifest, request: ScanRequest) -> ReaderNeeds:
    return reader_needs(manifest.schema, manifest.ordering, _columns_to_read(request))


def _columns_to_read(request: ScanRequest) -> tuple[str, ...]:
    """The stored columns to read: those to return, and those of the condition."""
    chosen = request.condition.columns if request.condition is not None else frozenset()
    return tuple(dict.fromkeys((*request.columns, *sorted(chosen), IS_DELETED)))
