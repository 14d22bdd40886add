"""Writes the next version of a Parquet file, in which only what the edits change is re-encoded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.columns.editing import EditedChunks, check_editable
from lakesplice.splicing.columns.nested import NestedChunks, check_nested
from lakesplice.splicing.columns.widening import widened_for_edits
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.metadata.geography import unbounded
from lakesplice.splicing.metadata.schemas import refuse_doubles
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.assemble import AssembledFile, GroupPlan, assemble
from lakesplice.splicing.output.copying import Sink
from lakesplice.splicing.output.images import CopiedChunk, MakeImage, MakeImageFunction
from lakesplice.splicing.pages.memory import MemoryLimits
from lakesplice.splicing.pages.new_values import fitting, null_refused, refused
from lakesplice.splicing.pages.page_decoding import read_type
from lakesplice.splicing.structures.footer import Leaf, RowGroup
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_written

__all__ = ["DEFAULTS", "Options", "Spliced", "splice"]

DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class Spliced:
    """What was written, and how. `columns_whole` names the columns of which a chunk was encoded
    whole, with the first reason. Pages end at `pages_end`, behind them come indexes and `footer`,
    whose bytes are the file's last.
    """

    rows: int
    pages_copied: int
    pages_encoded: int
    bytes_copied: int
    bytes_encoded: int
    columns_whole: Mapping[str, Reason]
    bloom_filters_dropped: int
    pages_end: int
    footer: bytes


def splice(
    source: pa.NativeFile, name: str, edits: Edits, sink: Sink, options: Options = DEFAULTS
) -> Spliced:
    """Write `source` with `edits` to `sink`; neither is closed. Rows stay where they are.

    Edited columns are named as in the file's schema; their values have the type as which pyarrow
    reads the column. Blocks. Raises `CorruptFileError` with `name`, place and reason for a damaged
    source. If the edited columns can't be spliced, it writes nothing and raises `UnsupportedError`
    with a `reason`. Raises `UsageError` for edits of rows or columns that the file doesn't have,
    for nulls in columns that don't allow them, and for values that can't be cast to their column's
    type.
    """
    file, options = SourceFile(source, name), options.for_copies(sink, [source])
    check_edits(file, edits)
    groups = edited_groups(file, edits, options)
    footer = unbounded(widened_for_edits(file, edits), edits.columns)
    written = assemble(footer, groups, sink, options.threads)
    return finished(written, file.footer.num_rows, name, options)


def check_edits(file: SourceFile, edits: Edits) -> None:
    """Refuse edits that can't be applied, before anything is written, so that the caller can
    rewrite the file instead; raises the errors of `splice`.
    """
    for column, name in _columns(file, edits).items():
        edit = edits.columns[name]
        touched = [
            (row_group, part)
            for row_group, first, last in file.row_ranges()
            if len((part := edit.within(first, last)).rows)
        ]
        if not touched:
            continue
        if not file.leaf(column).flat:
            for row_group, part in touched:
                check_nested(file, row_group, _leaves(file, name), part)
            continue
        check_editable(file, [row_group for row_group, _ in touched], column)
        file_part = file.file_part(touched[0][0], column)
        fitting(file, edit, read_type(file.leaf(column), file.footer.created_by, file_part), name)
        if not file.leaf(column).max_definition and edit.values.null_count:
            raise null_refused(file, name)


def edited_groups(file: SourceFile, edits: Edits, options: Options) -> list[GroupPlan]:
    """Return the plans of a file's row groups with checked edits.

    Raises `UnsupportedError` with a `reason` if a chunk can't even be copied.
    """
    columns, memory = _columns(file, edits), MemoryLimits(options)
    return [
        _group(file, row_group, columns, edits.within(first, last), options, memory)
        for row_group, first, last in file.row_ranges()
    ]


def finished(written: AssembledFile, rows: int, name: str, options: Options) -> Spliced:
    """Check that the assembled file has `rows` rows and is right; return the summary."""
    if options.verify:
        verify_written(written, rows, name)
    return spliced(written)


def spliced(written: AssembledFile) -> Spliced:
    """Return the summary of what was assembled."""
    counts = written.counts
    return Spliced(
        rows=written.footer.num_rows,
        pages_copied=counts.pages_copied,
        pages_encoded=counts.pages_encoded,
        bytes_copied=counts.bytes_copied,
        bytes_encoded=counts.bytes_encoded,
        columns_whole=counts.wholes,
        bloom_filters_dropped=counts.bloom_filters_dropped,
        pages_end=written.pages_end,
        footer=written.encoded,
    )


def _group(
    file: SourceFile,
    row_group: int,
    columns: Mapping[int, str],
    edits: Edits,
    options: Options,
    memory: MemoryLimits,
) -> GroupPlan:
    makers: list[MakeImage] = []
    nested: dict[str, NestedChunks] = {}
    # Some columns may have no edit within the row group.
    edited = {
        column: edits.columns[name]
        for column, name in columns.items()
        if name in edits.columns and len(edits.columns[name].rows)
    }
    flat = {column: edit for column, edit in edited.items() if file.leaf(column).flat}
    chunks = EditedChunks(file, row_group, flat, options, memory)
    for column, leaf in enumerate(file.footer.leaves):
        reason = file.needs_its_name(row_group, column)
        if reason is not None:
            raise refused(file, row_group, column, reason)
        file.refuse_large_indexes(row_group, column)
        size = file.chunk(row_group, column).compressed_size
        if column not in edited:
            makers.append(CopiedChunk(file, row_group, column, options.verify_copies))
        elif leaf.flat:
            makers.append(MakeImageFunction(partial(chunks.image, column), size))
        else:
            name = columns[column]
            leaves = _leaves(file, name)
            if name not in nested:
                nested[name] = NestedChunks(file, row_group, leaves, edited[column])
            makers.append(MakeImageFunction(partial(nested[name].image, leaves.index(leaf)), size))
    return GroupPlan(_still_sorted(file.footer.row_groups[row_group], edited), makers)


def _leaves(file: SourceFile, name: str) -> list[Leaf]:
    return [leaf for leaf in file.footer.leaves if leaf.path[0] == name]


def _still_sorted(group: RowGroup, edited: Collection[int]) -> RowGroup:
    order = group.sorting_columns
    if order and any(column.column in edited for column in order):
        return replace(group, sorting_columns=None)
    return group


def _columns(file: SourceFile, edits: Edits) -> dict[int, str]:
    """The edits by the number of their leaf."""
    refuse_doubles(file.footer, edits.columns, file.name)
    found = {
        leaf.column: leaf.path[0] for leaf in file.footer.leaves if leaf.path[0] in edits.columns
    }
    missing = edits.columns.keys() - set(found.values())
    if missing:
        raise UsageError("the file has no such column", path=file.name, columns=sorted(missing))
    for name, edit in edits.columns.items():
        if len(edit.rows) and not 0 <= edit.rows[0] <= edit.rows[-1] < file.footer.num_rows:
            raise UsageError("the file has no such row", path=file.name, column=name)
    return found
