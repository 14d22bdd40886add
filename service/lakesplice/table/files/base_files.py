"""Creates base files and checks them when they are opened.

The checksum of each page covers its bytes. The manifest's checksum covers what follows the pages:
the page index and the footer. So a flipped bit can't prune a row group or rename a column
unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.checksum import checksum
from lakesplice.formats.parquet import BaseReader, WrittenBase, write_base
from lakesplice.model.address import BaseFile, Partition, Segment
from lakesplice.model.arrays import Integers, RowAddresses
from lakesplice.model.names import IS_DELETED, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.schema import TableSchema
from lakesplice.splicing.pages.new_values import bits
from lakesplice.table.protocol.new_files import NewFile
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
    """Create a base file durably by calling `write` once with its sink; nothing names the file yet.

    `segments` describe the rows that `write` writes, in their order, all of one `partition`.
    `check` may look at what was written. `tail_hint` is about the size, in bytes, of the page index
    and the footer, which are read back. Blocks. If `write` raises, the file is removed; if `check`
    raises, it is left for the vacuum.
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
    """Create the base file of one segment from its rows, in row groups of a size that suits the
    store.

    Blocks. The tables have the columns of `schema.arrow`; their rows are in order of row position.
    """

    def write(sink: pa.NativeFile) -> WrittenBase:
        return write_base(rows, schema, sink, store.row_group_bytes)

    return create_base(store, path, (segment,), write, partition=partition)


def open_base(store: Store, file: BaseFile, schema: TableSchema) -> BaseReader:
    """Open a base file for reading in the layout of `schema`, the file's own or a later one; the
    caller closes it.

    Blocks. `MissingFileError` if it doesn't exist, `CorruptFileError` if its size, its tail or its
    footer differs from what the manifest recorded.
    """
    source = store.open(file.path, file.tail_bytes)
    try:
        return checked_base(source, file, schema)
    except BaseException:
        source.close()
        raise


def checked_base(source: pa.NativeFile, file: BaseFile, schema: TableSchema) -> BaseReader:
    """Return the reader of a base file that is open; errors as in `open_base`."""
    _check_tail(source, file)
    return BaseReader(source, file, schema)


def read_rows(
    store: Store,
    files: Iterable[BaseFile],
    schema: TableSchema,
    names: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of base files, one row group after another, with the columns `names` or all.

    Blocks; errors as in `open_base` and of `BaseReader`.
    """
    for file in files:
        with open_base(store, file, schema) as reader:
            yield from reader.read_each(names)


def compared_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns that `verify_rows` compares: keys, positions and deletions."""
    return (*schema.key, POSITION_FILE, POSITION_OFFSET, IS_DELETED)


def verify_rows(reader: BaseReader, meant: pa.Table, path: str) -> None:
    """Read a new base file back, in the columns of `meant`; `CorruptFileError` if it has other
    rows, or the same ones in another order.
    """
    found = pa.concat_tables(reader.read_each(meant.column_names))
    if not all(_equal(found.column(name), meant.column(name)) for name in meant.column_names):
        raise CorruptFileError(
            "a new base file doesn't hold the rows that were meant; this is a bug in Lakesplice",
            path=path,
        )


def _equal(found: pa.ChunkedArray, meant: pa.ChunkedArray) -> bool:
    """Whether two columns have the same values; a NaN equals itself."""
    if pa.types.is_floating(meant.type):
        found, meant = (bits(values.combine_chunks()) for values in (found, meant))
    return bool(found.equals(meant))


def addresses(file: BaseFile, rows: Integers) -> RowAddresses:
    """Return the addresses of a file's rows, given by their numbers in the file."""
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
