"""Finds pages in which every value is the same, from the column index, without reading the
pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Mask
from lakesplice.splicing.columns.chunk_statistics import bounds_are_whole
from lakesplice.splicing.metadata.bounds import numbers
from lakesplice.splicing.pages.page_decoding import decode_dictionary
from lakesplice.splicing.structures.checksums import is_ours
from lakesplice.splicing.structures.enums import Codec, Encoding, PageKind, PhysicalType
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.source import SourceFile


@dataclass(frozen=True, eq=False, slots=True)
class ConstantPages:
    """Which pages of a chunk hold one value only (null counts as a value), and which value. Where a
    page may hold several values, the value here is null.
    """

    known: Mask
    values: pa.Array


def constant_pages(source: SourceFile, row_group: int, column: int) -> ConstantPages | None:
    """Find a flat chunk's pages of one value by its column index; None if it can't be trusted.

    Only our own files are believed: other writers' bounds may have been cut. Bounds don't show
    whether a page has a NaN, nor reliably the sign of a zero. Reads no page; raises
    `CorruptFileError`.
    """
    leaf = source.leaf(column)
    if not _is_bounded(leaf) or not is_ours(source) or not bounds_are_whole(source):
        return None
    index = source.column_index(row_group, column)
    if index is None or index.null_counts is None:
        return None
    bounds = zip(index.min_values, index.max_values, strict=True)
    same = np.array([low == high for low, high in bounds], np.bool_)
    one = same & (index.null_counts == 0) & ~index.null_pages
    values = _decoded(
        source, row_group, column, [index.min_values[at] for at in np.flatnonzero(one)]
    )
    places = pa.array(np.maximum(np.cumsum(one) - 1, 0), mask=~one)
    return ConstantPages(one | index.null_pages, values.take(places))


def _is_bounded(leaf: Leaf) -> bool:
    kind = numbers(leaf)
    return leaf.physical != PhysicalType.INT96 and (kind is None or kind.kind != "f")


def _decoded(source: SourceFile, row_group: int, column: int, bounds: Sequence[bytes]) -> pa.Array:
    """Decode bounds: they are encoded like entries of a dictionary, but texts lack their
    lengths.
    """
    leaf = source.leaf(column)
    if leaf.physical == PhysicalType.BYTE_ARRAY:
        bounds = [len(one).to_bytes(4, "little") + one for one in bounds]
    if leaf.physical == PhysicalType.BOOLEAN:
        flags = np.frombuffer(b"".join(bounds), np.bool_)
        bounds, count = [np.packbits(flags, bitorder="little").tobytes()], len(flags)
    else:
        count = len(bounds)
    body = b"".join(bounds)
    header = PageHeader(
        kind=PageKind.DICTIONARY,
        uncompressed_size=len(body),
        compressed_size=len(body),
        num_values=count,
        encoding=Encoding.PLAIN,
    )
    page = pa.py_buffer(header.encode() + body)
    plain = replace(source.chunk(row_group, column), codec=int(Codec.UNCOMPRESSED))
    file_part = source.file_part(row_group, column).within("the column index")
    return decode_dictionary(leaf, plain, page, source.footer.created_by, file_part)
