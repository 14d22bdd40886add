"""Keeps a chunk's list of its pages' encodings true. Readers that filter by dictionaries rely on
it, so if it can't be true it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakesplice.splicing.structures.chunks import Chunk, EncodingCount
from lakesplice.splicing.structures.enums import Encoding, PageKind

_VERSIONS = {PageKind.DATA: PageKind.DATA_V2, PageKind.DATA_V2: PageKind.DATA}


def of_version(chunk: Chunk, *, v2: bool) -> Chunk:
    """Return the description with all data pages counted as pages of that version.

    pyarrow writes all pages in one version, but counts all of them as version 1.
    """
    other = PageKind.DATA if v2 else PageKind.DATA_V2
    stats = chunk.encoding_stats
    if stats is None or all(one.kind != other for one in stats):
        return chunk
    counts = (replace(s, kind=_VERSIONS[other]) if s.kind == other else s for s in stats)
    return replace(chunk, encoding_stats=tuple(counts))


def with_new_pages_counted(
    chunk: Chunk, new: Sequence[Chunk], pages: int, dictionary_encoding: int | None
) -> Chunk:
    """Return the description of an edited chunk of `pages` data pages. `new` describes the
    re-encoded pages; each replaces a page of the same encoding.

    If the counts of encodings contradict what was seen, they are dropped; then readers don't rely
    on them.
    """
    seen = {(s.kind, s.encoding) for one in new for s in _of_data(one)}
    encodings = dict.fromkeys((*chunk.encodings, *sorted(encoding for _, encoding in seen)))
    if new:
        encodings[Encoding.RLE] = None  # the encoding of levels
    versions = {kind for kind, _ in seen}
    if len(versions) == 1 and len({one.kind for one in _of_data(chunk)}) == 1:
        chunk = of_version(chunk, v2=PageKind.DATA_V2 in versions)
    counts, kinds = _of_data(chunk), {(s.kind, s.encoding) for s in _of_data(chunk)}
    heads = {s.encoding for s in chunk.encoding_stats or () if s.kind == PageKind.DICTIONARY}
    agreed = seen <= kinds and sum(s.count for s in counts) == pages
    agreed = agreed and heads == (set() if dictionary_encoding is None else {dictionary_encoding})
    return replace(
        chunk,
        encodings=tuple(encodings),
        encoding_stats=chunk.encoding_stats if agreed else None,
    )


def _of_data(chunk: Chunk) -> list[EncodingCount]:
    stats = chunk.encoding_stats or ()
    return [one for one in stats if one.kind in _VERSIONS]
