"""Base files on the store: created whole and checked when opened; and how other files are put.

A page's bytes are covered by its own checksum; what follows the pages, the page index and the
footer, by the one in the manifest. So no flipped bit prunes a row group or names another column in
silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.checksum import checksum
from lakesplice.formats.parquet import BaseReader, WrittenBase, write_base
from lakesplice.model.address import BaseFile, Partition, Segment
from lakesplice.model.arrays import Integers, RowAddresses
from lakesplice.model.manifest import FileRef
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.intents import NewFile
from lakesplice.table.protocol.ports import Store


def create_base(
    store: Store,
    path: str,
    segments: Sequence[Segment],
    write: Callable[[pa.NativeFile], WrittenBase],
    *,
    splices: int = 0,
    tail_hint: int = 0,
    partition: Partition = (),
    check: Callable[[pa.NativeFile, BaseFile], None] | None = None,
) -> NewFile:
    """Create a base file durably by calling `write` once with its sink; nothing refers to it yet.

    `segments` describe the rows that `write` writes, in their order, all of one `partition`.
    `check` looks at what was written. `tail_hint` is about how long its page index and footer are,
    in bytes, which are read back. Blocks. If `write` raises, nothing is left; if `check` does, the
    file, for the vacuum.
    """
    with store.writer(path) as sink:
        written = write(sink)
    with store.open(path, tail_hint) as source:
        size = source.size()
        source.seek(written.pages_end)
        tail = source.read_buffer(size - written.pages_end)
        base = BaseFile(
            path=path,
            bytes=size,
            segments=tuple(segments),
            splices=splices,
            tail_bytes=len(tail),
            tail_checksum=checksum(tail),
            partition=partition,
        )
        if base.rows != written.rows:
            raise CorruptFileError(
                "a base file was written with other rows than its segments say; this is a bug in"
                " Lakesplice",
                path=path,
                rows=written.rows,
                expected=base.rows,
            )
        if check:
            check(source, base)
    return NewFile(base, written.stats)


def create_base_of(
    store: Store,
    path: str,
    segment: Segment,
    rows: Iterable[pa.Table],
    schema: TableSchema,
    partition: Partition = (),
) -> NewFile:
    """Create the base file of one segment from its rows, in row groups that suit the store.

    Blocks. The tables have the columns of `schema.arrow`, in the order of the rows' positions.
    """

    def write(sink: pa.NativeFile) -> WrittenBase:
        return write_base(rows, schema, sink, store.row_group_bytes)

    return create_base(store, path, (segment,), write, partition=partition)


def open_base(store: Store, file: BaseFile, schema: TableSchema) -> BaseReader:
    """Open a base file for reading in the layout of `schema`, a present or later one; close it
    after.

    Blocks. `MissingFileError` if it doesn't exist, `CorruptFileError` if its size, its tail or its
    footer is not what the manifest recorded.
    """
    source = store.open(file.path, file.tail_bytes)
    try:
        return checked_base(source, file, schema)
    except BaseException:
        source.close()
        raise


def checked_base(source: pa.NativeFile, file: BaseFile, schema: TableSchema) -> BaseReader:
    """Return the reader of a base file that is open; errors as for `open_base`."""
    _check_tail(source, file)
    return BaseReader(source, file, schema)


def addresses(file: BaseFile, rows: Integers) -> RowAddresses:
    """Return the addresses of rows of a file, given by their numbers in it."""
    ends = np.cumsum([segment.rows for segment in file.segments])
    segment = np.searchsorted(ends, rows, "right")
    groups = np.array([segment.group for segment in file.segments], np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return RowAddresses(groups[segment], rows - starts[segment])


def _check_tail(source: pa.NativeFile, file: BaseFile) -> None:
    size = source.size()
    if size != file.bytes:
        raise CorruptFileError(
            "a base file has another size than recorded; restore it",
            path=file.path,
            bytes=size,
            recorded_bytes=file.bytes,
        )
    if not file.tail_bytes:
        return
    source.seek(size - file.tail_bytes)
    if checksum(source.read_buffer(file.tail_bytes)) != file.tail_checksum:
        raise CorruptFileError(
            "a base file's footer is not what was written; restore the file", path=file.path
        )


def put_file(store: Store, path: str, data: bytes) -> FileRef:
    """Create a file of ours durably and return what a manifest says of it."""
    with store.writer(path) as sink:
        sink.write(data)
    return FileRef(path, len(data), checksum(data))
