"""Intents: what a commit is to change, and what it was planned on.

An intent states as values what it relies on. `commit.py` checks these on the version on which the
intent is committed, however many other commits came between. Intents must not know how they are
checked (`preconditions`) or what they change (`transitions`).
"""

from __future__ import annotations

from lakesplice.table.protocol.intents.erasure import EndVersions, Erase, Rewritten
from lakesplice.table.protocol.intents.rows import Backfill, Ingest, Replay, Upsert
from lakesplice.table.protocol.intents.tables import (
    Adopt,
    ChangePins,
    Create,
    Evolve,
    Note,
    Redirect,
    ReplaceTable,
    Restore,
    SetChangeFeed,
    SetConstraints,
    Swap,
)
from lakesplice.table.protocol.intents.upkeep import (
    Cluster,
    Expire,
    FileMerge,
    IndexMerge,
    Purge,
    Splice,
    Sweep,
)

__all__ = [
    "Adopt",
    "Backfill",
    "ChangePins",
    "Cluster",
    "Create",
    "EndVersions",
    "Erase",
    "Evolve",
    "Expire",
    "FileMerge",
    "IndexMerge",
    "Ingest",
    "Intent",
    "Note",
    "Purge",
    "Redirect",
    "ReplaceTable",
    "Replay",
    "Restore",
    "Rewritten",
    "SetChangeFeed",
    "SetConstraints",
    "Splice",
    "Swap",
    "Sweep",
    "Upsert",
]

Intent = (
    Create
    | Adopt
    | Ingest
    | Upsert
    | Splice
    | FileMerge
    | Purge
    | Cluster
    | IndexMerge
    | Evolve
    | Redirect
    | Replay
    | SetChangeFeed
    | SetConstraints
    | Expire
    | ChangePins
    | Note
    | Sweep
    | Restore
    | ReplaceTable
    | Backfill
    | Swap
    | Erase
    | EndVersions
)
