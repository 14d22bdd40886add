"""Known mistakes of old writers: recognised by the file's `created_by`, and corrected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lakesplice.splicing.structures.chunks import Chunk, RowGroup

# Earlier versions took a page's first prefix from the previous page (PARQUET-246).
_PAGES_STAND_ALONE = (1, 8, 2)
# Earlier versions left the dictionary's header out of a chunk's size (PARQUET-816). Other readers
# also read a hundred bytes more.
_SIZES_ARE_TRUE = (1, 2, 9)
_HEADER_BYTES_MAX = 100
_COMPRESSION_IS_SAID = (2, 0, 0)
# "name version 1.2.3 (build x)", as parquet-java parses it.
_SIGNATURE = r"(.*?)\s+version\s*([^(]*?)\s*(?:\(\s*build\s*[^)]*?\s*\))?"


def writer_and_version(created_by: str | None) -> tuple[str, tuple[int, ...]] | None:
    """Return a writer's name and version; the version is empty if there is none. None if readers
    find no name.
    """
    found = re.fullmatch(_SIGNATURE, created_by or "")
    if found is None:
        return None
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", found[2])
    return found[1], tuple(int(part) for part in numbers.groups()) if numbers else ()


def pages_need_their_predecessor(created_by: str | None) -> bool:
    """Return whether DELTA_BYTE_ARRAY pages can't be read one by one.

    Files without a name count as old, since early versions of parquet-mr wrote no name
    (PARQUET-297).
    """
    return not created_by or _older(created_by, _PAGES_STAND_ALONE)


def compression_is_denied(created_by: str | None) -> bool:
    """Return whether headers of version 2 pages wrongly say that the pages aren't compressed
    (ARROW-17100).
    """
    writer = writer_and_version(created_by)
    return writer is not None and writer[0] == "parquet-cpp" and writer[1] < _COMPRESSION_IS_SAID


def with_true_sizes(
    row_groups: tuple[RowGroup, ...], created_by: str | None, limit: int
) -> tuple[RowGroup, ...]:
    """Return the row groups with the true sizes of their chunks; `limit` is where the footer
    starts.

    If a chunk ends a few bytes before the next one, its size lacks that of a header: there is
    nothing else between chunks.
    """
    if not _older(created_by, _SIZES_ARE_TRUE):
        return row_groups
    chunks = sorted(
        (chunk for group in row_groups for chunk in group.chunks), key=lambda chunk: chunk.start
    )
    gaps = {chunk.start: gap for chunk, gap in _gaps(chunks, limit) if 0 < gap <= _HEADER_BYTES_MAX}
    return tuple(
        replace(
            group, chunks=tuple(_longer(chunk, gaps.get(chunk.start, 0)) for chunk in group.chunks)
        )
        for group in row_groups
    )


def _gaps(chunks: list[Chunk], limit: int) -> Iterator[tuple[Chunk, int]]:
    for chunk, following in pairwise(chunks):
        yield chunk, following.start - chunk.end
    if chunks:
        yield chunks[-1], limit - chunks[-1].end


def _longer(chunk: Chunk, size: int) -> Chunk:
    if not size:
        return chunk
    return replace(
        chunk,
        compressed_size=chunk.compressed_size + size,
        uncompressed_size=chunk.uncompressed_size + size,
    )


def _older(created_by: str | None, version: tuple[int, ...]) -> bool:
    found = re.match(r"parquet-mr\b(?: version (\d+)\.(\d+)\.(\d+))?", created_by or "")
    if found is None:
        return False
    return tuple(int(part) for part in found.groups() if part is not None) < version
