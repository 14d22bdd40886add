"""Insert-only tables: rows that never change, and may be delivered more than once.

A row is stored when its key first appears. Later changes of that key are skipped: within a batch
the change with the lowest position is kept, and the row index shows which keys the table has. So
nothing waits to be merged, and a repetition costs a look-up. An update, a delete or a TRUNCATE is
no repetition: it contradicts the setting, so it is never skipped silently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.arrays import Integers, KeyHashes
from lakesplice.model.change import Op
from lakesplice.model.choices import NotInserts
from lakesplice.model.names import KEY_HIGH, KEY_LOW, POSITION_FILE, POSITION_OFFSET
from lakesplice.planning.intake.order.record_order import RecordIndex

NOT_AN_INSERT = "not-an-insert"
_INSERTS = (int(Op.CREATE), int(Op.READ))


def parking_others(
    policy: NotInserts | None, blocks: Sequence[ImageBlock], fences: Integers
) -> Iterator[tuple[RecordIndex, str]]:
    """Yield the first record of each block that isn't an insert, and the first of `fences`, with
    the reason to park the table there; nothing under another policy.
    """
    if policy is not NotInserts.PARK:
        return
    for block in blocks:
        for record, op in _others(block).items():
            yield record, f"{_described(op)}; {_ADVICE}"
            break
    if len(fences):
        yield RecordIndex(int(fences[0])), f"{_TRUNCATED}; {_ADVICE}"


def dead_others(
    policy: NotInserts | None, blocks: Sequence[ImageBlock], fences: Integers, limit: RecordIndex
) -> dict[RecordIndex, str]:
    """Return the records before `limit` that are no inserts and become dead letters, with the
    reason; nothing under another policy.
    """
    if policy is not NotInserts.DEAD_LETTER:
        return {}
    found = {at: _described(op) for block in blocks for at, op in _others(block).items()}
    found |= {RecordIndex(int(at)): _TRUNCATED for at in fences}
    return {at: why for at, why in found.items() if at < limit}


def accepted_changes(
    found: Iterable[tuple[Integers, pa.Table]], limit: int, refused: Collection[RecordIndex]
) -> Iterator[tuple[Integers, pa.Table]]:
    """Yield the changes of records before `limit`, except for refused ones, each part with the
    indexes of its records, as in `found`.
    """
    for rows, changes in found:
        count = int(np.searchsorted(rows, limit))
        rows, changes = rows[:count], changes.slice(0, count)
        if refused:
            kept = ~np.isin(rows, list(refused))
            rows, changes = rows[kept], changes.filter(pa.array(kept))
        if len(rows):
            yield rows, changes


def _others(changes: ImageBlock) -> dict[RecordIndex, Op]:
    """The records with a change other than an insert, each with the operation of its first such
    change.
    """
    at = np.flatnonzero(~np.isin(changes.op, _INSERTS))
    found: dict[RecordIndex, Op] = {}
    for record, op in zip(changes.rows[at].tolist(), changes.op[at].tolist(), strict=True):
        found.setdefault(RecordIndex(record), Op(op))
    return found


def _described(op: Op) -> str:
    return f"the table is insert-only and the change is {_NAMES.get(op, 'no insert')}"


_TRUNCATED = "the table is insert-only and was truncated"
_NAMES = {Op.UPDATE: "an update", Op.DELETE: "a delete"}
_ADVICE = (
    "set its mode to upsert, or not_inserts to dead-letter, or unpark it at the offset after the"
    " record"
)


def in_key_order(changes: pa.Table) -> pa.Table:
    """Return all changes, sorted by `_key_high`."""
    return changes.take(pa.array(np.argsort(changes[KEY_HIGH].to_numpy(), kind="stable")))


def first_change_per_key(changes: pa.Table) -> pa.Table:
    """Return for each key the change with the lowest position, sorted by the key's hash."""
    names = (POSITION_OFFSET, POSITION_FILE, KEY_LOW, KEY_HIGH)
    offset, file, low, high = (changes[name].to_numpy() for name in names)
    order = np.lexsort((offset, file, low, high))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    return changes.take(pa.array(order[first]))


def first_occurrences(keys: KeyHashes) -> Integers:
    """Return, ascending, the indexes at which each key, by its hash, occurs first."""
    high, low = keys
    order = np.lexsort((np.arange(len(high)), low, high))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    return np.sort(order[first])
