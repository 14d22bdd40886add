"""Rearranging: base files are written again, with their rows in the order of a curve through some
columns (`planning/upkeep/curve.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.model.address import GROUP_BITS, BaseFile, Cube, Segment
from lakesplice.model.arrays import Integers, KeyHashes
from lakesplice.model.manifest import Manifest
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.upkeep.curve import curve_order
from lakesplice.table.files.base_files import (
    compared_columns,
    create_base_of,
    open_base,
    read_rows,
    verify_rows,
)
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Store, watched
from lakesplice.table.upkeep.clustering.moved_rows import MovedRows, segments_of, write_moved_run
from lakesplice.table.upkeep.clustering.row_pieces import OpenScratch, RowPieces


@dataclass(frozen=True)
class Rearrangement:
    """Base files of one partition, by path, to be laid out by the columns with the ids `by`, in
    files of about `file_bytes`. `manifest` is that of the version `planned_on`.
    """

    store: Store
    manifest: Manifest
    paths: tuple[str, ...]
    by: tuple[int, ...]
    file_bytes: int
    planned_on: int
    entropy: Entropy
    open_scratch: OpenScratch | None = None

    @property
    def files(self) -> list[BaseFile]:
        """The files, in the order in which their rows are numbered."""
        return [self.manifest.files[path] for path in self.paths]


def rearrange(task: Rearrangement, progress: Progress = UNWATCHED) -> MovedRows:
    """Write the files, and return where each row went. Nothing names the new files yet.

    Memory holds the columns of the order, some 50 bytes per row, and the rows of one new file; all
    rows are in the temporary file for a while. Blocks. `CorruptFileError` for a damaged file, and
    if a new file doesn't have the intended content; `StorageError`.
    """
    size = sum(file.bytes for file in task.files)
    progress.expect(2 * size)
    places = _places(task)
    ends = _ends(len(places), size, task.file_bytes)
    pieces, hashes = RowPieces(ends, task.open_scratch), list[KeyHashes]()
    first = 0
    for rows in _rows(task, progress=progress):
        hashes.append(key_hash(rows, task.manifest.schema))
        pieces.add(rows, places[first : first + rows.num_rows])
        first += rows.num_rows
    cube = Cube(task.by, task.entropy.bits(GROUP_BITS))
    outputs, count = [], len(ends)
    for number in range(count):
        outputs.append(_written(task, pieces.rows(number), cube))
        progress.advance(size * (number + 1) // count - size * number // count)
    segments = tuple(segment for file in task.files for segment in file.segments)
    run = write_moved_run(
        store=task.store,
        manifest=task.manifest,
        hashes=KeyHashes(*(np.concatenate(part) for part in zip(*hashes, strict=True))),
        former=segments,
        new=segments_of(outputs),
        places=places,
        entropy=task.entropy,
    )
    return MovedRows(
        inputs=task.paths,
        outputs=tuple(outputs),
        segments=segments,
        places=places,
        run=run,
        planned_on=task.planned_on,
        schema_version=task.manifest.schema.version,
        bytes_read=size,
    )


def _places(task: Rearrangement) -> Integers:
    """Return each row's place in the new order."""
    columns = {column.id: column.name for column in task.manifest.schema.columns}
    names = tuple(columns[column] for column in task.by)
    read = pa.concat_tables(_rows(task, names))
    order = curve_order([read.column(name) for name in names])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _rows(
    task: Rearrangement, names: Sequence[str] | None = None, *, progress: Progress = UNWATCHED
) -> Iterator[pa.Table]:
    files = watched(task.files, progress)
    return read_rows(task.store, files, task.manifest.schema, names)


def _ends(rows: int, size: int, file_bytes: int) -> list[int]:
    """Divide rows into files of equal numbers of rows: the place after the last one of each."""
    files = min(max(round(size / file_bytes), 1), max(rows, 1))
    return [rows * (number + 1) // files for number in range(files)]


def _written(task: Rearrangement, rows: pa.Table, cube: Cube) -> NewFile:
    """Write one new file, and compare keys, positions and deletions with what was meant."""
    schema, partition = task.manifest.schema, task.files[0].partition
    segment = Segment(task.entropy.bits(GROUP_BITS), rows.num_rows)
    folder = partition_folder(schema.partitioned_by, partition)
    path = base_path(segment.group, 0, task.entropy, folder)
    new = create_base_of(task.store, path, segment, [rows], schema, partition)
    with open_base(task.store, new.base, schema) as reader:
        verify_rows(reader, rows.select(compared_columns(schema)), path)
    return replace(new, base=replace(new.base, cube=cube))
