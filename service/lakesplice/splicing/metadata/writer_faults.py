"""Removes statistics that readers ignore only because of the writer's name.

Readers work around the faults of old writers by the name in the footer. A spliced file has our name
(`assemble.py`), so a chunk that is copied from an old writer must not keep statistics that readers
would now trust. Column indexes are kept: readers trust those of every writer.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.metadata.bounds import numbers
from lakesplice.splicing.structures.enums import PhysicalType
from lakesplice.splicing.structures.footer import Chunk, Leaf, Statistics
from lakesplice.splicing.structures.old_writers import writer_and_version

# Earlier versions compared byte arrays as if signed (PARQUET-686), or wrote a wrong bound
# (PARQUET-251); parquet-cpp's bounds were wrong for another reason.
_BOUNDS_ARE_TRUE = {"parquet-mr": (1, 10, 0), "parquet-cpp": (1, 3, 0)}
_BYTES = frozenset((PhysicalType.BYTE_ARRAY, PhysicalType.FIXED_LEN_BYTE_ARRAY))
_NONE = (None, None)


def without_ignored_bounds(
    chunk: Chunk, leaf: Leaf, created_by: str | None, file_part: FilePart
) -> Chunk:
    """Return a chunk without bounds that readers ignore from this writer; counts are kept."""
    if chunk.statistics is None:
        return chunk
    statistics = Statistics.from_struct(chunk.statistics, file_part)
    writer = writer_and_version(created_by)
    if writer is None:
        if leaf.physical not in _BYTES or (statistics.min_legacy, statistics.max_legacy) == _NONE:
            return chunk
        # From an unknown writer, readers trust the bounds in the fields with a defined order.
        kept = replace(statistics, min_legacy=None, max_legacy=None)
        return replace(chunk, statistics=kept.to_struct())
    name, version = writer
    if not _compares_otherwise(leaf) or version >= _BOUNDS_ARE_TRUE.get(name, version):
        return chunk
    kept = replace(
        statistics,
        min_value=None,
        max_value=None,
        min_exact=None,
        max_exact=None,
        min_legacy=None,
        max_legacy=None,
    )
    return replace(chunk, statistics=kept.to_struct())


def _compares_otherwise(leaf: Leaf) -> bool:
    """Whether the column's values are compared otherwise than as signed numbers."""
    kind = numbers(leaf)
    return leaf.physical in _BYTES or (kind is not None and kind.kind == "u")
