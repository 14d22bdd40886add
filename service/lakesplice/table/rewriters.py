"""Which rewriter compaction uses: the one place that says so."""

from __future__ import annotations

from collections.abc import Callable

from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import OpenSink, Scratch, StreamSink
from lakesplice.table.page_rewriter import PageRewriter
from lakesplice.table.ports import Rewriter


def best_rewriter(
    open_sink: OpenSink = StreamSink,
    threads: int = 1,
    open_scratch: Callable[[], Scratch] | None = None,
) -> Rewriter:
    """Return the fastest rewriter there is; all write files that hold the same.

    `open_sink` is the store's way to copy bytes; columns are encoded by `threads` threads; new
    pages that are too many to be held in memory wait in what `open_scratch` returns.
    """
    return PageRewriter(Options(threads=threads, open_scratch=open_scratch), open_sink)
