"""File merge: small base files become one, with their segments one after the other.

No row's address changes, so the index and waiting deltas stay valid, also deltas that are committed
meanwhile. Large row groups are copied as bytes. The rows of small ones, which would make the new
file as slow to read as the old ones, are collected into new row groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.formats.parquet import (
    ROWS_PER_PAGE,
    WrittenBase,
    delta_stats,
    write_base,
)
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.schema import TableSchema
from lakesplice.splicing.operations import merge_files
from lakesplice.splicing.output.copying import OpenSink, StreamSink
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.table.files.base_files import (
    compared_columns,
    create_base,
    open_base,
    read_rows,
    verify_rows,
)
from lakesplice.table.protocol.intents import FileMerge
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store

# A row group of this size is read about as fast as one of full size.
COPIED_ROWS_MIN = 32 * ROWS_PER_PAGE


def merge_base_files(
    store: Store,
    manifest: Manifest,
    paths: Sequence[str],
    entropy: Entropy,
    open_sink: OpenSink = StreamSink,
) -> tuple[tuple[str, ...], NewFile]:
    """Write the file that replaces `files`; return these, in the new file's order, and the new
    file.

    All are of one partition, else `UsageError`. Memory holds the rows of the files with small row
    groups, and one row group. Blocks. `CorruptFileError` for a damaged file, and if the new file
    doesn't have the intended content.
    """
    schema, files = manifest.schema, [manifest.files[path] for path in paths]
    copied = [file for file in files if _is_copied(store, file, schema)]
    gathered = [file for file in files if file not in copied]
    ordered = [*gathered, *copied]
    splices = max(file.splices for file in files) + 1
    segments = [segment for file in ordered for segment in file.segments]
    partition = files[0].partition
    if any(file.partition != partition for file in files):
        raise UsageError("files of several partitions can't become one", paths=[*paths][:5])
    folder = partition_folder(schema.partitioned_by, partition)
    path = base_path(segments[0].group, splices, entropy, folder)

    def write(sink: pa.NativeFile) -> WrittenBase:
        if not copied:
            return _written(store, gathered, schema, sink)
        return _copied(store, gathered, copied, schema, sink, open_sink)

    new = create_base(store, path, segments, write, splices=splices, partition=partition)
    _verify(store, ordered, new.base, schema)
    return tuple(file.path for file in ordered), new


def file_merge(
    generation: int, planned_on: int, inputs: Sequence[str], output: NewFile, manifest: Manifest
) -> FileMerge:
    """Return the commit of a merge whose files were read at the version `planned_on`."""
    read = sum(manifest.files[path].bytes for path in inputs)
    counts = {"files": len(inputs), "bytes_read": read, "bytes_written": output.base.bytes}
    version = manifest.schema.version
    return FileMerge(generation, tuple(inputs), output, counts, planned_on, version)


def _is_copied(store: Store, file: BaseFile, schema: TableSchema) -> bool:
    with open_base(store, file, schema) as reader:
        rows = [last - first for first, last in reader.row_groups]
        large = min(rows, default=0) >= COPIED_ROWS_MIN
        # Fewer where rows are wide, or all row groups of the store small; encoded they take about a
        # sixth of their memory.
        large |= min(reader.row_group_bytes, default=0) >= store.row_group_bytes // 16
        return large and reader.is_as_written


def _written(
    store: Store, files: Sequence[BaseFile], schema: TableSchema, sink: pa.NativeFile
) -> WrittenBase:
    return write_base(read_rows(store, files, schema), schema, sink, store.row_group_bytes)


def _copied(
    store: Store,
    gathered: Sequence[BaseFile],
    copied: Sequence[BaseFile],
    schema: TableSchema,
    sink: pa.NativeFile,
    open_sink: OpenSink,
) -> WrittenBase:
    to = open_sink(sink)
    with ExitStack() as stack:
        sources = []
        if gathered:
            buffer = pa.BufferOutputStream()
            _written(store, gathered, schema, buffer)
            sources.append((pa.BufferReader(buffer.getvalue()), gathered[0].path))
        opened = (stack.enter_context(store.open(file.path)) for file in copied)
        sources += zip(opened, (file.path for file in copied), strict=True)
        try:
            done = merge_files(sources, to)
        except UnsupportedError:
            if to.tell():
                raise
            # The file has another writer's layout: none of it was written yet.
            return _written(store, [*gathered, *copied], schema, sink)
    footer = pq.read_metadata(pa.BufferReader(MAGIC + done.footer))
    return WrittenBase(done.rows, delta_stats(footer, schema), done.pages_end)


def _verify(
    store: Store, inputs: Sequence[BaseFile], output: BaseFile, schema: TableSchema
) -> None:
    """Compare keys, positions and deletions row by row: each must be at its address."""
    meant = pa.concat_tables(read_rows(store, inputs, schema, compared_columns(schema)))
    with open_base(store, output, schema) as reader:
        verify_rows(reader, meant, output.path)
