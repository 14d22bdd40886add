"""The options of a splice, and the summary of what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakesplice.splicing.faults import Reason
from lakesplice.splicing.output.copying import Scratch, Sink

SPAN_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a splice.

    `threads`: columns encoded at a time. `page_share_max`: the share of a chunk's pages above which
    a chunk with a dictionary is re-encoded. `erase`: no old value may remain, not even in a
    dictionary. `verify`: verify the checksums of copied pages, and decode new pages that refer to
    an extended dictionary. `read_copies`: whether copied bytes pass through this process, so that
    they can be checked. `span_bytes`: how many bytes are decoded at a time (a larger page is
    decoded whole). `open_scratch`: opens the file in which many new pages wait for their chunk;
    without it they wait in memory.
    """

    threads: int = 1
    page_share_max: float = 0.8
    erase: bool = False
    verify: bool = True
    read_copies: bool = True
    span_bytes: int = SPAN_BYTES
    open_scratch: Callable[[], Scratch] | None = None

    @property
    def verify_copies(self) -> bool:
        """Whether the checksums of unchanged pages are verified."""
        return self.verify and self.read_copies

    def for_copies(self, sink: Sink, sources: Iterable[pa.NativeFile]) -> Options:
        """Return the options for copying these files to a sink. If the store copies by itself,
        copied bytes are not read here; the store is responsible for them.
        """
        inside = all(sink.copies_inside(source) for source in sources)
        return replace(self, read_copies=self.read_copies and not inside)


@dataclass(frozen=True, slots=True)
class SpliceCounts:
    """Counts of what was copied and what was encoded, for a chunk or a file.

    `wholes` names the columns of which a chunk was encoded whole, with the first reason.
    """

    pages_copied: int = 0
    pages_encoded: int = 0
    bytes_copied: int = 0
    bytes_encoded: int = 0
    bloom_filters_dropped: int = 0
    wholes: Mapping[str, Reason] = field(default_factory=dict)

    @classmethod
    def total(cls, several: Iterable[SpliceCounts]) -> SpliceCounts:
        """Return the sum; each column keeps its first reason."""
        sums: Counter[str] = Counter()
        wholes: dict[str, Reason] = {}
        for counts in several:
            for name in _COUNTS:
                sums[name] += getattr(counts, name)
            for column, reason in counts.wholes.items():
                wholes.setdefault(column, reason)
        return cls(**sums, wholes=wholes)


_COUNTS = (
    "pages_copied",
    "pages_encoded",
    "bytes_copied",
    "bytes_encoded",
    "bloom_filters_dropped",
)
