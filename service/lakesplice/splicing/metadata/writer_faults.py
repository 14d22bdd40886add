"""What readers believe a writer only by its name is settled before the name is another.

A spliced file is signed by us (`assemble.py`), and readers work round the faults of writers by
name: a chunk that is copied from an old writer must not need what only that name would give it.
Column indexes are kept: readers trust those of every writer.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.metadata.bounds import numbers
from lakesplice.splicing.structures.enums import Physical
from lakesplice.splicing.structures.footer import Chunk, Leaf, Statistics
from lakesplice.splicing.structures.old_writers import writer_and_version

# Before these, byte arrays were compared as if signed (PARQUET-686), or a bound was another value
# altogether (PARQUET-251); those of parquet-cpp were wrong for another reason.
_BOUNDS_ARE_TRUE = {"parquet-mr": (1, 10, 0), "parquet-cpp": (1, 3, 0)}
_BYTES = frozenset((Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY))
_NONE = (None, None)


def believed(chunk: Chunk, leaf: Leaf, created_by: str | None, file_part: FilePart) -> Chunk:
    """Return a chunk without bounds that readers don't believe its writer; counts stay."""
    if chunk.statistics is None:
        return chunk
    statistics = Statistics.from_struct(chunk.statistics, file_part)
    writer = writer_and_version(created_by)
    if writer is None:
        if leaf.physical not in _BYTES or (statistics.min_legacy, statistics.max_legacy) == _NONE:
            return chunk
        # Of an unknown writer, bounds in the fields that say how they compare are believed.
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
    """Whether values aren't compared as signed numbers are."""
    kind = numbers(leaf)
    return leaf.physical in _BYTES or (kind is not None and kind.kind == "u")
