"""Which rewriter compaction uses: the one place that says so."""

from __future__ import annotations

from lakesplice.table.ports import Rewriter
from lakesplice.table.rewrite import PlainRewriter


def best_rewriter() -> Rewriter:
    """Return the fastest rewriter there is; all write files that hold the same."""
    return PlainRewriter()
