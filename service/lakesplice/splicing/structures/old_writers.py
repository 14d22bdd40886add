"""Old writers' known mistakes: what a file's `created_by` says about it, and what is put right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lakesplice.splicing.structures.chunks import Chunk, RowGroup

# Until then a page's first prefix came from the page before it (PARQUET-246).
_PAGES_STAND_ALONE = (1, 8, 2)
# Until then a chunk's sizes lacked its dictionary's header (PARQUET-816). Other readers look a
# hundred bytes further too.
_SIZES_ARE_TRUE = (1, 2, 9)
_HEADER_BYTES_MAX = 100
_COMPRESSION_IS_SAID = (2, 0, 0)
# "name version 1.2.3 (build x)", as parquet-java takes it apart.
_SIGNATURE = r"(.*?)\s+version\s*([^(]*?)\s*(?:\(\s*build\s*[^)]*?\s*\))?"


def writer_and_version(created_by: str | None) -> tuple[str, tuple[int, ...]] | None:
    """Return a writer's name and version, empty if it is none; None where readers find no name."""
    found = re.fullmatch(_SIGNATURE, created_by or "")
    if found is None:
        return None
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", found[2])
    return found[1], tuple(int(part) for part in numbers.groups()) if numbers else ()


def pages_need_their_predecessor(created_by: str | None) -> bool:
    """Return whether DELTA_BYTE_ARRAY pages can't be read one by one.

    Nameless files count as old, since parquet-mr didn't sign in those days (PARQUET-297).
    """
    return not created_by or _older(created_by, _PAGES_STAND_ALONE)


def compression_is_denied(created_by: str | None) -> bool:
    """Return whether pages of version 2 say of themselves that they aren't compressed, though they
    are (ARROW-17100).
    """
    writer = writer_and_version(created_by)
    return writer is not None and writer[0] == "parquet-cpp" and writer[1] < _COMPRESSION_IS_SAID


def with_true_sizes(
    row_groups: tuple[RowGroup, ...], created_by: str | None, limit: int
) -> tuple[RowGroup, ...]:
    """Return the row groups with chunks as long as they are; `limit` is where the footer starts.

    A chunk that ends a few bytes before the next one lacks a header's size: nothing else lies
    between chunks.
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
