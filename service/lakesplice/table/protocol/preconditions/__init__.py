"""Preconditions: what must still hold for each kind of commit, whatever was committed meanwhile.

Offers `PRECONDITIONS`, the table of docs/format.md, "Commits". Each is a function of its own, so
that a test can leave one out. Preconditions must not know what the commit changes.
"""

from __future__ import annotations

from lakesplice.table.protocol.preconditions.by_intent import PRECONDITIONS

__all__ = ["PRECONDITIONS"]
