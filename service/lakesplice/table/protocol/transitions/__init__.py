"""Transitions: how each intent changes the manifest and the log once its preconditions hold.

Offers `transition`, which has no side effects, and the operations' names in the history.
Transitions must not know how the result is written.
"""

from __future__ import annotations

from lakesplice.table.protocol.transitions.dispatch import transition
from lakesplice.table.protocol.transitions.parts import CommitPoint, Transition
from lakesplice.table.protocol.transitions.tables import ADOPT, REPLACE, RESET, RESTORE, SWAP
from lakesplice.table.protocol.transitions.upkeep import CLUSTER, PURGE

__all__ = [
    "ADOPT",
    "CLUSTER",
    "PURGE",
    "REPLACE",
    "RESET",
    "RESTORE",
    "SWAP",
    "CommitPoint",
    "Transition",
    "transition",
]
