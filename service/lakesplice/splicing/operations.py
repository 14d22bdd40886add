"""Operations on whole files that copy pages, besides edits (`splice.py`).

Each operation only decides what the chunks of the new file are: copied, re-encoded, or new; one
assembler writes them all. All operations block, close neither sources nor sinks, and check what was
written. They raise `CorruptFileError` for damaged sources and, before anything is written,
`UnsupportedError` with a `reason` for what they can't do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.columns.new_chunks import cut, fresh_chunk, leaf_of, pages_like, style_like
from lakesplice.splicing.columns.widening import (
    widened_for_edits,
    widened_for_rows,
    widened_type,
)
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.input_values import NewColumn, check_new, constant, fitted_plain, rows_like
from lakesplice.splicing.metadata.geography import unbounded
from lakesplice.splicing.metadata.same_meaning import disagreements
from lakesplice.splicing.metadata.schemas import column_of, inserted, removed, renumbered
from lakesplice.splicing.metadata.writer_names import with_our_name_over, writers
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.assemble import GroupPlan, assemble
from lakesplice.splicing.output.copying import Sink
from lakesplice.splicing.output.images import ChunkImage, MakeImage, MakeImageFunction
from lakesplice.splicing.pages.memory import MemoryLimits
from lakesplice.splicing.pages.new_values import laid_over
from lakesplice.splicing.pages.page_encoding import PageStyle
from lakesplice.splicing.pages.rows import read_column
from lakesplice.splicing.splice import DEFAULTS, Spliced, check_edits, edited_groups, finished
from lakesplice.splicing.structures.footer import Leaf, RowGroup
from lakesplice.splicing.structures.source import SourceFile

__all__ = [
    "NewColumn",
    "add_columns",
    "append_rows",
    "drop_column",
    "merge_files",
    "replace_column",
]


def merge_files(
    sources: Sequence[tuple[pa.NativeFile, str]], sink: Sink, options: Options = DEFAULTS
) -> Spliced:
    """Write the row groups of several files of one schema into one file, in order."""
    if not sources:
        raise UsageError("there is nothing to merge")
    files = [SourceFile(source, name) for source, name in sources]
    options, like = options.for_copies(sink, [file.source for file in files]), files[0].footer
    groups = []
    for file in files:
        if differences := disagreements(like, file.footer):
            raise UnsupportedError(
                "only files with the same schema and types can be merged; rewrite this one first",
                path=file.name,
                differ=differences,
                reason=str(Reason.OTHER_LAYOUT),
            )
        groups += _copied(file, options)
    rows = sum(file.footer.num_rows for file in files)
    like = with_our_name_over(like, (name for file in files for name in writers(file.footer)))
    return finished(assemble(like, groups, sink, options.threads), rows, files[0].name, options)


def append_rows(
    source: pa.NativeFile,
    name: str,
    tables: Sequence[pa.Table],
    sink: Sink,
    options: Options = DEFAULTS,
) -> Spliced:
    """Write the file and append each table as a row group, in the layout of the file's columns.

    The tables must have the file's columns, in any order, in types that can be cast without loss,
    or `UsageError` is raised. A table without rows adds no row group. The file must have flat
    columns only.
    """
    file, options = SourceFile(source, name), options.for_copies(sink, [source])
    groups = _copied(file, options)
    styles = [(leaf, *style_like(file, leaf.column)) for leaf in file.footer.leaves]
    for leaf, _, _ in styles:
        if not leaf.flat:
            raise UnsupportedError(
                "rows can't be appended to nested columns; rewrite the file",
                path=name,
                column=leaf.name,
                reason=str(Reason.NESTED),
            )
    rows, footer = file.footer.num_rows, widened_for_rows(file.footer, tables)
    footer = unbounded(footer, footer.columns)
    given = [table for table in tables if table.num_rows]
    for table, columns in zip(given, rows_like(file, given), strict=True):
        makers: list[MakeImage] = [
            MakeImageFunction(
                partial(_appended, leaf, style, encoding, values, name), values.nbytes
            )
            for (leaf, style, encoding), values in zip(styles, columns, strict=True)
        ]
        groups.append(GroupPlan(_bare_group(table.num_rows), makers))
        rows += table.num_rows
    written = assemble(footer, groups, sink, options.threads)
    return finished(written, rows, name, options)


def add_columns(
    source: pa.NativeFile,
    name: str,
    columns: Sequence[NewColumn],
    edits: Edits,
    sink: Sink,
    options: Options = DEFAULTS,
) -> Spliced:
    """Write the file with new columns and with `edits`, which may be of the new columns too.

    Values are cast to their column's type. Raises `UsageError` if that loses something, for a null
    in a column that doesn't allow it, for a name that is taken, and as `splice` does.
    """
    file, options = SourceFile(source, name), options.for_copies(sink, [source])
    of_new = {column.field.name for column in columns}
    check_new(file, columns, edits)
    old = replace(
        edits, columns={at: edit for at, edit in edits.columns.items() if at not in of_new}
    )
    check_edits(file, old)
    groups, footer = edited_groups(file, old, options), widened_for_edits(file, old)
    footer = unbounded(footer, old.columns)
    numbers = {leaf.column: leaf.column for leaf in footer.leaves}
    style = style_like(file, 0)[0] if footer.leaves else PageStyle(6, v2=False, checksums=True)
    for column in columns:
        field = column.field.with_type(widened_type(column.field.type))
        leaf = leaf_of(field, FilePart(name, f"new column {field.name}"))
        before = column.before
        at = len(footer.leaves) if before is None else column_of(footer, before, name)
        footer = inserted(footer, at, leaf, field)
        numbers = {old: new + (new >= at) for old, new in numbers.items()}
        groups = [
            _with_column(
                file=file,
                group=group,
                row_group=row_group,
                at=at,
                leaf=leaf,
                column=column,
                style=style,
                edit=part,
            )
            for row_group, (group, part) in enumerate(
                zip(groups, _parts(file, edits.columns.get(field.name)), strict=True)
            )
        ]
    groups = [replace(group, like=renumbered(group.like, numbers)) for group in groups]
    written = assemble(footer, groups, sink, options.threads)
    return finished(written, file.footer.num_rows, name, options)


def drop_column(
    source: pa.NativeFile, name: str, column: str, sink: Sink, options: Options = DEFAULTS
) -> Spliced:
    """Write the file without one of its columns; nothing is encoded."""
    file, options = SourceFile(source, name), options.for_copies(sink, [source])
    at = column_of(file.footer, column, name)
    if len(file.footer.leaves) == 1:
        raise UsageError("a file's only column can't be dropped", path=name, column=column)
    footer = removed(file.footer, at)
    numbers = {
        leaf.column: leaf.column - (leaf.column > at)
        for leaf in file.footer.leaves
        if leaf.column != at
    }
    groups = [
        GroupPlan(renumbered(group.like, numbers), [*group.chunks[:at], *group.chunks[at + 1 :]])
        for group in _copied(file, options)
    ]
    written = assemble(footer, groups, sink, options.threads)
    return finished(written, file.footer.num_rows, name, options)


def replace_column(
    source: pa.NativeFile,
    name: str,
    field: pa.Field,
    change: Callable[[pa.Array], pa.Array],
    sink: Sink,
    options: Options = DEFAULTS,
    *,
    old: str | None = None,
) -> Spliced:
    """Write the file with one column rebuilt: the one of the field's name, or of the name `old`.
    The column becomes `field`, and `change` computes each row group's new values from the old ones.

    The values are cast to the field's type; raises `UsageError` if that loses something or if their
    number differs. The new pages are made before anything is written.
    """
    file, options = SourceFile(source, name), options.for_copies(sink, [source])
    known = old or field.name
    at = column_of(file.footer, known, name)
    field = field.with_type(widened_type(field.type))
    leaf = leaf_of(field, FilePart(name, f"column {field.name}"))
    footer = inserted(removed(unbounded(file.footer, (known,)), at), at, leaf, field)
    style, _ = style_like(file, at)
    others = {other.column: other.column for other in file.footer.leaves if other.column != at}
    groups, held = [], MemoryLimits(options).held()
    for row_group, group in enumerate(_copied(file, options)):
        image = _replaced(
            file=file,
            row_group=row_group,
            column=at,
            leaf=leaf,
            style=style,
            field=field,
            change=change,
        )
        kept = replace(image, pieces=tuple(held.put(piece) for piece in image.pieces))
        makers = [*group.chunks]
        makers[at] = MakeImageFunction(partial(_unchanged, kept), 0)
        groups.append(GroupPlan(renumbered(group.like, others), makers))
    written = assemble(footer, groups, sink, options.threads)
    return finished(written, file.footer.num_rows, name, options)


def _copied(file: SourceFile, options: Options) -> list[GroupPlan]:
    return edited_groups(file, Edits(), options)


def _appended(
    leaf: Leaf, style: PageStyle, encoding: int | None, values: pa.ChunkedArray, name: str
) -> ChunkImage:
    file_part = FilePart(name, f"new rows of column {leaf.name}")
    pages = [
        values.slice(at, _ROWS_PER_PAGE).combine_chunks()
        for at in range(0, len(values), _ROWS_PER_PAGE)
    ]
    return fresh_chunk(leaf, pages, style, file_part, encoding)


_ROWS_PER_PAGE = 4096


def _with_column(
    file: SourceFile,
    group: GroupPlan,
    row_group: int,
    at: int,
    leaf: Leaf,
    column: NewColumn,
    style: PageStyle,
    edit: ColumnEdit | None,
) -> GroupPlan:
    rows = file.footer.row_groups[row_group].num_rows

    def made() -> ChunkImage:
        values = pa.repeat(constant(column), rows)
        if edit is not None and len(edit.rows):
            values = laid_over(values, edit.rows, fitted_plain(edit.values, column.field))
        arrays = cut(values, pages_like(file, row_group))
        return fresh_chunk(leaf, arrays, style, FilePart(file.name, f"new column {leaf.name}"))

    making = MakeImageFunction(made, rows)
    return GroupPlan(group.like, [*group.chunks[:at], making, *group.chunks[at:]])


def _replaced(
    file: SourceFile,
    row_group: int,
    column: int,
    leaf: Leaf,
    style: PageStyle,
    field: pa.Field,
    change: Callable[[pa.Array], pa.Array],
) -> ChunkImage:
    old = read_column(file, row_group, column)
    values = fitted_plain(change(old), field)
    if len(values) != len(old):
        raise UsageError(
            "a column has another number of new values than rows",
            path=file.name,
            column=field.name,
            rows=len(old),
            given=len(values),
        )
    arrays = cut(values, pages_like(file, row_group))
    return fresh_chunk(leaf, arrays, style, file.file_part(row_group, column))


def _unchanged(image: ChunkImage) -> ChunkImage:
    return image


def _parts(file: SourceFile, edit: ColumnEdit | None) -> Iterator[ColumnEdit | None]:
    for _, first, last in file.row_ranges():
        yield None if edit is None else edit.within(first, last)


def _bare_group(rows: int) -> RowGroup:
    return RowGroup(chunks=(), num_rows=rows, total_byte_size=0)
