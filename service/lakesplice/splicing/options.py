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
    a chunk with a dictionary is re-encoded. `erase`: nothing of an old value may remain, in
    dictionaries either. `verify`: check the checksums of what is copied, decode new pages that
    refer to an extended dictionary. `read_copies`: whether what is copied passes through here, so
    that it can be checked. `span_bytes`: how much is decoded at a time, but for a page that is
    more. `open_scratch`: where new pages wait for their chunk if they are many; else in memory.
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
        """Whether checksums of pages that are unchanged get checked."""
        return self.verify and self.read_copies

    def for_copies(self, sink: Sink, sources: Iterable[pa.NativeFile]) -> Options:
        """Return the options for files that are copied to a sink: inside a store, nothing of what
        is copied is read, and the store vouches for its bytes.
        """
        inside = all(sink.copies_inside(source) for source in sources)
        return replace(self, read_copies=self.read_copies and not inside)


@dataclass(frozen=True, slots=True)
class Tally:
    """What was copied and what encoded, of one chunk or of a file.

    `wholes` names the columns of which a chunk was encoded whole, with the first reason.
    """

    pages_copied: int = 0
    pages_encoded: int = 0
    bytes_copied: int = 0
    bytes_encoded: int = 0
    bloom_filters_dropped: int = 0
    wholes: Mapping[str, Reason] = field(default_factory=dict)

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """Return the sum; of a column's reasons the first."""
        sums: Counter[str] = Counter()
        wholes: dict[str, Reason] = {}
        for tally in tallies:
            for name in _COUNTS:
                sums[name] += getattr(tally, name)
            for column, reason in tally.wholes.items():
                wholes.setdefault(column, reason)
        return cls(**sums, wholes=wholes)


_COUNTS = (
    "pages_copied",
    "pages_encoded",
    "bytes_copied",
    "bytes_encoded",
    "bloom_filters_dropped",
)
