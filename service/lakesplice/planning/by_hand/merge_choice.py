"""Decides whether an upsert's changes go into base files at once, or wait in deltas.

A delta costs the writing and the reading of its changes; it pays off if one compaction merges
several. If changes are close together, merging each upsert at once costs no more.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.model.arrays import RowAddresses

# Changes per row of the touched pages. Measured with whole rows of 23 columns, of which three
# change: from here on two upserts that are merged at once take no longer than two that wait and are
# compacted together (docs/decisions/0040-only-new-values-are-encoded.md).
DENSITY_MIN = 0.25
# Fewer changes cost so little in a delta that copying a whole file for them isn't worth it.
CHANGES_MIN = 1 << 15


class MergeReason(StrEnum):
    """Why an upsert was merged at once; the history has these words."""

    ASKED = "asked"
    DENSE = "dense"


def merge_reason(asked: bool | None, addresses: RowAddresses) -> MergeReason | None:
    """Return why changes at these addresses are merged at once; None if they are to wait.

    `asked` is the caller's wish, None if their number and density decide.
    """
    if asked is not None:
        return MergeReason.ASKED if asked else None
    if len(addresses.row) < CHANGES_MIN:
        return None
    dense = len(addresses.row) >= DENSITY_MIN * _touched_pages(addresses) * ROWS_PER_PAGE
    return MergeReason.DENSE if dense else None


def _touched_pages(addresses: RowAddresses) -> int:
    _, number = np.unique(addresses.group, return_inverse=True)
    page = addresses.row // ROWS_PER_PAGE
    return len(np.unique(number * (int(page.max()) + 1) + page))
