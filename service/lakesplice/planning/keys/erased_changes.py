"""Finds changes of erased rows: those at or below the position at which their row was erased.

They have no effect, whether the key is known or not. They are left out before the changes of a key
are folded into one, since a later change of the key must not get values from them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, KeyHashes, Mask
from lakesplice.model.change import at_or_below
from lakesplice.model.names import KEY_HIGH, KEY_LOW, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.model.progress.erased_keys import ErasedKeys, SaltedHash
from lakesplice.planning.rows.keyhash import salted_hash


def erased_changes(changes: pa.Table, erased: ErasedKeys) -> Mask:
    """Mark the changes (with `_key_high`, `_key_low` and positions) that have no effect because
    their row was erased after them.
    """
    marked = at_or_below(changes, erased.highest)
    at = np.flatnonzero(marked)
    if not len(at):
        return marked
    high, low, file, offset = (
        changes.column(name).to_numpy()[at]
        for name in (KEY_HIGH, KEY_LOW, POSITION_FILE, POSITION_OFFSET)
    )
    keys = salted_hash(KeyHashes(high, low), erased.salt)
    halves = np.fromiter((half for half, _ in erased.positions), np.uint64, len(erased.positions))
    marked[at] = np.isin(keys.high, halves)
    # Half of a hash nearly always identifies the key, so this loop runs only over erased changes.
    for number in np.flatnonzero(marked[at]).tolist():
        until = erased.positions.get(SaltedHash(*keys.at(number)))
        here = Position(int(file[number]), int(offset[number]))
        marked[at[number]] = until is not None and here <= until
    return marked


def erased_positions(
    keys: KeyHashes, files: Integers, offsets: Integers, salt: bytes
) -> Mapping[SaltedHash, Position]:
    """Return what must be recorded of erased rows: for each key the highest of its positions."""
    found: dict[SaltedHash, Position] = {}
    salted = salted_hash(keys, salt)
    rows = (column.tolist() for column in (salted.high, salted.low, files, offsets))
    for high, low, file, offset in zip(*rows, strict=True):
        position = Position(file, offset)
        key = SaltedHash(high, low)
        found[key] = max(position, found.get(key, position))
    return found
