"""Rows that got new addresses, and what waits for them: an index run, and deltas at the new
addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.rowindex import Entries
from lakesplice.model.address import Segment
from lakesplice.model.arrays import Integers, KeyHashes, RowAddresses
from lakesplice.model.manifest import DeltaRef, Manifest, RunRef
from lakesplice.model.names import GROUP, POSITION_FILE, POSITION_OFFSET, ROW
from lakesplice.planning.rows.index_merge import take
from lakesplice.table.files.index_runs import are_indexed_at, write_entries
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.files.whole_files import put_file
from lakesplice.table.protocol.layout import delta_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store

_ORDER = [(name, "ascending") for name in (GROUP, ROW, POSITION_FILE, POSITION_OFFSET)]


@dataclass(frozen=True)
class MovedRows:
    """Rows of `inputs` that are in `outputs`, too, which no version names yet.

    The rows are numbered as in `segments`, those of the inputs. `places` has each row's place in
    the outputs, whose rows are numbered in their order. `run` has their new addresses; None if the
    index has none of the rows.
    """

    inputs: tuple[str, ...]
    outputs: tuple[NewFile, ...]
    segments: tuple[Segment, ...]
    places: Integers
    run: RunRef | None
    planned_on: int
    schema_version: int
    bytes_read: int

    @property
    def groups(self) -> frozenset[int]:
        """The file groups that the rows leave."""
        return frozenset(segment.group for segment in self.segments)

    @property
    def new_segments(self) -> tuple[Segment, ...]:
        """The segments of the outputs."""
        return segments_of(self.outputs)

    def carry(
        self, store: Store, manifest: Manifest, delta: DeltaRef, entropy: Entropy
    ) -> DeltaRef:
        """Write the changes of a delta that wait for these rows, with the rows' new addresses.

        Blocks; memory holds these changes. `CorruptFileError` if the delta is damaged.
        """
        schema = manifest.schema
        changes = read_waiting(store, [delta], schema, self.groups)
        former = RowAddresses(*(changes.column(name).to_numpy() for name in (GROUP, ROW)))
        new = _addresses(self.new_segments, self.places[_numbers(self.segments, former)])
        for name, values in ((GROUP, new.group), (ROW, new.row)):
            at = changes.schema.get_field_index(name)
            changes = changes.set_column(at, changes.schema.field(at), pa.array(values))
        file = put_file(store, delta_path(entropy), encode_delta(changes.sort_by(_ORDER), schema))
        groups, counts = np.unique(new.group, return_counts=True)
        return replace(
            delta,
            file=file,
            rows=changes.num_rows,
            schema_version=schema.version,
            waiting=dict(zip(groups.tolist(), counts.tolist(), strict=True)),
        )


def segments_of(outputs: Iterable[NewFile]) -> tuple[Segment, ...]:
    """Return the segments of new files, one after the other."""
    return tuple(segment for new in outputs for segment in new.base.segments)


def write_moved_run(
    store: Store,
    manifest: Manifest,
    hashes: KeyHashes,
    former: tuple[Segment, ...],
    new: tuple[Segment, ...],
    places: Integers,
    entropy: Entropy,
) -> RunRef | None:
    """Write the index run with the new addresses of rows, given the hashes of their keys; None if
    there are none.

    If rows move between partitions, it has only rows that the index has at their former address: a
    key with another address has a newer row elsewhere, and this is what it left. A row that moves
    away later leaves a file that is replaced, so that the run is never committed. Blocks.
    """
    entries = Entries(*hashes, *_addresses(new, places))
    if manifest.schema.partitioned_by:
        here = _addresses(former, np.arange(len(places)))
        entries = take(entries, are_indexed_at(store, manifest, hashes, here))
    return write_entries(store, [entries], entropy)


def _addresses(segments: tuple[Segment, ...], numbers: Integers) -> RowAddresses:
    """Return the addresses of rows by their numbers over all segments."""
    ends = np.cumsum([segment.rows for segment in segments])
    at = np.searchsorted(ends, numbers, "right")
    groups = np.array([segment.group for segment in segments], np.int64)
    return RowAddresses(groups[at], numbers - (ends[at] - np.diff(ends, prepend=0)[at]))


def _numbers(segments: tuple[Segment, ...], addresses: RowAddresses) -> Integers:
    """Return the numbers of rows over all segments by their addresses."""
    groups = np.array([segment.group for segment in segments], np.int64)
    starts = np.cumsum([0, *(segment.rows for segment in segments)])[:-1]
    order = np.argsort(groups)
    at = order[np.searchsorted(groups[order], addresses.group)]
    numbers: Integers = starts[at] + addresses.row
    return numbers
