"""Edits a nested column: decodes the chunks of its leaves together and encodes them whole.

pyarrow reads the leaves as one array, and their pages need not line up, so an edit page by page
would save nothing. The schema is unchanged; pyarrow must only store the same leaves at the same
levels.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.planning.rows.edits import ColumnEdit
from lakesplice.splicing.columns.new_chunks import ROWS_PER_PAGE, style_like
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.metadata.encodings import of_version
from lakesplice.splicing.options import SpliceCounts
from lakesplice.splicing.output.images import ChunkImage, dictionary_bytes
from lakesplice.splicing.pages.new_values import fitting, null_refused, refused, stored
from lakesplice.splicing.pages.page_encoding import compression, decimals_as_integers
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.enums import Codec
from lakesplice.splicing.structures.footer import MAGIC, Chunk, Footer, Leaf, RowGroup
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import Struct, WireType

_CHILDREN = 5  # a field of SchemaElement


def check_nested(source: SourceFile, row_group: int, leaves: list[Leaf], edit: ColumnEdit) -> None:
    """Raise `UnsupportedError` with a `reason` if pyarrow can't write the column again, and
    `UsageError` if the edit has nulls and the column doesn't allow them.
    """
    for leaf in leaves:
        reason = source.refusal(row_group, leaf.column)
        if reason not in (None, Reason.NESTED, Reason.NO_PAGE_INDEX):
            raise refused(source, row_group, leaf.column, reason)
        if source.chunk(row_group, leaf.column).codec in (Codec.LZ4, Codec.LZO):
            raise refused(source, row_group, leaf.column, Reason.LEGACY_LZ4)
    file_part = source.file_part(row_group, leaves[0].column)
    with decoding(file_part.within("the type")):
        schema = _schema(source, leaves)
        empty = _written(source, leaves, schema.empty_table())
    if [_layout(leaf) for leaf in empty.footer.leaves] != [_layout(leaf) for leaf in leaves]:
        raise refused(source, row_group, leaves[0].column, Reason.OTHER_LAYOUT)
    field = schema.field(0)
    if _has_forbidden_null(field, fitting(source, edit, field.type, field.name)):
        raise null_refused(source, field.name)


class NestedChunks:
    """The edited chunks of a nested column in one row group; the first thread that asks makes
    them.
    """

    def __init__(
        self, source: SourceFile, row_group: int, leaves: list[Leaf], edit: ColumnEdit
    ) -> None:
        self._source, self._row_group, self._leaves = source, row_group, leaves
        self._edit, self._lock = edit, threading.Lock()
        self._file_part = source.file_part(row_group, leaves[0].column)
        self._made: list[ChunkImage] | None = None

    def image(self, number: int) -> ChunkImage:
        """Return the chunk of the column's `number`-th leaf; raises `CorruptFileError`."""
        with self._lock:
            if self._made is None:
                self._made = self._images()
            return self._made[number]

    def _images(self) -> list[ChunkImage]:
        values = self._decoded()
        at = np.arange(len(values))
        at[self._edit.rows] = len(values) + np.arange(len(self._edit.rows))
        with decoding(self._file_part):  # all must fit into one array
            both = pa.concat_arrays([values, stored(self._edit.values, values.type)])
            new = both.take(pa.array(at))
        schema = _schema(self._source, self._leaves)
        written = _written(self._source, self._leaves, pa.table([new], schema=schema))
        if len(written.footer.row_groups) != 1:
            raise self._file_part.corrupt(
                "it has more rows than a row group is written with", rows=len(new)
            )
        return [self._image(leaf, number, written) for number, leaf in enumerate(self._leaves)]

    def _decoded(self) -> pa.Array:
        source, group = self._source, self._source.footer.row_groups[self._row_group]
        parts, chunks, at = [MAGIC], [], len(MAGIC)
        for leaf in self._leaves:
            chunk = source.chunk(self._row_group, leaf.column)
            head = dictionary_bytes(source, self._row_group, leaf.column)
            parts.append(source.read(chunk.start, chunk.compressed_size))
            chunks.append(chunk.bare(at, head))
            at += chunk.compressed_size
        footer = _footer(source, self._leaves, tuple(chunks), group.num_rows)
        values = self._read(pa.BufferReader(b"".join([*parts, footer.encode()])))
        if len(values) != group.num_rows:
            raise self._file_part.corrupt("its pages have another number of rows", rows=len(values))
        return values

    def _read(self, file: pa.NativeFile) -> pa.Array:
        with decoding(self._file_part):
            table = pq.ParquetFile(
                file, page_checksum_verification=True, arrow_extensions_enabled=False
            ).read(use_threads=False)
            return table.column(0).combine_chunks()

    def _image(self, leaf: Leaf, number: int, written: SourceFile) -> ChunkImage:
        old = self._source.chunk(self._row_group, leaf.column)
        style, _ = style_like(self._source, self._leaves[0].column)
        new = of_version(written.chunk(0, number), v2=style.v2)
        index, span = written.offset_index(0, number), new.column_index
        size = new.compressed_size
        return ChunkImage(
            chunk=replace(
                old.valueless(),
                codec=new.codec,
                encodings=new.encodings,
                encoding_stats=new.encoding_stats,
                num_values=new.num_values,
                compressed_size=size,
                uncompressed_size=new.uncompressed_size,
                statistics=new.statistics,
            ),
            pieces=(written.read(new.start, size),),
            dictionary_bytes=dictionary_bytes(written, 0, number),
            index=None if index is None else index.shifted(-new.start),
            column_index=None if span is None else written.read(span.offset, span.length),
            bloom=None,
            counts=SpliceCounts(
                pages_encoded=0 if index is None else len(index),
                bytes_encoded=size,
                bloom_filters_dropped=int(bool(old.bloom_offset)),
                wholes={leaf.name: Reason.NESTED},
            ),
        )


def _has_forbidden_null(field: pa.Field, values: pa.Array) -> bool:
    """Whether the values have a null, at any depth, where their type doesn't allow one."""
    if values.null_count and not field.nullable:
        return True
    kind, values = field.type, values.drop_null()
    if pa.types.is_struct(kind):
        return any(
            _has_forbidden_null(kind.field(n), part) for n, part in enumerate(values.flatten())
        )
    if pa.types.is_map(kind):
        return _has_forbidden_null(kind.item_field, values.items)
    return pa.types.is_nested(kind) and _has_forbidden_null(kind.value_field, values.flatten())


def _schema(source: SourceFile, leaves: list[Leaf]) -> pa.Schema:
    """The column's schema as pyarrow reads it, nullability included."""
    return pq.read_schema(pa.BufferReader(MAGIC + _footer(source, leaves, (), 0).encode()))


def _written(source: SourceFile, leaves: list[Leaf], table: pa.Table) -> SourceFile:
    style, _ = style_like(source, leaves[0].column)
    buffer = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        buffer,
        table.schema,
        version="2.6",
        compression=compression(style.codec),
        store_decimal_as_integer=decimals_as_integers(leaves),
        store_schema=False,
        write_page_index=True,
        write_page_checksum=style.checksums,
        data_page_version="2.0" if style.v2 else "1.0",
        max_rows_per_page=ROWS_PER_PAGE,
    )
    if table.num_rows:
        writer.write_table(table, row_group_size=1 << 30)
    writer.close()
    return SourceFile(pa.BufferReader(buffer.getvalue()), f"{source.name}, new pages")


def _footer(source: SourceFile, leaves: list[Leaf], chunks: tuple[Chunk, ...], rows: int) -> Footer:
    """The footer of a file that has only this column, with the column's schema unchanged."""
    root = Struct({4: (WireType.BINARY, b"schema"), _CHILDREN: (WireType.I32, 1)})
    group = RowGroup(chunks=chunks, num_rows=rows, total_byte_size=1)
    return Footer(
        version=2,
        schema=(root, *_subtree(source.footer.schema, leaves[0].column)),
        num_rows=rows,
        row_groups=(group,) if chunks else (),
        created_by=source.footer.created_by,
    )


def _subtree(schema: tuple[Struct, ...], first_leaf: int) -> tuple[Struct, ...]:
    """The elements of the top-level column whose first leaf has that number."""
    at, leaf = 1, 0
    while at < len(schema):
        end, left, found = at, 1, 0
        while left:
            children = schema[end].get(_CHILDREN) or 0
            assert isinstance(children, int)
            left += children - 1
            found += not children
            end += 1
        if leaf == first_leaf:
            return schema[at:end]
        at, leaf = end, leaf + found
    raise AssertionError(first_leaf)


def _layout(leaf: Leaf) -> tuple[object, ...]:
    return (leaf.physical, leaf.type_length, leaf.max_definition, leaf.max_repetition)
