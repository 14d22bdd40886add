"""Fold: several changes of one row become one change.

The newest change gives the values, the operation and the position. The sets of changed columns can
be united only along an unbroken chain: each change's before-image has the digest of the after-image
before it. Then the columns of the union, applied to the first before-image, give the last
after-image. If the chain is broken, the set is unknown, and the whole after-image is written, which
is always right.

If a change is partial, the changes of its key are united column by column (`partial_fold.py`).

Equal positions are one change that came twice. An insert and a delete don't cancel each other: the
delete remains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import changes_schema
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmap_rows, bitmaps
from lakesplice.planning.rows.partial_fold import fold_partial, partial_rows
from lakesplice.planning.rows.row_digest import contiguous


def fold(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """Return one change per key, sorted by the key's hash as (`_key_high`, `_key_low`), unsigned.

    `changes` is in `changes_schema(schema)`, in any order, with any repetitions, folded before or
    not, in as many chunks as there were batches. The values, operation and position of the result
    don't depend on any of these. Folding the result again changes nothing. `UsageError` for another
    layout.
    """
    if changes.schema.names != changes_schema(schema).names:
        raise UsageError("changes to fold are not in the layout of their schema")
    if changes.num_rows == 0:
        return changes
    partial = partial_rows(changes, schema)
    return _with_partial(changes, schema, partial) if partial.any() else _fold(changes, schema)


def _with_partial(changes: pa.Table, schema: TableSchema, partial: Mask) -> pa.Table:
    """Fold keys with a partial change column by column, and all others as usual."""
    high = _integers(changes, KEY_HIGH)
    theirs = np.isin(high, high[partial])
    parts = [fold_partial(changes.filter(pa.array(theirs)), schema)]
    if not theirs.all():
        parts.append(_fold(changes.filter(pa.array(~theirs)), schema))
    folded = pa.concat_tables(parts).combine_chunks()
    order = np.lexsort([_integers(folded, name) for name in (KEY_LOW, KEY_HIGH)])
    return folded.take(pa.array(order))


def _fold(changes: pa.Table, schema: TableSchema) -> pa.Table:
    high, low = (_integers(changes, name) for name in (KEY_HIGH, KEY_LOW))
    order = np.argsort(high, kind="stable")
    repeated = _repeated(high[order])
    if not repeated.any():
        return changes.take(pa.array(order))
    _settle(order, repeated, changes, high, low)
    runs = _Runs.of(order, changes, high, low)
    folded = changes.take(pa.array(runs.newest))
    return (
        _with_chains(folded, changes, runs, bitmap_bytes(schema)) if runs.several.size else folded
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """Changes in the order of the fold, divided into runs of one key.

    `newest` is the last change of each run. `several` are the numbers of the runs with more than
    one change, `members` the changes of these runs, run after run, `starts` the places in `members`
    where each run begins.
    """

    newest: Integers
    several: Integers
    members: Integers
    starts: Integers

    @classmethod
    def of(cls, order: Integers, changes: pa.Table, high: Integers, low: Integers) -> _Runs:
        """Divide the settled `order` into runs. Of several changes with one position only the last
        is kept.
        """
        file, offset = (_integers(changes, name) for name in (POSITION_FILE, POSITION_OFFSET))
        same_key = _same_as_next(order, high, low)
        order = order[~(same_key & _same_as_next(order, file, offset))]
        ends = np.flatnonzero(~_same_as_next(order, high, low))
        lengths = np.diff(ends, prepend=-1)
        several = np.flatnonzero(lengths > 1)
        return cls(
            newest=order[ends],
            several=several,
            members=order[np.repeat(lengths > 1, lengths)],
            starts=np.cumsum(lengths[several]) - lengths[several],
        )


def _same_as_next(order: Integers, one: Integers, other: Integers) -> Mask:
    """Mark the places of `order` whose successor has the same two values; never the last place."""
    one, other = one[order], other[order]
    same = np.zeros(len(order), dtype=np.bool_)
    same[:-1] = (one[1:] == one[:-1]) & (other[1:] == other[:-1])
    return same


def _integers(changes: pa.Table, name: str) -> Integers:
    values: Integers = contiguous(changes.column(name)).to_numpy(zero_copy_only=False)
    return values


def _repeated(values: Integers) -> Mask:
    """Mark the places of a sorted array whose value occurs more than once."""
    equal = values[1:] == values[:-1]
    repeated = np.zeros(len(values), dtype=np.bool_)
    repeated[1:] = equal
    repeated[:-1] |= equal
    return repeated


def _settle(
    order: Integers, repeated: Mask, changes: pa.Table, high: Integers, low: Integers
) -> None:
    """Sort the rows that share the first half of a key hash by all columns, within `order`.

    The others are sorted already: sorting all by six columns would cost a batch of distinct keys
    several times the whole fold. Of changes with one position the last one counts: one whose
    changed set is known, else the one with the earliest source time, which another batch would have
    read first. The other columns only make the choice independent of the order of the input.
    """
    rows = order[repeated]
    some = changes.select(
        [POSITION_FILE, POSITION_OFFSET, OP, BEFORE_DIGEST, CHANGED, SOURCE_TS]
    ).take(pa.array(rows))
    moment = contiguous(some.column(SOURCE_TS)).cast(pa.int64()).fill_null(0).to_numpy()
    digests = contiguous(some.column(BEFORE_DIGEST)).fill_null(0).to_numpy()
    known = np.asarray(contiguous(some.column(CHANGED)).is_valid())
    by = (
        digests,
        _integers(some, OP),
        -moment,
        known,
        _integers(some, POSITION_OFFSET),
        _integers(some, POSITION_FILE),
        low[rows],
        high[rows],
    )
    order[repeated] = rows[np.lexsort(by)]


def _with_chains(folded: pa.Table, changes: pa.Table, runs: _Runs, width: int) -> pa.Table:
    """Give each run of several changes the changed set and the before-digest of its whole chain."""
    chain = changes.select([BEFORE_DIGEST, ROW_DIGEST, CHANGED]).take(pa.array(runs.members))
    before, before_known = _digests(chain, BEFORE_DIGEST)
    after, after_known = _digests(chain, ROW_DIGEST)
    sets, sets_known = bitmap_rows(contiguous(chain.column(CHANGED)), width)
    linked = before_known & sets_known
    follows = np.ones(len(linked), dtype=np.bool_)
    follows[1:] = (before[1:] == after[:-1]) & after_known[:-1]
    follows[runs.starts] = True
    unbroken = np.logical_and.reduceat(linked & follows, runs.starts)
    union = np.bitwise_or.reduceat(sets, runs.starts, axis=0)

    replaced = np.zeros(folded.num_rows, dtype=np.bool_)
    replaced[runs.several] = True
    mask = pa.array(replaced)
    digests = pa.array(before[runs.starts], mask=~unbroken)
    for name, values in ((BEFORE_DIGEST, digests), (CHANGED, bitmaps(union, unbroken))):
        at = folded.schema.get_field_index(name)
        column = pc.replace_with_mask(contiguous(folded.column(at)), mask, values)
        folded = folded.set_column(at, folded.schema.field(at), column)
    return folded


def _digests(chain: pa.Table, name: str) -> tuple[Integers, Mask]:
    values = contiguous(chain.column(name))
    return values.fill_null(0).to_numpy(), np.asarray(values.is_valid())
