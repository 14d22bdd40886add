"""A Parquet file whose one chunk has pages of several kinds, as a careless writer mixes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.splicing.structures.chunks import ByteRange, EncodingCount
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import opened, parquet

ROWS_PER_PAGE = 100


@dataclass(frozen=True)
class Kind:
    """Whether a page refers to the dictionary, and its version."""

    dictionary: bool = True
    version: int = 1


WITH, PLAIN = Kind(), Kind(dictionary=False)
WITH_V2, PLAIN_V2 = Kind(version=2), Kind(dictionary=False, version=2)


def mixed(values: pa.Array, kinds: Sequence[Kind]) -> bytes:
    """A file of the column `x`; its pages hold ROWS_PER_PAGE values each and are of the kinds."""
    table = pa.table({"x": values})
    assert len(values) == ROWS_PER_PAGE * len(kinds)
    made = {kind: SourceFile(opened(_written(table, kind)), "made") for kind in {WITH, *kinds}}
    like = made[WITH]
    chunk = like.chunk(0, 0)
    first, *_ = like.pages(0, 0)
    parts = [like.read(first.offset, first.end - first.offset).to_pybytes()]
    counts = Counter([(int(first.header.kind), first.header.encoding)])
    uncompressed = first.header_size + first.header.uncompressed_size
    for number, kind in enumerate(kinds):
        source = made[kind]
        page = [page for page in source.pages(0, 0) if page.header.is_data][number]
        parts.append(source.read(page.offset, page.end - page.offset).to_pybytes())
        counts[int(page.header.kind), page.header.encoding] += 1
        uncompressed += page.header_size + page.header.uncompressed_size
    sizes = np.array([len(part) for part in parts], np.int64)
    offsets = len(MAGIC) + np.cumsum(sizes) - sizes
    rows = np.arange(len(kinds)) * ROWS_PER_PAGE
    index = OffsetIndex(offsets[1:], sizes[1:], rows).encode()
    bounds = like.column_index(0, 0)
    assert bounds is not None
    encoded_bounds = bounds.encode()
    end = len(MAGIC) + int(sizes.sum())
    changed = replace(
        chunk,
        encodings=tuple(sorted({encoding for _, encoding in counts} | {3})),
        encoding_stats=tuple(EncodingCount(*key, count) for key, count in sorted(counts.items())),
        uncompressed_size=uncompressed,
        compressed_size=int(sizes.sum()),
        data_page_offset=int(offsets[1]),
        dictionary_page_offset=len(MAGIC),
        column_index=ByteRange(end, len(encoded_bounds)),
        offset_index=ByteRange(end + len(encoded_bounds), len(index)),
    )
    group = replace(
        like.footer.row_groups[0],
        chunks=(changed,),
        total_byte_size=uncompressed,
        total_compressed_size=changed.compressed_size,
    )
    footer = replace(like.footer, row_groups=(group,))
    return MAGIC + b"".join(parts) + encoded_bounds + index + footer.encode()


def _written(table: pa.Table, kind: Kind) -> bytes:
    return parquet(
        table,
        row_group_size=len(table),
        max_rows_per_page=ROWS_PER_PAGE,
        write_batch_size=ROWS_PER_PAGE,
        use_dictionary=kind.dictionary,
        data_page_version=f"{kind.version}.0",
    )
