"""Runs of the row index: immutable, sorted files of key hash -> row address.

`layout` has the file's bytes (header, entries, fences, groups, trailer), `encode` makes them from
entries in order, in one pass, and `run` opens them as validated views without a copy.
"""

from lakesplice.formats.rowindex.encode import Entries, RunEncoder, encode_run
from lakesplice.formats.rowindex.run import Run

__all__ = ["Entries", "Run", "RunEncoder", "encode_run"]
