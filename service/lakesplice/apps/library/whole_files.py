"""Whole-file work on Parquet files that copies pages: append rows, merge files, change columns.

Each function writes a new file, which appears whole and checked, or not at all. All block, and
raise `UsageError` for arguments that don't fit, `CorruptFileError` for a damaged source,
`UnsupportedError` for a file that can't be processed page by page, and `StorageError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakesplice.apps.library.new_file import appearing, opened, options_for, refuse_existing
from lakesplice.errors import UsageError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing import operations
from lakesplice.splicing.operations import NewColumn
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Sink
from lakesplice.splicing.splice import Spliced
from lakesplice.storage.copying import FileSink

PathLike = str | Path
_Source = tuple[pa.NativeFile, str]


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What was written: `rows` in all; pages and bytes that were copied or encoded."""

    rows: int
    pages_copied: int
    pages_encoded: int
    bytes_copied: int
    bytes_encoded: int
    bloom_filters_dropped: int
    bytes_after: int
    seconds: float


def merge_files(
    sources: Sequence[PathLike],
    target: PathLike,
    *,
    threads: int | None = None,
    verify: bool = True,
) -> FileSummary:
    """Write the row groups of `sources`, files of one schema, one after the other to `target`."""
    paths = [Path(source) for source in sources]
    return _made(paths, Path(target), operations.merge_files, threads, verify=verify)


def append_rows(
    source: PathLike,
    rows: pa.Table | Sequence[pa.Table],
    target: PathLike,
    *,
    threads: int | None = None,
    verify: bool = True,
) -> FileSummary:
    """Write `source`, followed by each table of `rows` as a row group, to `target`.

    A table has the file's columns, in any order; values are cast to the file's types.
    """
    tables = [rows] if isinstance(rows, pa.Table) else list(rows)

    def append(file: _Source, sink: Sink, options: Options) -> Spliced:
        return operations.append_rows(*file, tables, sink, options)

    return _made_of(source, target, append, threads, verify=verify)


def add_column(
    source: PathLike,
    field: pa.Field,
    target: PathLike,
    *,
    value: Any = None,
    before: str | None = None,
    threads: int | None = None,
    verify: bool = True,
) -> FileSummary:
    """Write `source` with one more column to `target`: `value` in all rows, else null.

    The column comes before the column `before`, else last.
    """
    constant = value if value is None or isinstance(value, pa.Scalar) else pa.scalar(value)
    column = NewColumn(field, constant, before)

    def add(file: _Source, sink: Sink, options: Options) -> Spliced:
        return operations.add_columns(*file, [column], Edits(), sink, options)

    return _made_of(source, target, add, threads, verify=verify)


def drop_column(
    source: PathLike,
    column: str,
    target: PathLike,
    *,
    threads: int | None = None,
    verify: bool = True,
) -> FileSummary:
    """Write `source` without one of its columns to `target`."""

    def drop(file: _Source, sink: Sink, options: Options) -> Spliced:
        return operations.drop_column(*file, column, sink, options)

    return _made_of(source, target, drop, threads, verify=verify)


def replace_column(
    source: PathLike,
    field: pa.Field,
    change: Callable[[pa.Array], pa.Array],
    target: PathLike,
    *,
    threads: int | None = None,
    verify: bool = True,
) -> FileSummary:
    """Write `source` to `target`, with the column of the field's name in the field's type.

    `change` returns a row group's values from the old ones; they are cast to the type.
    """

    def replace(file: _Source, sink: Sink, options: Options) -> Spliced:
        return operations.replace_column(*file, field, change, sink, options)

    return _made_of(source, target, replace, threads, verify=verify)


def _made_of(
    source: PathLike,
    target: PathLike,
    operation: Callable[[_Source, Sink, Options], Spliced],
    threads: int | None,
    *,
    verify: bool,
) -> FileSummary:
    def of_the_first(files: Sequence[_Source], sink: Sink, options: Options) -> Spliced:
        return operation(files[0], sink, options)

    return _made([Path(source)], Path(target), of_the_first, threads, verify=verify)


def _made(
    sources: Sequence[Path],
    target: Path,
    operation: Callable[[Sequence[_Source], Sink, Options], Spliced],
    threads: int | None,
    *,
    verify: bool,
) -> FileSummary:
    if not sources:
        raise UsageError("no file is given; name at least one")
    started = time.monotonic()
    refuse_existing(target)
    with ExitStack() as stack:
        files = [(stack.enter_context(opened(source)), str(source)) for source in sources]
        with appearing(target) as stream:
            done = operation(files, FileSink(stream), options_for(threads, verify=verify))
    return FileSummary(
        rows=done.rows,
        pages_copied=done.pages_copied,
        pages_encoded=done.pages_encoded,
        bytes_copied=done.bytes_copied,
        bytes_encoded=done.bytes_encoded,
        bloom_filters_dropped=done.bloom_filters_dropped,
        bytes_after=target.stat().st_size,
        seconds=time.monotonic() - started,
    )
