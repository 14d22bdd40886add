"""Overlay: applies waiting changes to the rows of a file.

For each address the change with the highest position wins, unless it is at or below the row's own
position: a row never becomes older, and an equal position is the same change. The winner's
after-image is the row's new state. The columns that differ from the row are known only if a chain
of digests leads without a gap from the row's state to the winner's: then the union of the changes'
sets is enough. Otherwise every column is written, which is always right, and only costs more. A
delete changes no user column. A tombstone has no digest, so the next change writes every column.

In a table fed by hand (`Ordering.COMMIT`) every set is trusted, since its change was computed from
the rows as they were then; it names the columns that the change has values for. A change may be
partial, so a column has the value of the newest change that contains it. A change that revives a
deleted row contains all columns.

If a change is partial, or a row comes from several changes, they are united column by column
(`partial_fold.py`), and a row with an unknown column counts as deleted.

So the user columns of a tombstone have no meaning, except for the key: they are what the row had
when a delete was merged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import CorruptFileError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    IS_DELETED,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import Ordering
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmap_rows, changes_column
from lakesplice.planning.rows.edits import ColumnEdit, Edits, united_edits
from lakesplice.planning.rows.partial_fold import columnwise_edits, partial_rows
from lakesplice.planning.rows.waiting_changes import (
    OrderedChanges,
    integer_column,
    row_starts,
)

# Columns that every change sets, whatever else it changes.
_ADVANCING = (POSITION_OFFSET, SOURCE_TS)


def state_columns(schema: TableSchema, ordering: Ordering) -> tuple[str, ...]:
    """The columns of a row that decide what a change does to it.

    In a table fed by hand there are no digests, and the file of a position is always 0.
    """
    if ordering is Ordering.COMMIT:
        return (*schema.key, POSITION_OFFSET)
    by_column = () if schema.positions is None else (IS_DELETED, schema.positions.name)
    return (*schema.key, POSITION_FILE, POSITION_OFFSET, ROW_DIGEST, *by_column)


def overlay(
    placed: OrderedChanges,
    state: pa.Table,
    schema: TableSchema,
    path: str,
    ordering: Ordering = Ordering.BINLOG,
) -> Edits:
    """Decide what the waiting changes do to their rows.

    `state` has the present rows at `placed.addressed`, in that order, with at least
    `state_columns(schema, ordering)`. Columns that `placed.changes` lacks are not edited, so a
    reader of few columns decodes no others; a column that it has must have every change. If `state`
    lacks the positions, all changes are above them. If it lacks the digests, no set of changed
    columns is trusted, and `placed.changes` needs none; see `filtering/shown_columns.py`. `path`
    names the file in errors: `CorruptFileError` if a change's key isn't the key of the row at its
    address.
    """
    if not len(placed.rows):
        return Edits()
    owner = np.cumsum(row_starts(placed.rows)) - 1
    _check_keys(placed, owner, state, schema, path)
    apart = _by_column(placed, owner, state, schema)
    if not apart.any():
        return _overlay(placed, owner, state, schema, ordering)
    return _joined(placed, owner, state, schema, apart)


def _by_column(
    placed: OrderedChanges, owner: Integers, state: pa.Table, schema: TableSchema
) -> Mask:
    """Mark the rows of `state` that have to be united column by column."""
    apart = partial_rows(state, schema)
    partial = partial_rows(placed.changes, schema)[placed.order]
    apart[owner[partial]] = True
    return apart


def _joined(
    placed: OrderedChanges, owner: Integers, state: pa.Table, schema: TableSchema, apart: Mask
) -> Edits:
    """Overlay the rows marked `apart` column by column, the others as usual."""
    chosen = apart[owner]
    rows = np.flatnonzero(apart)
    changes = placed.changes.take(pa.array(placed.order[chosen]))
    owners = np.searchsorted(rows, owner[chosen])
    part = state.take(pa.array(rows))
    addressed, edits, given = columnwise_edits(
        owners, changes, placed.addressed[rows], part, schema
    )
    applied = int(np.count_nonzero(given))
    found = Edits(addressed, edits, applied, len(given) - applied)
    if chosen.all():
        return found
    others = OrderedChanges(placed.rows[~chosen], placed.order[~chosen], placed.changes)
    left = np.flatnonzero(~apart)
    plain = _overlay(
        others,
        np.searchsorted(left, owner[~chosen]),
        state.take(pa.array(left)),
        schema,
        Ordering.BINLOG,
    )
    return united_edits(plain, found)


def _overlay(
    placed: OrderedChanges,
    owner: Integers,
    state: pa.Table,
    schema: TableSchema,
    ordering: Ordering,
) -> Edits:
    alive = _above(placed, owner, state, ordering)
    kept = np.flatnonzero(alive)
    if not len(kept):
        return Edits(stale=len(alive))
    live = OrderedChanges(placed.rows[kept], placed.order[kept], placed.changes)
    starts = np.flatnonzero(row_starts(live.rows))
    winners = np.append(starts[1:], len(kept)) - 1
    deleted = integer_column(live.changes, OP)[live.order[winners]] == Op.DELETE
    rows = live.rows[winners]
    chosen = live.order[winners]
    given = frozenset(live.changes.column_names)
    columns = {
        name: ColumnEdit(rows, _in_order(live.changes, name, chosen))
        for name in _ADVANCING
        if name in given
    }
    applied, stale = len(kept), len(alive) - len(kept)
    if ordering is Ordering.COMMIT:
        columns |= _partial_edits(live, starts, deleted, schema) | _deletion_edits(
            live, starts, deleted
        )
        return Edits(rows, columns, applied, stale, known_new=frozenset(_ADVANCING))
    linked, broken = _links(live, owner[kept], starts, state)
    user_edits, trusted = _user_edits(live, linked, starts, deleted, schema)
    columns |= user_edits
    columns[POSITION_FILE] = ColumnEdit(rows, _in_order(live.changes, POSITION_FILE, chosen))
    if ROW_DIGEST in given:
        digests = pc.if_else(pa.array(~deleted), _in_order(live.changes, ROW_DIGEST, chosen), None)
        columns[ROW_DIGEST] = ColumnEdit(rows, digests)
    columns[IS_DELETED] = ColumnEdit(rows, pa.array(deleted))
    known_new = frozenset((*_ADVANCING, ROW_DIGEST, *(user_edits if trusted else ())))
    unlinked = int(np.count_nonzero(broken))
    return Edits(rows, columns, applied, stale, unlinked, known_new)


def without_effect(edits: Edits, ordering: Ordering) -> bool:
    """Whether edits, which were compared with their file, leave every row as it is.

    Only in a table fed by hand: no change can be late there, so a row needn't have the position of
    the newest change. In other tables it must, or a change between the two would have an effect.
    """
    return ordering is Ordering.COMMIT and edits.columns.keys() <= frozenset(_ADVANCING)


def _check_keys(
    placed: OrderedChanges, owner: Integers, state: pa.Table, schema: TableSchema, path: str
) -> None:
    for name in schema.key:
        asked = _in_order(placed.changes, name, placed.order)
        found = state.column(name).combine_chunks().take(pa.array(owner))
        equal = pc.fill_null(pc.equal(asked, found), False)
        if pc.all(equal).as_py() is False:
            at = pc.index(equal, pa.scalar(False)).as_py()
            raise CorruptFileError(
                "a change's key is not that of its row; run `lakesplice index check`",
                path=path,
                row=int(placed.rows[at]),
                column=name,
                key=asked[at].as_py(),
                found=found[at].as_py(),
            )


def _above(placed: OrderedChanges, owner: Integers, state: pa.Table, ordering: Ordering) -> Mask:
    """Which changes are above their row's position; of one position only one."""
    offset = integer_column(placed.changes, POSITION_OFFSET)[placed.order]
    known = POSITION_OFFSET in state.column_names
    above: Mask = np.ones(len(offset), np.bool_)
    if known:
        above = offset > integer_column(state, POSITION_OFFSET)[owner]
    again = (placed.rows[1:] == placed.rows[:-1]) & (offset[1:] == offset[:-1])
    if ordering is not Ordering.COMMIT:
        file = integer_column(placed.changes, POSITION_FILE)[placed.order]
        if known:
            row_file = integer_column(state, POSITION_FILE)[owner]
            above = (file > row_file) | ((file == row_file) & above)
        again &= file[1:] == file[:-1]
    above[1:] &= ~again
    return above


def _user_edits(
    live: OrderedChanges, linked: Mask, starts: Integers, deleted: Mask, schema: TableSchema
) -> tuple[dict[str, ColumnEdit], bool]:
    """The edits of the user's columns, and whether the changed set of each row is trusted."""
    winners = np.append(starts[1:], len(live.rows)) - 1
    given = frozenset(live.changes.column_names)
    united, trusted = np.zeros((len(starts), 0), np.uint8), np.zeros(len(starts), np.bool_)
    if CHANGED in given:
        sets, known = bitmap_rows(
            _in_order(live.changes, CHANGED, live.order), bitmap_bytes(schema)
        )
        united = np.bitwise_or.reduceat(sets, starts, axis=0)
        trusted = np.logical_and.reduceat(linked & known, starts)
    edits = {}
    for column in schema.columns:
        if column.name in schema.key or column.name not in given or column is schema.positions:
            continue
        at = winners[changes_column(united, trusted, column.id) & ~deleted]
        if len(at):
            values = _in_order(live.changes, column.name, live.order[at])
            edits[column.name] = ColumnEdit(live.rows[at], values)
    return edits, bool((trusted | deleted).all())


def _partial_edits(
    live: OrderedChanges, starts: Integers, deleted: Mask, schema: TableSchema
) -> dict[str, ColumnEdit]:
    sets, known = bitmap_rows(_in_order(live.changes, CHANGED, live.order), bitmap_bytes(schema))
    places = np.arange(len(live.rows))
    once = len(starts) == len(live.rows)
    edits, given = {}, frozenset(live.changes.column_names)
    for column in schema.columns:
        if column.name in schema.key or column.name not in given:
            continue
        having = np.where(changes_column(sets, known, column.id), places, -1)
        newest = having if once else np.maximum.reduceat(having, starts)
        at = newest[(newest >= 0) & ~deleted]
        if len(at):
            values = _in_order(live.changes, column.name, live.order[at])
            edits[column.name] = ColumnEdit(live.rows[at], values)
    return edits


def _deletion_edits(live: OrderedChanges, starts: Integers, deleted: Mask) -> dict[str, ColumnEdit]:
    """Edit `_is_deleted` of rows that were deleted or revived; an update of a live row leaves it
    alone.

    So updates don't touch the pages of that column, nor those of `_position_file`, which is always
    0, and of `_row_digest`, which is always null.
    """
    op = integer_column(live.changes, OP)[live.order]
    turned = np.logical_or.reduceat(op != Op.UPDATE, starts)
    if not turned.any():
        return {}
    return {IS_DELETED: ColumnEdit(live.rows[starts][turned], pa.array(deleted[turned]))}


def _links(
    live: OrderedChanges, owner: Integers, starts: Integers, state: pa.Table
) -> tuple[Mask, Mask]:
    """Whether each change was computed from the state that it is applied to, and whether it is
    known to have been computed from another one.
    """
    if ROW_DIGEST not in state.column_names:
        unknown = np.zeros(len(live.rows), np.bool_)
        return unknown, unknown
    before, has_before = _digests(live.changes, BEFORE_DIGEST, live.order)
    after, has_after = _digests(live.changes, ROW_DIGEST, live.order)
    found, has_found = np.roll(after, 1), np.roll(has_after, 1)
    found[starts], has_found[starts] = _digests(state, ROW_DIGEST, owner[starts])
    known, equal = has_before & has_found, before == found
    return known & equal, known & ~equal


def _digests(table: pa.Table, name: str, order: Integers) -> tuple[Integers, Mask]:
    column = _in_order(table, name, order)
    return np.asarray(pc.fill_null(column, 0), np.int64), np.asarray(column.is_valid())


def _in_order(table: pa.Table, name: str, order: Integers) -> pa.Array:
    column = table.column(name)
    # The changes of one delta are in the order of their rows.
    if len(order) and order[-1] - order[0] == len(order) - 1 and (np.diff(order) == 1).all():
        taken = column.slice(int(order[0]), len(order))
    else:
        taken = column.take(pa.array(order))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
