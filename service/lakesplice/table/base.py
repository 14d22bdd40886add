"""Base files on the store: created whole and checked when opened.

A page's bytes are covered by its own checksum; what follows the pages, the page index and the
footer, by the one in the manifest. So no flipped bit prunes a row group or names another column in
silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.checksum import checksum
from lakesplice.formats.parquet import BaseReader, WrittenBase
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.schema import TableSchema
from lakesplice.table.intents import NewFile
from lakesplice.table.ports import Store


def create_base(
    store: Store,
    path: str,
    segments: Sequence[Segment],
    write: Callable[[pa.NativeFile], WrittenBase],
    *,
    splices: int = 0,
) -> NewFile:
    """Create a base file durably by calling `write` once with its sink; nothing refers to it yet.

    `segments` describe the rows that `write` writes, in their order. Blocks. If `write` raises,
    nothing is left.
    """
    with store.writer(path) as sink:
        written = write(sink)
    with store.open(path) as source:
        size = source.size()
        source.seek(written.pages_end)
        tail = source.read_buffer(size - written.pages_end)
        found = checksum(tail)
    base = BaseFile(path, size, tuple(segments), splices, len(tail), found)
    if base.rows != written.rows:
        raise CorruptFileError(
            "a base file was written with other rows than its segments say; this is a defect",
            path=path,
            rows=written.rows,
            expected=base.rows,
        )
    return NewFile(base, written.stats)


def open_base(store: Store, file: BaseFile, schema: TableSchema) -> BaseReader:
    """Open a base file for reading in the layout of `schema`, a present or later one; close it
    after.

    Blocks. `MissingFileError` if it is gone, `CorruptFileError` if its size, its tail or its footer
    is not what the manifest recorded.
    """
    source = store.open(file.path, file.tail_bytes)
    try:
        _check_tail(source, file)
        return BaseReader(source, file, schema)
    except BaseException:
        source.close()
        raise


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
