"""Casts the caller's rows and columns to a file's types, or refuses them, before anything is
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.fitted_values import fitted, refuse_rebased
from lakesplice.splicing.pages.new_values import stored
from lakesplice.splicing.pages.page_decoding import read_type
from lakesplice.splicing.pages.page_encoding import writable
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.whole_rewrite import arrow_schema


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add: its field, the value of all rows (None: null), and the column before which
    it is inserted (None: after the last).
    """

    field: pa.Field
    value: pa.Scalar | None = None
    before: str | None = None


def rows_like(file: SourceFile, tables: Sequence[pa.Table]) -> list[list[pa.ChunkedArray]]:
    """Return each table's columns in the order of the file's leaves, which are flat, in the types
    that their pages decode to.

    Raises `UsageError` if columns differ or values don't fit, and `UnsupportedError` if a column
    can't be written in its layout.
    """
    schema = arrow_schema(file.source, file.name)
    kinds = [_type_of(file, leaf) for leaf in file.footer.leaves]
    found = []
    for table in tables:
        _check_names(schema, table, file.name)
        columns = []
        for leaf, kind in zip(file.footer.leaves, kinds, strict=True):
            field = schema.field(leaf.path[0])
            values = fitted(table.column(field.name), field)
            for chunk in values.chunks:
                refuse_rebased(chunk, schema.metadata or {}, field.name, file.name)
            columns.append(
                pa.chunked_array([stored(chunk, kind) for chunk in values.chunks], type=kind)
            )
        found.append(columns)
    return found


def check_new(file: SourceFile, columns: Sequence[NewColumn], edits: Edits) -> None:
    """Raise `UsageError` if new columns, or edits of them, aren't valid for the file."""
    names = [leaf.path[0] for leaf in file.footer.leaves]
    for column in columns:
        field, edit = column.field, edits.columns.get(column.field.name)
        if field.name in names:
            raise UsageError("the file has a column of that name", path=file.name, name=field.name)
        names.append(field.name)
        if column.value is not None:
            constant(column)
        elif not field.nullable and file.footer.num_rows:
            raise UsageError(
                "a new column that doesn't allow null needs a value",
                path=file.name,
                column=field.name,
            )
        if edit is not None:
            fitted(edit.values, field)
            if len(edit.rows) and not 0 <= edit.rows[0] <= edit.rows[-1] < file.footer.num_rows:
                raise UsageError("the file has no such row", path=file.name, column=field.name)


def constant(column: NewColumn) -> pa.Scalar:
    """Return the value of all rows in its storage type; raises `UsageError` if it doesn't fit."""
    field = column.field
    if column.value is None:
        return pa.scalar(None, plain(field.type))
    return fitted_plain(pa.repeat(column.value, 1), field)[0]


def fitted_plain(values: Any, field: pa.Field) -> pa.Array:
    """Return the values as one array in the field's storage type; raises `UsageError` if one
    doesn't fit.
    """
    found = fitted(values, field)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return stored(found, plain(field.type))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the storage type: without a dictionary and without an extension type's name."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _type_of(file: SourceFile, leaf: Leaf) -> pa.DataType:
    file_part = FilePart(file.name, f"new rows of column {leaf.name}")
    created_by = file.footer.created_by
    if not writable(leaf, created_by, file_part):
        raise UnsupportedError(
            "a column's type can't be written in the file's layout; rewrite the file",
            path=file.name,
            place=file_part.part,
            reason=str(Reason.OTHER_LAYOUT),
        )
    return read_type(leaf, created_by, file_part)


def _check_names(schema: pa.Schema, table: pa.Table, name: str) -> None:
    if sorted(table.column_names) == sorted(set(schema.names)):
        return
    raise UsageError(
        "rows to append need the file's columns, each once",
        path=name,
        missing=sorted(set(schema.names) - set(table.column_names)),
        unknown=sorted(set(table.column_names) - set(schema.names)),
    )
