"""What a chunk's description says of its pages' encodings: readers that filter by dictionaries go
by it, so it is true or not there.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.splicing.chunks import Chunk
from lakesplice.splicing.enums import PageKind

_VERSIONS = {PageKind.DATA: PageKind.DATA_V2, PageKind.DATA_V2: PageKind.DATA}


def of_version(chunk: Chunk, *, v2: bool) -> Chunk:
    """Return the description with all data pages counted as of that version.

    pyarrow, which writes one version throughout, counts all as of the first.
    """
    other = PageKind.DATA if v2 else PageKind.DATA_V2
    stats = chunk.encoding_stats
    if stats is None or all(one.kind != other for one in stats):
        return chunk
    counts = (replace(s, kind=_VERSIONS[other]) if s.kind == other else s for s in stats)
    return replace(chunk, encoding_stats=tuple(counts))
