"""Reshape: base files are rewritten for a schema whose columns changed type or name, or got a
default.

Delta readers of the first reader version find columns by name, expect one type per column in all
files, and read null if a file lacks a column. So each file that has a column under another type or
name, or lacks a column that has a value in every row, gets a next version in the commit that
changes the schema. The pages of that column are rebuilt, all others are copied. Addresses don't
change. Deltas stay as they are, since each names the schema version that it was written in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.parquet import WrittenBase
from lakesplice.model.address import BaseFile
from lakesplice.model.column_values import fill_value, promoted
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import POSITION_FILE, ROW_DIGEST
from lakesplice.model.schema import Column, TableSchema
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.operations import NewColumn, add_columns, replace_column
from lakesplice.splicing.output.copying import OpenSink, Sink, StreamSink
from lakesplice.splicing.splice import Spliced
from lakesplice.table.files.base_files import create_base, open_base
from lakesplice.table.files.page_rewriter import stats_of
from lakesplice.table.files.plain_rewrite import PlainRewriter
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store


def reshape(
    store: Store,
    manifest: Manifest,
    schema: TableSchema,
    entropy: Entropy,
    open_sink: OpenSink = StreamSink,
) -> dict[str, NewFile]:
    """Write the next version of each base file that doesn't fit `schema`, which is later than the
    manifest's; return them by the path that they replace.

    A file doesn't fit if it has a column under another type or name, or lacks one with a fill, or a
    copy of a column that it has or gets. One column of a file is in memory at a time, or those with
    copies.
    Blocks; errors as `open_base` and `create_base`. After an error, the vacuum deletes what was
    written.
    """
    retyped = {
        before.name: field
        for before, field in zip(manifest.schema.user_fields, schema.user_fields, strict=False)
        if (before.name, before.type) != (field.name, field.type)
    }
    filled = schema.filled_since(manifest.schema.version)
    copied = schema.copied_since(manifest.schema.version)
    replaced = {}
    for path, file in manifest.files.items() if retyped or filled or copied else ():
        with open_base(store, file, manifest.schema) as reader:
            held = {name: field for name, field in retyped.items() if name in reader.names}
            since = schema.names_since(manifest.schema)
            present = {since.get(name, name) for name in reader.names}
            missing = [field for field in schema.user_fields if field.name not in present]
        present |= {column.name for column in filled}
        copies = {name: of for name, of in copied.items() if of in present}
        if held or filled or copies:
            added = tuple(missing) if filled or copies else ()
            change = _Change(file, schema, held, added, _copies(store, file, schema, copies))
            replaced[path] = _reshaped(store, change, entropy, open_sink)
    return replaced


@dataclass(frozen=True)
class _Change:
    """A base file and its changes: the columns that change their type or name, by their names in
    the file, and those that are added; `copies` has the values of those that are copies.
    """

    file: BaseFile
    schema: TableSchema
    retyped: Mapping[str, pa.Field]
    added: tuple[pa.Field, ...]
    copies: Mapping[str, pa.Array]

    @property
    def edits(self) -> Edits:
        """Row digests that don't include a column's value are removed, except for copies."""
        if not self.added:
            return Edits()
        rows = np.arange(self.file.rows)
        edits = {name: ColumnEdit(rows, values) for name, values in self.copies.items()}
        if any(column.fill is not None for column in self._new):
            edits[ROW_DIGEST] = ColumnEdit(rows, pa.nulls(self.file.rows, pa.int64()))
        return Edits(rows, edits)

    @property
    def _new(self) -> list[Column]:
        added = {field.name for field in self.added}
        return [column for column in self.schema.columns if column.name in added]

    def spliced(self, source: pa.NativeFile, to: Sink) -> Spliced:
        """Write the file, copying the pages of its other columns."""
        if not self.retyped:
            fills = {c.name: c for c in self.schema.columns if c.fill is not None}
            new = [
                NewColumn(
                    field,
                    fill_value(fills[field.name].fill or "", fills[field.name].type)
                    if field.name in fills
                    else None,
                    POSITION_FILE,
                )
                for field in self.added
            ]
            return add_columns(source, self.file.path, new, self.edits, to)
        ((old, field),) = self.retyped.items()
        change = partial(promoted, to=field.type)
        return replace_column(source, self.file.path, field, change, to, old=old)


def _copies(
    store: Store, file: BaseFile, schema: TableSchema, copies: Mapping[str, str]
) -> dict[str, pa.Array]:
    """Return the values of columns that were copied, by the copies' names."""
    if not copies:
        return {}
    with open_base(store, file, schema) as reader:
        names = [*dict.fromkeys(copies.values())]
        held = pa.concat_tables(reader.read_each(names))
    return {name: held.column(of).combine_chunks() for name, of in copies.items()}


def _reshaped(store: Store, change: _Change, entropy: Entropy, open_sink: OpenSink) -> NewFile:
    file, schema = change.file, change.schema
    splices = file.splices + 1

    def spliced(sink: pa.NativeFile) -> WrittenBase:
        done = change.spliced(source, open_sink(sink))
        return WrittenBase(done.rows, stats_of(done, schema), done.pages_end)

    def plain(sink: pa.NativeFile) -> WrittenBase:
        return PlainRewriter().rewrite(source, file, change.edits, schema, sink)

    group, partition = file.segments[0].group, file.partition
    folder = partition_folder(schema.partitioned_by, partition)
    alone = len(change.retyped) == (0 if change.added else 1)
    with store.open(file.path) as source:
        path = base_path(group, splices, entropy, folder)
        try:
            write = spliced if alone else plain
            new = create_base(
                store, path, file.segments, write, splices=splices, partition=partition
            )
        except UnsupportedError:
            # The files that were written are deleted; a name is used only once.
            path = base_path(group, splices, entropy, folder)
            new = create_base(
                store, path, file.segments, plain, splices=splices, partition=partition
            )
    _verify(store, file, new.base, [*change.retyped.values(), *change.added], schema)
    return new


def _verify(
    store: Store, old: BaseFile, new: BaseFile, fields: list[pa.Field], schema: TableSchema
) -> None:
    """Read the changed columns back: each row must have the values that it had."""
    names = [field.name for field in fields]
    with open_base(store, old, schema) as before, open_base(store, new, schema) as after:
        meant = pa.concat_tables([before.read(at, names) for at in range(len(before.row_groups))])
        found = pa.concat_tables([after.read(at, names) for at in range(len(after.row_groups))])
    if not found.equals(meant):
        raise CorruptFileError(
            "a file in another layout does not hold its rows; this is a bug in Lakesplice",
            path=new.path,
            columns=names,
        )
