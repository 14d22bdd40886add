"""Overlay: a file's rows with their waiting changes laid over them.

For each address the change with the highest position wins, unless it is at or below the row's own
position: a row never goes back, and an equal position is the same change. The winner's after-image
is the row's new state. Which columns of it differ from the row is known only along an unbroken
chain of digests from the row's state to the winner's: then the union of the changes' sets is
enough. Otherwise every column is written, which is always right and only costs more. A delete
changes no user column; a tombstone has no digest, so whatever follows it writes every column.

In a table fed by hand (`Ordering.COMMIT`) every set is trusted, since its change was computed
against the rows as they then were; it names the columns that the change has values for. A change
may be partial, so a column's value is that of the newest change which has it. What makes a deleted
row live again has them all.

Where a change is partial, or a row isn't of one change, they are united column by column
(`partial_fold.py`), and a row of which a column isn't known counts as deleted.

A tombstone's user columns other than the key therefore mean nothing: they are what the row held
when some delete happened to be merged.
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

# What every change brings, whatever else it has.
_ADVANCING = (POSITION_OFFSET, SOURCE_TS)


def state_columns(schema: TableSchema, ordering: Ordering) -> tuple[str, ...]:
    """The columns of a row that decide what a change makes of it.

    By hand there are no digests, and a position's file is always 0.
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
    """Decide what the waiting changes make of their rows.

    `state` holds the present rows at `placed.addressed`, in that order, with at least
    `state_columns(schema, ordering)`. User columns that `placed.changes` lacks are not edited, so a
    reader of few columns decodes no others; for a column it has, it must have every change. `path`
    names the file in errors: `CorruptFileError` if a change's key is not the key of the row at its
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
    """Mark the rows of `state` that have to be put together column by column."""
    apart = partial_rows(state, schema)
    partial = partial_rows(placed.changes, schema)[placed.order]
    apart[owner[partial]] = True
    return apart


def _joined(
    placed: OrderedChanges, owner: Integers, state: pa.Table, schema: TableSchema, apart: Mask
) -> Edits:
    """Overlay the rows marked `apart` column by column, the others as ever."""
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
    columns = {name: ColumnEdit(rows, _taken(live.changes, name, chosen)) for name in _ADVANCING}
    applied, stale = len(kept), len(alive) - len(kept)
    if ordering is Ordering.COMMIT:
        columns |= _partial_edits(live, starts, deleted, schema) | _fates(live, starts, deleted)
        return Edits(rows, columns, applied, stale, known_new=frozenset(_ADVANCING))
    linked, broken = _links(live, owner[kept], starts, state)
    user_edits, trusted = _user_edits(live, linked, starts, deleted, schema)
    columns |= user_edits
    columns[POSITION_FILE] = ColumnEdit(rows, _taken(live.changes, POSITION_FILE, chosen))
    digests = pc.if_else(pa.array(~deleted), _taken(live.changes, ROW_DIGEST, chosen), None)
    columns[ROW_DIGEST] = ColumnEdit(rows, digests)
    columns[IS_DELETED] = ColumnEdit(rows, pa.array(deleted))
    known_new = frozenset((*_ADVANCING, ROW_DIGEST, *(user_edits if trusted else ())))
    unlinked = int(np.count_nonzero(broken))
    return Edits(rows, columns, applied, stale, unlinked, known_new)


def without_effect(edits: Edits, ordering: Ordering) -> bool:
    """Whether edits that were compared with their file leave every row what it is.

    Only in a table fed by hand: no change can come late there, so a row needn't have the position
    of the newest one. Elsewhere it must, or a change between the two would take effect.
    """
    return ordering is Ordering.COMMIT and edits.columns.keys() <= frozenset(_ADVANCING)


def _check_keys(
    placed: OrderedChanges, owner: Integers, state: pa.Table, schema: TableSchema, path: str
) -> None:
    for name in schema.key:
        asked = _taken(placed.changes, name, placed.order)
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
    """Which changes are above their row's position, each position once."""
    offset = integer_column(placed.changes, POSITION_OFFSET)[placed.order]
    above: Mask = offset > integer_column(state, POSITION_OFFSET)[owner]
    again = (placed.rows[1:] == placed.rows[:-1]) & (offset[1:] == offset[:-1])
    if ordering is not Ordering.COMMIT:
        file = integer_column(placed.changes, POSITION_FILE)[placed.order]
        row_file = integer_column(state, POSITION_FILE)[owner]
        above = (file > row_file) | ((file == row_file) & above)
        again &= file[1:] == file[:-1]
    above[1:] &= ~again
    return above


def _user_edits(
    live: OrderedChanges, linked: Mask, starts: Integers, deleted: Mask, schema: TableSchema
) -> tuple[dict[str, ColumnEdit], bool]:
    """The edits of the user's columns, and whether each row's set of them is trusted."""
    winners = np.append(starts[1:], len(live.rows)) - 1
    sets, known = bitmap_rows(_taken(live.changes, CHANGED, live.order), bitmap_bytes(schema))
    united = np.bitwise_or.reduceat(sets, starts, axis=0)
    trusted = np.logical_and.reduceat(linked & known, starts)
    edits, given = {}, frozenset(live.changes.column_names)
    for column in schema.columns:
        if column.name in schema.key or column.name not in given or column is schema.positions:
            continue
        at = winners[changes_column(united, trusted, column.id) & ~deleted]
        if len(at):
            values = _taken(live.changes, column.name, live.order[at])
            edits[column.name] = ColumnEdit(live.rows[at], values)
    return edits, bool((trusted | deleted).all())


def _partial_edits(
    live: OrderedChanges, starts: Integers, deleted: Mask, schema: TableSchema
) -> dict[str, ColumnEdit]:
    sets, known = bitmap_rows(_taken(live.changes, CHANGED, live.order), bitmap_bytes(schema))
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
            values = _taken(live.changes, column.name, live.order[at])
            edits[column.name] = ColumnEdit(live.rows[at], values)
    return edits


def _fates(live: OrderedChanges, starts: Integers, deleted: Mask) -> dict[str, ColumnEdit]:
    """Edit `_is_deleted` where a row went or came back; an update finds a live row and leaves it.

    So the pages of that column stay untouched by updates, as those of `_position_file`, always 0,
    and `_row_digest`, always null, do.
    """
    op = integer_column(live.changes, OP)[live.order]
    turned = np.logical_or.reduceat(op != Op.UPDATE, starts)
    if not turned.any():
        return {}
    return {IS_DELETED: ColumnEdit(live.rows[starts][turned], pa.array(deleted[turned]))}


def _links(
    live: OrderedChanges, owner: Integers, starts: Integers, state: pa.Table
) -> tuple[Mask, Mask]:
    """Whether each change was computed against the state it is laid over, and whether it is known
    to have been against another.
    """
    before, has_before = _digests(live.changes, BEFORE_DIGEST, live.order)
    after, has_after = _digests(live.changes, ROW_DIGEST, live.order)
    found, has_found = np.roll(after, 1), np.roll(has_after, 1)
    found[starts], has_found[starts] = _digests(state, ROW_DIGEST, owner[starts])
    known, equal = has_before & has_found, before == found
    return known & equal, known & ~equal


def _digests(table: pa.Table, name: str, order: Integers) -> tuple[Integers, Mask]:
    column = _taken(table, name, order)
    return np.asarray(pc.fill_null(column, 0), np.int64), np.asarray(column.is_valid())


def _taken(table: pa.Table, name: str, order: Integers) -> pa.Array:
    column = table.column(name)
    # Changes of one delta lie in the order of their rows.
    if len(order) and order[-1] - order[0] == len(order) - 1 and (np.diff(order) == 1).all():
        taken = column.slice(int(order[0]), len(order))
    else:
        taken = column.take(pa.array(order))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
