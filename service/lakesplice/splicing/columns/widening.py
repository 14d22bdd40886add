"""Widens the index type of dictionaries that new values may make too large for it.

Parquet has no such type, but pyarrow stores one in the file's metadata (`ARROW:schema`) and refuses
to read a column whose dictionary has more entries than the type can number.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.metadata.schemas import ARROW_SCHEMA
from lakesplice.splicing.pages.page_encoding import with_dictionary
from lakesplice.splicing.structures.enums import PageKind
from lakesplice.splicing.structures.footer import Footer
from lakesplice.splicing.structures.source import SourceFile

_DATA = frozenset((PageKind.DATA, PageKind.DATA_V2))
_WIDE_BITS = 32


def widened_for_edits(file: SourceFile, edits: Edits) -> Footer:
    """Return the file's footer with an Arrow schema that also fits the edits.

    Blocks; reads headers of dictionary pages if an edited column has a narrow index type.
    """

    def overflows(field: pa.Field) -> bool:
        edit = edits.columns.get(field.name)
        return edit is not None and _may_overflow(file, field, edit)

    return _widened(file.footer, overflows)


def widened_for_rows(footer: Footer, tables: Sequence[pa.Table]) -> Footer:
    """Return a footer with an Arrow schema that also fits row groups made of the tables."""

    def overflows(field: pa.Field) -> bool:
        counts = (pc.count_distinct(table.column(field.name)).as_py() for table in tables)
        return any(count > _countable(field.type) for count in counts)

    return _widened(footer, overflows)


def widened_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with indexes of dictionaries widened to at least 32 bits, at any depth."""
    if pa.types.is_dictionary(kind):
        if kind.index_type.bit_width >= _WIDE_BITS:
            return kind
        return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([_wide_field(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_wide_field(kind.key_field), _wide_field(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_wide_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_wide_field(kind.value_field))
    return pa.list_(_wide_field(kind.value_field)) if pa.types.is_list(kind) else kind


def _wide_field(field: pa.Field) -> pa.Field:
    return field.with_type(widened_type(field.type))


def _widened(footer: Footer, overflows: Callable[[pa.Field], bool]) -> Footer:
    pairs = footer.key_values or ()
    value = next((value for key, value in pairs if key == ARROW_SCHEMA), None)
    if value is None:
        return footer
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))
    except (pa.ArrowException, OSError, ValueError):
        return footer  # a schema that can't be read is left as it is
    wider = schema
    for at, field in enumerate(schema):
        kind = widened_type(field.type)
        if kind != field.type and overflows(field):
            wider = wider.set(at, field.with_type(kind))
    if wider is schema:
        return footer
    encoded = base64.b64encode(wider.serialize().to_pybytes())
    changed = tuple((key, encoded if key == ARROW_SCHEMA else old) for key, old in pairs)
    return replace(footer, key_values=changed)


def _may_overflow(file: SourceFile, field: pa.Field, edit: ColumnEdit) -> bool:
    if not pa.types.is_dictionary(field.type):
        return bool(len(edit.rows))  # the number of values within isn't checked
    columns = [leaf.column for leaf in file.footer.leaves if leaf.path == (field.name,)]
    countable, first = _countable(field.type), 0
    for row_group, group in enumerate(file.footer.row_groups):
        added = len(edit.within(first, first + group.num_rows).rows)
        first += group.num_rows
        if added and any(_values(file, row_group, at) + added > countable for at in columns):
            return True
    return False


def _countable(kind: pa.DataType) -> int:
    """How many entries the index type of a dictionary can number."""
    index = kind.index_type
    bits: int = index.bit_width
    return 1 << (bits - 1 if pa.types.is_signed_integer(index) else bits)


def _values(file: SourceFile, row_group: int, column: int) -> int:
    """The largest number of different values that a chunk may have."""
    chunk = file.chunk(row_group, column)
    data = {count.encoding for count in chunk.encoding_stats or () if count.kind in _DATA}
    page = file.dictionary_page(row_group, column)
    if page is None or not data or not all(map(with_dictionary, data)):
        return chunk.num_values
    return page.header.num_values
